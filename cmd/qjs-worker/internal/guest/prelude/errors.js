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
		else if (name === "TypeError" && message === "not a function") advice = adviseTool();
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
]) {
	for (const name of names.split(" ")) habits[name] = hint;
}

// advise says what an identifier that does not exist could have been (SPEC 4.4).
const advise = (message) => {
	const end = " is not defined";
	if (!endsWith(message, end)) return noAdvice;
	const name = stringSlice(message, 0, message.length - end.length);
	const hint = habits[name];
	if (hint !== undefined) return { __proto__: null, suggestions: noAdvice.suggestions, hint };
	const known = bareArray();
	const globals = ownKeys(G);
	for (let i = 0; i < globals.length; i++) {
		const key = globals[i];
		if (typeof key === "string") arrayPush(known, { __proto__: null, name: key, show: key });
	}
	addToolNames(known);
	return { __proto__: null, suggestions: nearest(name, known), hint: "" };
};

// adviseTool says what was called if it was a tool that does not exist.
const adviseTool = () => missedTool === undefined ? noAdvice : { __proto__: null, suggestions: bareArray(), hint: unknownTool(missedTool) };

// nearest gives up to three of known = {name, show} that name could have meant, best first.
const nearest = (name, known) => {
	const out = bareArray();
	const wanted = spell(name);
	const best = bareArray(); // up to three, in descending order of score
	for (let i = 0; i < known.length; i++) {
		const score = likeness(wanted, spell(known[i].name));
		if (score < 0.5) continue;
		let at = best.length;
		while (at > 0 && best[at - 1].score < score) at--;
		if (at >= 3) continue;
		const entry = { __proto__: null, score, show: known[i].show };
		if (best.length < 3) arrayPush(best, entry);
		for (let j = best.length - 1; j > at; j--) best[j] = best[j - 1];
		best[at] = entry;
	}
	for (let i = 0; i < best.length; i++) {
		if (best[0].score === 1 && best[i].score < 1) break; // only the spelling differed
		arrayPush(out, best[i].show);
	}
	return out;
};

const maxSpelled = 64; // characters of a name that are compared

// spell reads a name as people do: lower case, and its words, split at case and punctuation.
const spell = (name) => {
	const words = safeSet();
	let flat = "";
	let word = "";
	const n = min(name.length, maxSpelled);
	for (let i = 0; i < n; i++) {
		const c = charCodeAt(name, i);
		const upper = c >= 65 && c <= 90;
		const letter = upper || (c >= 97 && c <= 122) || (c >= 48 && c <= 57) || c > 127;
		if ((!letter || upper) && word !== "") {
			words.add(word);
			word = "";
		}
		if (letter) {
			const ch = lowerCase(name[i]);
			flat += ch;
			word += ch;
		}
	}
	if (word !== "") words.add(word);
	return { __proto__: null, name, flat, words };
};

// likeness is 0 to 1: the better of edit distance and shared words.
const likeness = (a, b) => {
	if (a.flat === "" || b.flat === "") return 0;
	if (a.flat === b.flat) return 1;
	const longest = max(a.flat.length, b.flat.length);
	let score = 0;
	// Short names must be closer: two edits turn "foo" into anything.
	const allowed = longest <= 4 ? 1 : longest <= 8 ? 2 : floor(longest / 4);
	if (longest - min(a.flat.length, b.flat.length) <= allowed) {
		const d = distance(a.flat, b.flat);
		if (d <= allowed) score = 1 - d / (longest + 1);
	}
	let shared = 0;
	a.words.forEach((w) => {
		if (w.length > 1 && b.words.has(w)) shared++;
	});
	if (shared > 0) score = max(score, 0.95 * (shared / max(a.words.size, b.words.size)));
	return score;
};

// distance counts edits: insert, delete, replace, and swap of neighbours.
const distance = (a, b) => {
	let before = bareArray();
	let last = bareArray();
	for (let j = 0; j <= b.length; j++) arrayPush(last, j);
	for (let i = 1; i <= a.length; i++) {
		const row = bareArray();
		arrayPush(row, i);
		for (let j = 1; j <= b.length; j++) {
			const same = a[i - 1] === b[j - 1];
			let d = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1));
			if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) d = min(d, before[j - 2] + 1);
			arrayPush(row, d);
		}
		before = last;
		last = row;
	}
	return last[b.length];
};
