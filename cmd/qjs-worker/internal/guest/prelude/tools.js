// Chapter 6: the catalog as the guest sees it, and nested calls (SPEC 6.3, 6.4, 6.8).

const calls = safeMap(); // id → {resolve, reject, error, tool}: made and not settled
let lastCall = 0;

// A call's promise inherits from Promise.prototype by way of a proxy, which is asked for what
// promises do not have. Only code that forgot to await asks for that, and it is told so,
// instead of going on with undefined. The promise itself is an ordinary one.
const shownAs = safeWeakMap(); // promise → the expression that made it
const notAwaited = (promise, key) => {
	const shown = shownAs.get(promise) ?? "this call";
	let what = "the result of " + shown + " is used";
	let member = "";
	if (typeof key === "string") {
		what = jsonStringify(label(key)) + " is read from " + shown;
		member = key >= "0" && key < ":" ? "[" + label(key) + "]" : "." + label(key); // an index, or a name
	}
	return fault(OriginalTypeError, what + ", which is a promise and was not awaited; write (await " + shown + ")" + member);
};
const dataSymbols = safeSet(); // what only a value's use as data asks for
for (const symbol of [SymbolIterator, Symbol.asyncIterator, Symbol.toPrimitive]) dataSymbols.add(symbol);

// Names that the language reads by itself: to await a value, to convert it. No tool has one.
const hidden = safeSet();
for (const key of ["then", "toJSON"]) hidden.add(key);
for (const key of ownKeys(ObjectPrototype)) if (typeof key === "string") hidden.add(key);

// Names that are read without a member being meant: to print a value, to tell what it is.
const quiet = safeSet();
for (const key of ["inspect", "nodeType", "$$typeof", "asymmetricMatch", "length", "name", "prototype"]) quiet.add(key);

const no = () => false;
const pendingTarget = { __proto__: OriginalPromise.prototype };
define(pendingTarget, "toJSON", { toJSON() { return "[Promise: not awaited]"; } }.toJSON);
const pendingPrototype = new Proxy(pendingTarget, freeze({
	__proto__: null,
	get(target, key, promise) {
		if (key in target) return reflectGet(target, key, promise);
		if (typeof key === "symbol" ? dataSymbols.has(key) : key === "length" || key === "name" || !quiet.has(key)) throw notAwaited(promise, key);
		return undefined;
	},
	defineProperty: no,
	deleteProperty: no,
	setPrototypeOf: no,
	preventExtensions: no,
}));

const pending = (executor, shown) => {
	const promise = setPrototypeOf(new OriginalPromise(executor), pendingPrototype);
	shownAs.set(promise, shown);
	return promise;
};

// request makes a nested call: a promise that the host settles by its id. Whatever is
// wrong with the arguments rejects the promise; nothing is thrown (SPEC 6.8). error is made
// where the guest made the call, for its stack; shown is how the guest named the function;
// toolId is for errors.
const request = (error, method, tool, value, shown, wrong, toolId = tool) => {
	let resolve;
	let reject;
	const promise = pending((a, b) => {
		resolve = a;
		reject = b;
	}, shown + "(…)");
	let input = "{}";
	let bytes;
	if (wrong === undefined && typeof tool !== "string") wrong = "the first argument must be a string, not " + kindOf(tool);
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
		reject(toolError(error, shown + ": " + wrong + "; it was not started", typeof toolId === "string" ? toolId : "", "invalid_input", false));
		return promise;
	}
	const id = ++lastCall;
	board[1]++;
	calls.set(id, { __proto__: null, resolve, reject, error, tool: toolId });
	host.call(id, method, toWellFormed(tool), input);
	return promise;
};

const kindOf = (v) => (v === null ? "null" : isArray(v) ? "an array" : typeof v);

// surplus says what is wrong with the arguments of a function that takes at most n. What
// Array.prototype.map and its like add to the first (an index and the array) is not.
const surplus = (args, n, takes) => {
	if (args.length <= n || (n === 1 && args.length === 3 && typeof args[1] === "number" && isArray(args[2]))) return undefined;
	return "it takes " + takes + ", and got " + args.length + " arguments";
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

// What was asked for last and does not exist, and the frame that asked. To read it gives
// undefined, as on any object, so that code can ask whether it is there. To go on with it
// throws a TypeError that names nothing, and if that ends the run, failure says what there
// is instead.
let missed;
let missedAt;

const report = (name) => host.missed(toWellFormed(stringSlice(name, 0, maxMissed)));

// lazyObject gives an object whose members are made when they are asked for, so that ten
// thousand tools cost a cell nothing but those that it uses. To the guest it is a frozen
// object without a prototype. find gives the member for a name, or undefined; list names
// all of them, each on a line; path is how the object is called.
const lazyObject = (path, fixed, find, list) => {
	const target = { __proto__: null };
	const put = (key, value) => defineProperty(target, key, { __proto__: null, value, writable: false, enumerable: true, configurable: false });
	const keys = objectKeys(fixed);
	for (let i = 0; i < keys.length; i++) put(keys[i], fixed[keys[i]]);
	let complete = false;
	const has = (key) => {
		if (hasOwn(target, key)) return true;
		if (complete || typeof key !== "string" || hidden.has(key)) return false;
		const value = find(key);
		if (value === undefined) return false;
		put(key, value);
		return true;
	};
	const finish = () => {
		if (complete) return;
		const names = list();
		for (let at = 0; at < names.length; ) {
			const end = indexOf(names, "\n", at);
			has(stringSlice(names, at, end));
			at = end + 1;
		}
		complete = true;
		preventExtensions(target);
	};
	return new Proxy(target, freeze({
		__proto__: null,
		get(_, key) {
			if (has(key)) return target[key];
			if (typeof key === "string" && !hidden.has(key) && !quiet.has(key)) {
				missed = path + "." + key;
				missedAt = frameOf(stackOf(new OriginalError()));
				report(missed);
			}
			return undefined;
		},
		has(_, key) {
			if (has(key)) return true;
			if (typeof key === "string" && !hidden.has(key)) report(path + "." + key);
			return false;
		},
		getOwnPropertyDescriptor(_, key) {
			if (!has(key)) return undefined;
			return setPrototypeOf(getOwnPropertyDescriptor(target, key), null); // Object.prototype.get could be anything
		},
		ownKeys() {
			finish();
			return ownKeys(target);
		},
		isExtensible() {
			finish();
			return false;
		},
		preventExtensions() {
			finish();
			return true;
		},
		set: no,
		defineProperty(_, key, descriptor) { // true for what changes nothing, as freezing does
			finish();
			return defineProperty(target, key, setPrototypeOf(descriptor, null));
		},
		deleteProperty: (_, key) => !has(key),
		setPrototypeOf: (_, prototype) => prototype === null,
	}));
};
const maxMissed = 1000; // UTF-16 units

const oneInput = "one argument, the input object";

const onlyLimit = (options) => {
	try {
		const keys = objectKeys(options);
		return keys.length === 0 || (keys.length === 1 && keys[0] === "limit");
	} catch {
		return false; // a proxy's trap threw
	}
};

const tools = {
	search(query, options) {
		let wrong = surplus(arguments, 2, "a query and options");
		if (options !== undefined && (options === null || typeof options !== "object" || !onlyLimit(options))) wrong ??= "the second argument must be an object such as {limit: 5}";
		return request(new OriginalError(), "search", query, options, "tools.search", wrong);
	},
	describe(id) { return request(new OriginalError(), "describe", id, undefined, "tools.describe", surplus(arguments, 1, "one id or name")); },
	call(id, input) { return request(new OriginalError(), "call", id, input, "tools.call", surplus(arguments, 2, "an id or name, and one input object")); },
};

// toolFunction is a convenience function (SPEC 6.4).
const toolFunction = (name) => {
	const id = host.find("tools", name);
	if (id === "") return undefined;
	return { [name](input) { return request(new OriginalError(), "call", jsonParse(id), input, "tools." + name, surplus(arguments, 1, oneInput)); } }[name];
};

// setup puts the run's catalog in place, before any guest code runs. text says what there
// is of it: {tools, mcp}, both true or false.
const setup = (text) => {
	const there = jsonParse(text);
	expose("tools", lazyObject("tools", tools, toolFunction, () => host.names("tools", "")));
	// ALL_TOOLS is parsed when it is first read, and from then on an ordinary global.
	const put = (value) => define(G, "ALL_TOOLS", value);
	defineProperty(G, "ALL_TOOLS", {
		__proto__: null, enumerable: false, configurable: true, set: put,
		get() {
			const list = freeze(jsonParse(host.list()));
			put(list);
			return list;
		},
	});
	exposeAPI(there.tools);
	if (there.mcp) exposeMCP();
};
