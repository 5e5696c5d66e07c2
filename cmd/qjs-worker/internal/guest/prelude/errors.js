// Chapter 3: errors. Those that we make for the guest, the record of one that ended the
// run, and what to suggest to its author.

const ours = "codemode:"; // how the file names of these chapters begin
const maxStackText = 8 << 10;

// userFrames drops the frames of these chapters from a stack: the model did not write them.
const userFrames = (stack) => {
	let out = "";
	for (let at = 0; at < stack.length; ) {
		let end = indexOf(stack, "\n", at);
		if (end < 0) end = stack.length;
		const line = stringSlice(stack, at, end);
		at = end + 1;
		if (line === "" || indexOf(line, "(" + ours) >= 0 || indexOf(line, "at " + ours) >= 0) continue;
		if (out.length + line.length > maxStackText) break;
		out += line + "\n";
	}
	return out;
};

// stackOf reads an error's frames without the guest's getters: an Error has them in a slot
// that a getter of Error.prototype shows, a DOMException as a property of its own.
const errorStack = getter(ErrorPrototype, "stack");
const stackOf = (e) => {
	const own = getOwnPropertyDescriptor(e, "stack");
	const stack = own === undefined ? errorStack(e) : own.value;
	return typeof stack === "string" ? stack : "";
};

const cleanStack = (e) => (define(e, "stack", userFrames(stackOf(e))), e);

// fault makes an error to throw at the guest, with the guest's own frames.
const fault = (Class, message) => cleanStack(new Class(message));

// toolErrors knows by identity what nested calls rejected with.
const toolErrors = safeWeakSet();

// toolError finishes an error that was made where the guest made the call, so that its stack
// shows that place (SPEC 6.8).
const toolError = (e, message, toolId, code, started) => {
	define(e, "name", "ToolError");
	define(e, "message", message);
	define(e, "toolId", toolId, true);
	define(e, "code", code, true);
	define(e, "started", started, true);
	toolErrors.add(e);
	return cleanStack(e);
};

const isError = (v) => {
	if (v === null || (typeof v !== "object" && typeof v !== "function")) return false;
	let p = v;
	for (let i = 0; i < maxChain && p !== null; i++) {
		if (p === ErrorPrototype) return true;
		p = getPrototypeOf(p);
	}
	return false;
};

// field reads a string from an error whose getters may throw.
const field = (e, key) => {
	try {
		const v = e[key];
		return typeof v === "string" ? v : v === undefined ? "" : textOf(v);
	} catch {
		return "";
	}
};

// failure describes what ended the run, as the JSON text of the Go type Failure. It must not
// throw, whatever the guest did: only strings are quoted by the engine here.
const failure = (reason) => {
	let json = "null";
	let error = false;
	let name = "";
	let message = "";
	let stack = "";
	let advice = noAdvice;
	try {
		json = encode(reason);
	} catch {
		// A getter threw; the failure is what it is without its fields.
	}
	try {
		error = isError(reason);
	} catch {
		// A proxy's getPrototypeOf threw.
	}
	if (error) {
		name = field(reason, "name");
		message = field(reason, "message");
		stack = userFrames(field(reason, "stack"));
		if (name === "ReferenceError") advice = advise(message);
		else if (name === "TypeError" && (message === "not a function" || (startsWith(message, "cannot read property") && endsWith(message, "of undefined")))) advice = adviseMember(frameOf(stack));
	} else {
		message = typeof reason === "string" ? reason : reason === undefined ? "undefined" : json[0] === '"' ? jsonParse(json) : json;
	}
	let suggestions = "";
	for (let i = 0; i < advice.suggestions.length; i++) suggestions += (i > 0 ? "," : "") + jsonStringify(advice.suggestions[i]);
	return '{"name":' + jsonStringify(name) + ',"message":' + jsonStringify(message) + ',"stack":' + jsonStringify(stack) +
		',"tool":' + (error && toolErrors.has(reason)) + ',"json":' + jsonStringify(json) +
		',"suggestions":[' + suggestions + '],"hint":' + jsonStringify(advice.hint) + "}";
};

const noAdvice = freeze({ __proto__: null, suggestions: bareArray(), hint: "" });

// What models reach for out of habit, and what they have instead.
const habits = { __proto__: null };
for (const [names, hint] of [
	["require module exports __dirname __filename", "there are no modules here; everything a cell can use is a global, and tools are called with tools.<name>(input)"],
	["process global Deno Bun", "this is no Node.js, Deno or Bun: there is no environment and no file system; use the tools (tools.search(query) finds them)"],
	["fetch XMLHttpRequest WebSocket axios Request Response Headers", "a cell has no network; find a tool for it with tools.search(query)"],
	["fs path os child_process", "a cell has no files and no processes; find a tool for it with tools.search(query)"],
	["Buffer", "use TextEncoder and TextDecoder, atob and btoa, or Uint8Array"],
	["window document self navigator localStorage sessionStorage alert", "this is no browser: there is no DOM and no storage"],
	["print", "use text(value), json(value) or console.log(…)"],
	["sleep", "use await new Promise(resolve => setTimeout(resolve, ms))"],
	["setImmediate", "use setTimeout(callback, 0) or queueMicrotask(callback)"],
	["WebAssembly", "the engine has no WebAssembly"],
	["MCP", "no tool of an MCP server can be called in this run; tools.search(query) finds tools"],
]) {
	for (const name of names.split(" ")) habits[name] = hint;
}

// advise says what an identifier that does not exist could have been (SPEC 4.4).
const advise = (message) => {
	const end = " is not defined";
	if (!endsWith(message, end)) return noAdvice;
	const name = stringSlice(message, 0, message.length - end.length);
	let hint = habits[name];
	if (name === "MCP") {
		const down = host.names("down", ""); // why there is no server at all
		for (let at = 0; at < down.length; ) {
			const end = indexOf(down, "\n", at);
			const server = stringSlice(down, at, end);
			hint += "; MCP." + server + " is not available: " + jsonParse(host.find("down", server));
			at = end + 1;
		}
	}
	if (hint === undefined) {
		const down = host.find("down", name);
		if (down !== "") hint = unavailable("MCP." + name, down);
	}
	if (hint !== undefined) return { __proto__: null, suggestions: noAdvice.suggestions, hint };
	report(name);
	let globals = "";
	const keys = ownKeys(G);
	for (let i = 0; i < keys.length; i++) if (typeof keys[i] === "string") globals += keys[i] + "\n";
	return { __proto__: null, suggestions: nearest("global", name, globals), hint: "" };
};

// nearest gives up to three things that exist and that a name could have meant, best first.
// The host compares: it has the names of the catalog.
const nearest = (kind, name, more) => jsonParse(host.nearest(kind, toWellFormed(stringSlice(name, 0, maxMissed)), toWellFormed(more)));

// plainly writes a name so that it stays on its line.
const plainly = (name) => {
	const quoted = jsonStringify(label(name));
	return quoted === '"' + label(name) + '"' ? label(name) : quoted;
};

// eitherOf writes suggestions as a question.
const eitherOf = (names) => {
	let text = "; did you mean " + names[0];
	for (let i = 1; i < names.length; i++) text += (i === names.length - 1 ? " or " : ", ") + names[i];
	return text + "?";
};

const unavailable = (server, reason) => "the MCP server " + server + " is not available in this run: " + jsonParse(reason);

// frameOf gives the first frame of a stack that is the guest's.
const frameOf = (stack) => {
	const frames = userFrames(stack);
	const end = indexOf(frames, "\n");
	return end < 0 ? frames : stringSlice(frames, 0, end);
};

// sameExpression tells whether an error came of what was read: in the same function and line,
// and no further on than the name of what was read is long.
const sameExpression = (read, failed, length) => {
	const a = lastIndexOf(read, ":");
	const b = lastIndexOf(failed, ":");
	if (a < 0 || stringSlice(read, 0, a) !== stringSlice(failed, 0, b)) return false;
	const column = (frame, at) => toNumber(stringSlice(frame, at + 1, endsWith(frame, ")") ? frame.length - 1 : frame.length));
	const distance = column(failed, b) - column(read, a);
	return distance >= 0 && distance <= length;
};

// adviseMember says what was meant if a member was used that does not exist. A member that was
// only asked for has nothing to do with an error elsewhere.
const adviseMember = (failed) => {
	if (missed === undefined || !sameExpression(missedAt, failed, missed.length + 2)) return noAdvice;
	const dot = indexOf(missed, ".");
	const mcp = startsWith(missed, "MCP.");
	const names = nearest(mcp ? "MCP" : "tools", stringSlice(missed, dot + 1), "");
	const inner = indexOf(missed, ".", dot + 1);
	const down = mcp && inner < 0 ? host.find("down", stringSlice(missed, dot + 1)) : "";
	if (down !== "") return { __proto__: null, suggestions: noAdvice.suggestions, hint: unavailable(missed, down) };
	if (startsWith(missed, "API.")) return { __proto__: null, suggestions: noAdvice.suggestions, hint: plainly(missed) + " does not exist; API has list(prefix) and read(path)" };
	const lists = !mcp ? "tools.search(query) finds tools, and \"name\" in tools tells whether one is there"
		: inner < 0 ? "await API.read(\"mcp/index.d.ts\") lists the servers"
		: "await API.read(\"mcp/" + stringSlice(missed, dot + 1, inner) + ".d.ts\") lists its functions";
	return { __proto__: null, suggestions: noAdvice.suggestions, hint: plainly(missed) + " does not exist" + (names.length > 0 ? eitherOf(names) + " " : "; ") + lists };
};
