// Chapter 10: structuredClone (https://html.spec.whatwg.org, StructuredSerialize).

const toObject = Object;
const OriginalMap = Map;
const OriginalSet = Set;
const OriginalDate = Date;
const OriginalRegExp = RegExp;
const OriginalArrayBuffer = ArrayBuffer;
const OriginalDataView = DataView;
const dateTime = uncurry(Date.prototype.getTime);
const regExpSource = getter(RegExp.prototype, "source");
const regExpFlags = getter(RegExp.prototype, "flags");
const bufferTransfer = uncurry(ArrayBuffer.prototype.transfer);
const numberValue = uncurry(Number.prototype.valueOf);
const stringValue = uncurry(String.prototype.valueOf);
const booleanValue = uncurry(Boolean.prototype.valueOf);
const typedArrays = { __proto__: null };
for (const Class of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array, Float16Array, Float32Array, Float64Array]) {
	typedArrays[Class.name] = Class;
}
const errorClasses = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

const cloneError = (message) => cleanStack(new OriginalDOMException("structuredClone: " + message, "DataCloneError"));

const copyBytes = (buffer) => {
	const n = bufferByteLength(buffer);
	const copy = new OriginalArrayBuffer(n);
	typedArraySet(new OriginalUint8Array(copy), new OriginalUint8Array(buffer));
	return copy;
};

const copyProperties = (from, to, seen) => {
	const names = objectKeys(from);
	for (let i = 0; i < names.length; i++) define(to, names[i], copyOf(from[names[i]], seen), true);
	return to;
};

// How values with each prototype are copied. The probe throws on an impostor, an object that
// merely inherits from the prototype; it is then copied as an ordinary object.
const cloners = safeMap();
const cloner = (Class, probe, make) => cloners.set(Class.prototype, { __proto__: null, probe, make });
const remember = (seen, from, to) => (seen.set(from, to), to);
const same = (v) => v;

cloner(Map, getter(Map.prototype, "size"), (v, seen) => {
	const entries = pairs(v);
	const to = remember(seen, v, new OriginalMap());
	for (let i = 0; i < entries.length; i++) mapSet(to, copyOf(entries[i][0], seen), copyOf(entries[i][1], seen));
	return to;
});
cloner(Set, getter(Set.prototype, "size"), (v, seen) => {
	const values = members(v);
	const to = remember(seen, v, new OriginalSet());
	for (let i = 0; i < values.length; i++) setAdd(to, copyOf(values[i], seen));
	return to;
});
cloner(Date, dateTime, (v, seen) => remember(seen, v, new OriginalDate(dateTime(v))));
cloner(RegExp, regExpSource, (v, seen) => remember(seen, v, new OriginalRegExp(regExpSource(v), regExpFlags(v))));
for (const [Class, valueOf] of [[Boolean, booleanValue], [Number, numberValue], [String, stringValue], [BigInt, bigintValue]]) {
	cloner(Class, valueOf, (v, seen) => remember(seen, v, toObject(valueOf(v))));
}
cloner(ArrayBuffer, bufferByteLength, (v, seen) => remember(seen, v, copyBytes(v)));
cloner(SharedArrayBuffer, sharedByteLength, (v, seen) => remember(seen, v, v));
cloner(TypedArray, typedArrayLength, (v, seen) => {
	const Class = typedArrays[typedArrayTag(v)];
	const buffer = copyOf(typedArrayBuffer(v), seen);
	return remember(seen, v, new Class(buffer, typedArrayByteOffset(v), typedArrayLength(v)));
});
cloner(DataView, viewBuffer, (v, seen) => {
	const buffer = copyOf(viewBuffer(v), seen);
	return remember(seen, v, new OriginalDataView(buffer, viewByteOffset(v), viewByteLength(v)));
});
cloner(Error, same, (v, seen) => {
	const name = field(v, "name");
	const to = remember(seen, v, new (errorClasses[name] ?? OriginalError)(field(v, "message")));
	define(to, "stack", stackOf(v));
	if (hasOwn(v, "cause")) define(to, "cause", copyOf(v.cause, seen));
	return to;
});
for (const Class of [Promise, WeakMap, WeakSet, WeakRef, FinalizationRegistry, Iterator]) {
	const { name } = Class;
	cloner(Class, same, () => {
		throw cloneError("a " + name + " cannot be cloned");
	});
}

const copyOf = (v, seen) => {
	if (typeof v === "function" || typeof v === "symbol") throw cloneError(jsonParse(encode(v)) + " cannot be cloned");
	if (v === null || typeof v !== "object") return v;
	const known = seen.get(v);
	if (known !== undefined) return known;
	if (isArray(v)) {
		const to = remember(seen, v, []);
		to.length = v.length;
		return copyProperties(v, to, seen);
	}
	let p = getPrototypeOf(v);
	for (let i = 0; i < maxChain && p !== null && p !== ObjectPrototype; i++) {
		const entry = cloners.get(p);
		if (entry !== undefined) {
			let real = true;
			try {
				entry.probe(v);
			} catch {
				real = false;
			}
			if (real) return entry.make(v, seen);
		}
		p = getPrototypeOf(p);
	}
	return copyProperties(v, remember(seen, v, {}), seen);
};

expose("structuredClone", {
	structuredClone(value, options = undefined) {
		if (arguments.length === 0) throw fault(OriginalTypeError, "structuredClone: a value is needed");
		const copy = copyOf(value, safeMap());
		// What is handed over is gone afterwards; the copy is made anyway.
		const handed = options === undefined || options === null ? undefined : options.transfer;
		if (handed !== undefined) for (let i = 0; i < handed.length; i++) bufferTransfer(handed[i]);
		return copy;
	},
}.structuredClone);
