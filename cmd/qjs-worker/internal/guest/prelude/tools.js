// Chapter 6: the catalog as the guest sees it, and nested calls (SPEC 6.3, 6.4, 6.8).

const calls = safeMap(); // id → {resolve, reject, error, tool}: made and not settled
let lastCall = 0;

// request makes a nested call: a promise that the host settles by its id. Whatever is
// wrong with the arguments rejects the promise; nothing is thrown (SPEC 6.8). error is made
// where the guest made the call, for its stack; shown is how the guest named the function.
const request = (error, method, tool, value, shown, wrong) => {
	let resolve;
	let reject;
	const promise = new OriginalPromise((a, b) => {
		resolve = a;
		reject = b;
	});
	let input = "{}";
	let bytes;
	if (wrong === undefined && typeof tool !== "string") {
		wrong = "the first argument must be a string, not " + (tool === null ? "null" : isArray(tool) ? "an array" : typeof tool);
	}
	if (wrong === undefined && value !== undefined) {
		try {
			input = encodeFlat(value) ?? encode(value, (what) => { bytes ??= what; });
		} catch (e) {
			reject(e); // thrown by a getter or a toJSON of the guest's
			return promise;
		}
		if (bytes !== undefined) {
			wrong = "the input holds a " + bytes + ", and binary is not supported: send a string (for example btoa(…)) or an array of numbers";
		}
	}
	if (wrong !== undefined) {
		reject(toolError(error, shown + ": " + wrong + "; it was not started", typeof tool === "string" ? tool : "", "invalid_input", false));
		return promise;
	}
	const id = ++lastCall;
	board[1]++;
	calls.set(id, { __proto__: null, resolve, reject, error, tool });
	host.call(id, method, toWellFormed(tool), input);
	return promise;
};

const settle = (id, text) => {
	const call = calls.get(id);
	if (call === undefined) return false;
	calls.delete(id);
	board[1]--;
	let value;
	try {
		value = jsonParse(text);
	} catch (e) {
		call.reject(toolError(call.error, "the tool's result cannot be read: " + field(e, "message"), call.tool, "invalid_result", true));
		return true;
	}
	call.resolve(value);
	return true;
};

const refuse = (id, text) => {
	const call = calls.get(id);
	if (call === undefined) return false;
	calls.delete(id);
	board[1]--;
	const { message, toolId, code, started } = jsonParse(text);
	call.reject(toolError(call.error, message, toolId === "" ? call.tool : toolId, code, started));
	return true;
};

const base = {
	search(query, options) {
		const wrong = options !== undefined && (options === null || typeof options !== "object") ? "the second argument must be an object such as {limit: 5}" : undefined;
		return request(new OriginalError(), "search", query, options, "tools.search", wrong);
	},
	describe(id) { return request(new OriginalError(), "describe", id, undefined, "tools.describe"); },
	call(id, input) { return request(new OriginalError(), "call", id, input, "tools.call"); },
};

let toolNames = bareArray(); // {name, show} of everything that can be called

const addToolNames = (known) => {
	for (let i = 0; i < toolNames.length; i++) arrayPush(known, toolNames[i]);
};

const unknownTool = (name) => {
	const close = nearest(name, toolNames);
	let message = "tools." + label(name) + " does not exist";
	if (close.length > 0) {
		message += "; did you mean " + close[0];
		for (let i = 1; i < close.length; i++) message += (i === close.length - 1 ? " or " : ", ") + close[i];
		message += "?";
	} else {
		message += ";";
	}
	return message + " tools.search(query) finds tools, and \"name\" in tools tells whether one is there";
};

// Names that are read without a tool being meant: to await an object, to print it, to
// convert it.
const quiet = safeSet();
for (const key of ["then", "toJSON", "inspect", "nodeType", "$$typeof", "asymmetricMatch", "length", "name", "prototype"]) quiet.add(key);
for (const key of ownKeys(ObjectPrototype)) if (typeof key === "string") quiet.add(key);

// An unknown name is undefined, as on any object, so that code can ask whether a tool is
// there. What was asked for last is kept: calling it throws a TypeError that names nothing,
// and if that ends the run, failure says which tool there is not.
let missedTool;

const toolsHandler = freeze({
	__proto__: null,
	get(target, key) {
		const f = target[key];
		if (f === undefined && typeof key === "string" && !quiet.has(key)) missedTool = key;
		return f;
	},
});

// setup puts the run's catalog in place: a JSON array of compact entries, whose fn is
// the name of the convenience function, if it has one. It runs before any guest code.
const setup = (text) => {
	const table = { __proto__: null, ...base };
	const entries = jsonParse(text);
	toolNames = bareArray();
	for (const name of objectKeys(base)) arrayPush(toolNames, { __proto__: null, name, show: "tools." + name });
	for (const entry of entries) {
		const { id, fn } = entry;
		delete entry.fn;
		if (typeof fn === "string" && !quiet.has(fn) && !hasOwn(table, fn)) {
			define(table, fn, { [fn](input) { return request(new OriginalError(), "call", id, input, "tools." + fn); } }[fn], true);
			arrayPush(toolNames, { __proto__: null, name: fn, show: "tools." + fn });
		} else {
			arrayPush(toolNames, { __proto__: null, name: entry.name, show: "tools.call(" + jsonStringify(id) + ")" });
		}
	}
	expose("ALL_TOOLS", freeze(entries));
	expose("tools", new Proxy(freeze(table), toolsHandler));
};
