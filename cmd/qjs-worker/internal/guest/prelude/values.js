// Chapter 2: from guest values to JSON text, by the table of VALUES.md (SPEC 4.3). The one
// serializer: output, console, tool input, the final value and errors all go through it.
//
// The engine's own JSON.stringify does the walking, the order of keys, toJSON, getters and
// the quoting; the replacer turns what JSON has no word for into something that it has. That is
// faster than any walk written in JavaScript, and it invokes each getter once. The recursion
// is native, and maxLevels is far from where the engine's stack ends.

const maxLevels = 1000;
const maxLabel = 200; // UTF-16 units of a function's or symbol's description

const label = (s) => (s.length > maxLabel ? stringSlice(s, 0, maxLabel) + "…" : s);

const functionLabel = (f) => {
	const name = getOwnPropertyDescriptor(f, "name");
	if (name === undefined || typeof name.value !== "string" || name.value === "") return "[Function]";
	return "[Function: " + label(name.value) + "]";
};

// Fields that the language gives to errors and that are not enumerable.
const errorLinks = freeze(["cause", "errors", "error", "suppressed"]);

const errorFields = (e) => {
	const out = { __proto__: null, name: e.name, message: e.message };
	for (let i = 0; i < errorLinks.length; i++) {
		const key = errorLinks[i];
		const own = getOwnPropertyDescriptor(e, key);
		if (own !== undefined && !own.enumerable) out[key] = e[key];
	}
	const names = objectKeys(e);
	for (let i = 0; i < names.length; i++) {
		const key = names[i];
		if (key !== "name" && key !== "message" && key !== "stack") out[key] = e[key];
	}
	return out;
};

const pairs = (map) => {
	const out = bareArray();
	mapForEach(map, (value, key) => arrayPush(out, [key, value]));
	return out;
};

const members = (set) => {
	const out = bareArray();
	setForEach(set, (value) => arrayPush(out, value));
	return out;
};

// Each prototype that the table has a row for, and what becomes of a value which has it
// in its chain. The makers that need the real thing throw on an impostor (an object that
// merely inherits from Map.prototype), which is then written as the plain object it is.
const special = safeMap();
special.set(Map.prototype, pairs);
special.set(Set.prototype, members);
special.set(ErrorPrototype, errorFields);
special.set(BigInt.prototype, (v) => toString(bigintValue(v)));
special.set(Promise.prototype, () => "[Promise: not awaited]");
special.set(WeakMap.prototype, () => "[WeakMap]");
special.set(WeakSet.prototype, () => "[WeakSet]");
special.set(WeakRef.prototype, () => "[WeakRef]");
special.set(FinalizationRegistry.prototype, () => "[FinalizationRegistry]");
special.set(GeneratorPrototype, () => "[Generator]");
special.set(AsyncGeneratorPrototype, () => "[AsyncGenerator]");
special.set(IteratorPrototype, () => "[Iterator]");

const binary = safeMap();
binary.set(TypedArray.prototype, (v) => typedArrayTag(v) + "(" + typedArrayLength(v) + ")");
binary.set(ArrayBuffer.prototype, (v) => "ArrayBuffer(" + bufferByteLength(v) + ")");
binary.set(SharedArrayBuffer.prototype, (v) => "SharedArrayBuffer(" + sharedByteLength(v) + ")");
binary.set(DataView.prototype, (v) => {
	try {
		return "DataView(" + viewByteLength(v) + ")";
	} catch {
		return (viewBuffer(v), "DataView(0)"); // its buffer shrank or is gone
	}
});

// A chain of prototypes can be endless if proxies answer for it.
const maxChain = 100;

// scan walks v's prototypes; found gets what to write instead of v, and whether it is binary.
const scan = (v) => {
	let p = getPrototypeOf(v);
	for (let i = 0; i < maxChain && p !== null && p !== ObjectPrototype; i++) {
		const make = special.get(p);
		if (make !== undefined) {
			// An error's fields are the guest's getters: what they throw propagates.
			if (make === errorFields) return errorFields(v);
			try {
				return make(v);
			} catch {
				return v;
			}
		}
		p = getPrototypeOf(p);
	}
	return v;
};

const binaryLabel = (v) => {
	let p = getPrototypeOf(v);
	for (let i = 0; i < maxChain && p !== null && p !== ObjectPrototype; i++) {
		const make = binary.get(p);
		if (make !== undefined) {
			try {
				return make(v);
			} catch {
				return undefined;
			}
		}
		p = getPrototypeOf(p);
	}
	return undefined;
};

// encode gives v as JSON text. onBinary, if given, is told the label of each binary value.
const encode = (v, onBinary) => {
	// The containers from the root to the one at hand, two slots each: the value, and what
	// is written for it, which is `this` in the calls for its members. Slots past depth are
	// left over and used again: nothing is allocated for a container.
	let path = null;
	let depth = 0;
	const replace = function (key, value) {
		switch (typeof value) {
			case "string":
			case "number":
			case "boolean":
			case "undefined":
				return value;
			case "function":
				return functionLabel(value);
			case "symbol":
				return label(toString(value));
			case "bigint":
				return toString(value);
		}
		if (value === null) return null;
		while (depth > 0 && path[depth - 1] !== this) depth -= 2;
		for (let i = 0; i < depth; i += 2) if (path[i] === value) return "[Circular]";
		if (depth === 2 * maxLevels) return "[too deep]";
		let written = value;
		const prototype = getPrototypeOf(value);
		if (prototype !== ObjectPrototype && prototype !== ArrayPrototype && prototype !== null && !isArray(value)) {
			const bytes = binaryLabel(value);
			if (bytes !== undefined) {
				if (onBinary !== undefined) onBinary(bytes);
				return "[" + bytes + ": binary is not supported]";
			}
			written = scan(value);
			if (typeof written === "string") return written;
		}
		if (path === null) path = setPrototypeOf([value, written], null);
		else if (depth === path.length) arrayPush(path, value, written);
		else {
			path[depth] = value;
			path[depth + 1] = written;
		}
		depth += 2;
		return written;
	};
	const text = jsonStringify(v, replace);
	return text === undefined ? "null" : text;
};

// textOf gives what text() shows: a string as it is, anything else as compact JSON.
const textOf = (v) => (typeof v === "string" ? v : encode(v));

// maxFlat is how many members an object has at most for encodeFlat to try.
const maxFlat = 16;

// encodeFlat is encode for what most calls are made with, an object literal of primitives,
// in a third of the time. It gives undefined for anything else: then nothing is
// settled yet, and only a getter before the first member of another kind has run.
const encodeFlat = (v) => {
	if (v === null || typeof v !== "object" || getPrototypeOf(v) !== ObjectPrototype || hasOwn(ObjectPrototype, "toJSON")) return undefined;
	const keys = objectKeys(v);
	if (keys.length > maxFlat) return undefined;
	let text = "";
	for (let i = 0; i < keys.length; i++) {
		const value = v[keys[i]];
		let member;
		switch (typeof value) {
			case "string":
				member = jsonStringify(value);
				break;
			case "number":
				member = finite(value) ? "" + value : "null";
				break;
			case "boolean":
				member = value ? "true" : "false";
				break;
			case "undefined":
				continue;
			default:
				if (value !== null) return undefined;
				member = "null";
		}
		text += (text === "" ? "" : ",") + jsonStringify(keys[i]) + ":" + member;
	}
	return "{" + text + "}";
};
