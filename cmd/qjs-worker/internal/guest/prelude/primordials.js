// Chapter 1: what the guest can patch later, taken while it is still the engine's own.
//
// All chapters are one strict function body, in the order of prelude.go. Code that runs
// while a cell is alive uses only what this chapter took: no method call on a value whose
// prototype the guest can reach, no for-of, no spread of an array, no destructuring of one
// (all three ask Symbol.iterator), no index assignment past an array's end (a setter on
// Array.prototype would see it). Object and array literals, own properties of objects
// without a prototype, and closures are safe.

const G = globalThis;
const { apply, ownKeys, get: reflectGet, getPrototypeOf, defineProperty, getOwnPropertyDescriptor } = Reflect;
const { keys: objectKeys, setPrototypeOf, freeze, preventExtensions, is: sameValue, hasOwn } = Object;
const { isArray } = Array;
const { parse: jsonParse, stringify: jsonStringify } = JSON;
const { floor, trunc, min, max } = Math;
const { isFinite: finite } = Number;
const { fromCharCode, fromCodePoint } = String;
const isView = ArrayBuffer.isView;
const SymbolIterator = Symbol.iterator;
const SymbolToStringTag = Symbol.toStringTag;
const toString = String;
const toNumber = Number;
const OriginalPromise = Promise;
const OriginalError = Error;
const OriginalTypeError = TypeError;
const OriginalRangeError = RangeError;
const OriginalDOMException = DOMException;
const ObjectPrototype = Object.prototype;
const ArrayPrototype = Array.prototype;
const ErrorPrototype = Error.prototype;
const AsyncGeneratorPrototype = getPrototypeOf(async function* () {}).prototype;
const GeneratorPrototype = getPrototypeOf(function* () {}).prototype;
const IteratorPrototype = Iterator.prototype;
const TypedArray = getPrototypeOf(Uint8Array);

// uncurry(f)(self, a) is f.call(self, a) with a call that cannot be patched.
const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const getter = (prototype, key) => uncurry(getOwnPropertyDescriptor(prototype, key).get);

const charCodeAt = uncurry(String.prototype.charCodeAt);
const codePointAt = uncurry(String.prototype.codePointAt);
const stringSlice = uncurry(String.prototype.slice);
const indexOf = uncurry(String.prototype.indexOf);
const lastIndexOf = uncurry(String.prototype.lastIndexOf);
const startsWith = uncurry(String.prototype.startsWith);
const endsWith = uncurry(String.prototype.endsWith);
const lowerCase = uncurry(String.prototype.toLowerCase);
const toWellFormed = uncurry(String.prototype.toWellFormed);
const normalize = uncurry(String.prototype.normalize);
const padEnd = uncurry(String.prototype.padEnd);
const numberToString = uncurry(Number.prototype.toString);
const toFixed = uncurry(Number.prototype.toFixed);
const bigintValue = uncurry(BigInt.prototype.valueOf);
const arrayPush = uncurry(Array.prototype.push);
const arrayPop = uncurry(Array.prototype.pop);
const mapIteratorNext = uncurry(getPrototypeOf(new Map().values()).next);
const mapForEach = uncurry(Map.prototype.forEach);
const mapSet = uncurry(Map.prototype.set);
const setForEach = uncurry(Set.prototype.forEach);
const setAdd = uncurry(Set.prototype.add);
const promiseThen = uncurry(Promise.prototype.then);
const typedArrayTag = getter(TypedArray.prototype, SymbolToStringTag);
const typedArrayLength = getter(TypedArray.prototype, "length");
const typedArrayBuffer = getter(TypedArray.prototype, "buffer");
const typedArrayByteOffset = getter(TypedArray.prototype, "byteOffset");
const typedArrayByteLength = getter(TypedArray.prototype, "byteLength");
const typedArraySet = uncurry(TypedArray.prototype.set);
const bufferByteLength = getter(ArrayBuffer.prototype, "byteLength");
const sharedByteLength = getter(SharedArrayBuffer.prototype, "byteLength");
const viewByteLength = getter(DataView.prototype, "byteLength");
const viewByteOffset = getter(DataView.prototype, "byteOffset");
const viewBuffer = getter(DataView.prototype, "buffer");

// safe(Class) gives a function that makes collections of ours. They have a prototype
// of their own, which no guest code can reach, so their methods can be called plainly.
const safe = (Class) => {
	const prototype = { __proto__: null };
	for (const key of ownKeys(Class.prototype)) {
		defineProperty(prototype, key, getOwnPropertyDescriptor(Class.prototype, key));
	}
	freeze(prototype);
	return () => setPrototypeOf(new Class(), prototype);
};
const safeMap = safe(Map);
const safeSet = safe(Set);
const safeWeakMap = safe(WeakMap);
const safeWeakSet = safe(WeakSet);
// An array without a prototype: neither toJSON nor an index setter of the guest's applies.
const bareArray = () => setPrototypeOf([], null);

// define(o, key, value) makes a property as the language's own are: writable, configurable,
// not enumerable. A descriptor without a prototype: Object.prototype.get could be anything.
const define = (o, key, value, enumerable = false) => {
	defineProperty(o, key, { __proto__: null, value, writable: true, enumerable, configurable: true });
};

// expose(name, value) makes a global, which a cell may replace or shadow.
const expose = (name, value) => {
	define(G, name, value);
};

// Error.prepareStackTrace would hand the functions of these chapters, as they stand on the
// stack, to the guest (CallSite.getFunction); the engine reads it from a slot that only this
// accessor sets.
delete Error.prepareStackTrace;

// What InternalError makes cannot be caught: it is how the engine says "interrupted" and
// "out of memory". A guest that could make one would forge the end of its run (SPEC 11.2).
// The engine's own errors still have its prototype, whose constructor leads to Error.
Object.defineProperty(InternalError.prototype, "constructor", { value: Error, writable: false, enumerable: false, configurable: false });
delete globalThis.InternalError;

// What the host reads from memory, without a call: the run's outcome (0 running, 1
// completed, 2 failed), its unsettled calls and open yields together, its live timers, and
// its open yields.
const board = new Float64Array(4);
