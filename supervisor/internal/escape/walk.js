// Lists everything that code of a cell can reach: from the global object, from what tools and
// errors bring along, and from what the language makes only by its syntax. One line for each
// object, by the path by which it was found first: a new line is something new in reach.
//
// What it calls it takes before it begins, because it also breaks the language to see what our
// own functions do then.
const { ownKeys, getPrototypeOf, getOwnPropertyDescriptor, defineProperty, apply } = Reflect;
const sourceOf = Function.prototype.toString;
const sources = Function.prototype.call.bind(sourceOf);
const includes = Function.prototype.call.bind(String.prototype.includes);

const attempt = (f) => {
	try {
		return f();
	} catch (e) {
		return e;
	}
};
const settled = async (f) => {
	try {
		return await f();
	} catch (e) {
		return e;
	}
};

// What the language makes by syntax.
function sloppy() { return arguments; }
function strict() { "use strict"; return arguments; }
class Base { static #secret = 1; method() {} get property() { return 1; } set property(v) {} static member() {} }
class Derived extends Base { constructor() { super(); this.target = new.target; } }
async function* asyncGenerator() { yield 1; }
function* generator() { yield 1; }
const tag = (parts) => parts;
const syntax = {
	function: sloppy, arrow: () => 1, async: async function () {}, asyncArrow: async () => 1, generator, asyncGenerator,
	method: { method() {} }.method, asyncMethod: { async method() {} }.method, class: Base, derived: new Derived(), bound: sloppy.bind(null, 1),
	getter: getOwnPropertyDescriptor(Base.prototype, "property").get,
	arguments: sloppy(1), strictArguments: strict(1), template: tag`a${1}b`, regexp: /(?<a>x)/dg, match: /(?<a>x)/d.exec("x"),
	generatorObject: generator(), asyncGeneratorObject: asyncGenerator(),
	compiled: new Function("return 1"), evaluated: (0, eval)("(function () {})"),
	asyncCompiled: new (async function () {}).constructor("return 1"),
};

// What the library makes.
const registry = new FinalizationRegistry(() => {});
const revocable = Proxy.revocable({}, {});
const stack = new DisposableStack();
const library = {
	arrayIterator: [][Symbol.iterator](), stringIterator: ""[Symbol.iterator](), mapIterator: new Map()[Symbol.iterator](),
	setIterator: new Set()[Symbol.iterator](), matchIterator: "".matchAll(/x/g), wrapIterator: Iterator.from({ next() { return { done: true }; } }),
	mapHelper: [].values().map((x) => x), filterHelper: [].values().filter((x) => x), takeHelper: [].values().take(1),
	dropHelper: [].values().drop(1), flatHelper: [].values().flatMap((x) => x),
	concatIterator: attempt(() => Iterator.concat([])),
	revocable, proxy: new Proxy({}, {}), registry, reference: new WeakRef({}), stack, asyncStack: new AsyncDisposableStack(),
	buffer: new ArrayBuffer(8, { maxByteLength: 16 }), shared: new SharedArrayBuffer(8), view: new DataView(new ArrayBuffer(8)), bytes: new Uint8Array(8),
	number: Object(1), text: Object("x"), symbol: Object(Symbol()), bigint: Object(1n), boolean: Object(true), date: new Date(0),
	resolvers: Promise.withResolvers(), promise: Promise.resolve(1), allSettled: await Promise.allSettled([1, Promise.reject(2)]),
	descriptor: getOwnPropertyDescriptor(globalThis, "tools"),
	url: new URL("https://x/?a=b"), pairs: new URL("https://x/?a=b").searchParams.entries(), decoder: new TextDecoder(), encoder: new TextEncoder(),
	encoded: new TextEncoder().encodeInto("x", new Uint8Array(8)), clone: structuredClone({ a: [new Map(), new Error("x")] }),
	timer: setTimeout(() => {}, 0), captured: attempt(() => { const o = {}; Error.captureStackTrace(o); return o; }),
};

// What the engine and our functions throw.
const deep = () => deep();
const errors = {
	type: attempt(() => null.x), reference: attempt(() => eval("undeclared")), range: attempt(() => new Array(-1)), recursion: attempt(deep),
	syntax: attempt(() => eval("{")), json: attempt(() => JSON.parse("{")), regexp: attempt(() => new RegExp("(")), uri: attempt(() => decodeURIComponent("%")),
	mix: attempt(() => 1n + 1), long: attempt(() => "x".repeat(2 ** 31)), aggregate: await settled(() => Promise.any([])),
	suppressed: attempt(() => { using a = { [Symbol.dispose]() { throw 1; } }; throw 2; }),
	dom: attempt(() => atob("*")), clone: attempt(() => structuredClone(() => 1)), url: attempt(() => new URL("x")), timer: attempt(() => setTimeout(1)),
	random: attempt(() => crypto.getRandomValues(new Float64Array(1))), poisoned: attempt(() => strict().callee), constant: attempt(() => tools.call = 1),
	module: await settled(() => eval("import('std')")), symbol: attempt(() => text(Symbol()).x), thrown: attempt(() => json({ get a() { throw new Error("x"); } })),
};

// What tools give.
const rejection = tools.reject();
const results = {
	object: await tools.object(), array: await tools.array(), text: await tools.text(), nothing: await tools.nothing(),
	promise: tools.object(), hits: await tools.search("object"), description: await tools.describe("object"),
	refused: await settled(() => tools.refuse()), rejected: await settled(() => rejection), rejectedPromise: rejection,
	unknown: await settled(() => tools.call("no such tool")), wrong: await settled(() => tools.call(1)), invalid: await settled(() => tools.strict({ x: 1 })),
	binary: await settled(() => tools.echo(new Uint8Array(1))),
	undescribed: await settled(() => tools.describe("no such tool")), unsearched: await settled(() => tools.search("x", 1)),
};

// What our functions hand to code of the cell: this, arguments, and what comes with them.
const handed = {};
const hand = (name) => function () { if (!(name in handed)) handed[name] = { this: this, arguments }; return undefined; };
json({ toJSON: hand("toJSON") });
json(new Proxy({ a: 1 }, { ownKeys: function (t) { hand("ownKeys").apply(this, arguments); return ownKeys(t); }, get: function (t, k) { hand("get").apply(this, arguments); return t[k]; }, getPrototypeOf: function (t) { hand("getPrototypeOf").apply(this, arguments); return getPrototypeOf(t); } }));
await tools.echo({ get a() { hand("input").call(this); return 1; } });
text(`${{ toString: hand("toString") }}`);
await new Promise((resolve) => setTimeout(function () { hand("timer").apply(this, arguments); resolve(); }, 0, 1));
await new Promise((resolve) => queueMicrotask(function () { hand("microtask").apply(this, arguments); resolve(); }));
await tools.echo({}).then(function () { hand("then").apply(this, arguments); });
await tools.reject().catch(function () { hand("catch").apply(this, arguments); });
new Promise(function () { hand("executor").apply(this, arguments); });
await { then: function (resolve) { hand("thenable").apply(this, arguments); resolve(); } };
new URLSearchParams([["a", "b"]]).forEach(hand("pairs"));
structuredClone({ get a() { hand("clone").call(this); return 1; } });

// What our functions leave in the hands of whoever patched the language: every method of every
// intrinsic passes its this on while our functions run, and names that we use are accessors of
// Object.prototype.
const patched = { this: [], arguments: [] };
const seenByPatches = new Set();
const has = Function.prototype.call.bind(Set.prototype.has), add = Function.prototype.call.bind(Set.prototype.add);
let recording = false, kept = 0;
const keep = (v, list) => {
	if (!recording || v === null || (typeof v !== "object" && typeof v !== "function") || v === globalThis) return;
	recording = false;
	if (!has(seenByPatches, v)) {
		add(seenByPatches, v);
		defineProperty(list, kept++, { __proto__: null, value: v, enumerable: true, configurable: true, writable: true });
	}
	recording = true;
};
const undo = [];
let undone = 0;
const patch = (o, key, d) => {
	const was = getOwnPropertyDescriptor(o, key);
	try {
		if (!defineProperty(o, key, d)) return;
	} catch {
		return;
	}
	undo[undone++] = { o, key, was };
};
const intrinsics = [Array, Object, Function, String, Number, Boolean, BigInt, Symbol, Map, Set, WeakMap, WeakSet, WeakRef, Promise, RegExp, Error, TypeError, Date, ArrayBuffer, DataView, Iterator, getPrototypeOf(Uint8Array), Uint8Array, Float64Array, Proxy]
	.flatMap((C) => [C, C.prototype]).concat([JSON, Math, Reflect, getPrototypeOf([].values()), getPrototypeOf(new Map().values()), getPrototypeOf(new Set().values()), getPrototypeOf(""[Symbol.iterator]()), getPrototypeOf(generator), getPrototypeOf(generator).prototype])
	.filter((o) => o !== undefined && o !== Function.prototype);
const spied = new Set();
for (const o of intrinsics) for (const key of ownKeys(o)) {
	const d = getOwnPropertyDescriptor(o, key);
	if (typeof d.value !== "function" || key === "constructor" || !d.configurable) continue;
	const original = d.value;
	const spy = function () {
		keep(this, patched.this);
		for (let i = 0; i < arguments.length; i++) keep(arguments[i], patched.arguments);
		return new.target === undefined ? apply(original, this, arguments) : Reflect_construct(original, arguments, new.target);
	};
	spied.add(spy);
	undo.push({ o, key, was: d, d: { __proto__: null, value: spy, configurable: true, writable: true, enumerable: d.enumerable } });
}
var Reflect_construct = Reflect.construct;
const spies = undo.splice(0);
for (const s of spies) defineProperty(s.o, s.key, s.d);
for (const key of ["up", "level", "written", "due", "next", "child", "resolve", "reject", "error", "tool", "fn", "show", "name", "id", "then", "get", "set", "value", "writable", "enumerable", "configurable", "host", "call", "method", "input", "message", "code", "started", "toolId", "callback", "args", "limit", "0", "1", "2", "3"]) {
	for (const o of key in [0, 1, 2, 3] ? [Object.prototype, Array.prototype] : [Object.prototype]) {
		patch(o, key, { __proto__: null, get() { keep(this, patched.this); return undefined; }, set(v) { keep(this, patched.this); keep(v, patched.arguments); defineProperty(this, key, { __proto__: null, value: v, writable: true, enumerable: true, configurable: true }); }, configurable: true });
	}
}
recording = true;
let pending;
try {
	text("patched"); json({ a: [1, { b: new Map([[1, 2]]) }] }); console.log("%s", { a: 1 }); structuredClone([1, { a: 1 }]);
	pending = [tools.echo({ a: [1] }), tools.search("object", { limit: 1 }), tools.reject(), tools.call(1)];
	clearTimeout(setTimeout(() => {}, 1)); new URL("https://a/b?c=d").searchParams.append("e", "f"); new TextDecoder().decode(new TextEncoder().encode("x")); btoa("x"); crypto.randomUUID();
	for (let i = 0; i < 4; i++) await pending[i].then(undefined, () => {});
} finally {
	recording = false;
	for (let i = undone - 1; i >= 0; i--) {
		const { o, key, was } = undo[i];
		if (was === undefined) delete o[key];
		else defineProperty(o, key, was);
	}
	for (const s of spies) defineProperty(s.o, s.key, s.was);
}

// The walk itself: breadth first, each root to its end before the next, so that what the
// global object has keeps its name there.
const maxObjects = 20000;
const seen = new Map(), lines = [];
let queue = [];
const isIndex = (key) => typeof key === "string" && /^\d+$/.test(key);
const keyOf = (key) => isIndex(key) ? `[${key}]` : (typeof key === "symbol" ? "[" + String(key) + "]" : /^[A-Za-z_$][\w$]*$/.test(key) ? "." + key : "[" + JSON.stringify(key) + "]");

// describe says what v is. Its own name and length are those that were there at birth,
// unless somebody changed them.
const describe = (v) => {
	if (typeof v !== "function") {
		const tagged = attempt(() => Object.prototype.toString.call(v));
		return typeof tagged === "string" ? tagged.slice(8, -1).toLowerCase() : "object";
	}
	const name = getOwnPropertyDescriptor(v, "name"), length = getOwnPropertyDescriptor(v, "length");
	const ours = attempt(() => includes(sources(v), "[native code]")) === true;
	return `function ${name === undefined ? "-" : JSON.stringify(name.value) ?? "accessor"}/${length === undefined ? "-" : length.value}${ours ? "" : " of the cell"}`;
};
const visit = (v, path, note = "") => {
	if (v === null || (typeof v !== "object" && typeof v !== "function")) return;
	if (seen.has(v)) return;
	if (seen.size >= maxObjects) throw new Error(`more than ${maxObjects} objects can be reached; the last is ${path}`);
	seen.set(v, path);
	lines.push(`${path}: ${note}${describe(v)}`);
	queue.push([v, path]);
};
const drain = () => {
	while (queue.length > 0) {
		const now = queue;
		queue = [];
		for (const [v, path] of now) {
			visit(attempt(() => getPrototypeOf(v)), path + ".[[Prototype]]");
			for (const key of attempt(() => ownKeys(v)) ?? []) {
				const at = path + keyOf(key);
				const d = attempt(() => getOwnPropertyDescriptor(v, key));
				if (d === undefined || d instanceof Error) continue;
				if ("value" in d) {
					// Plain values lead no further, but a name that was not there before is news.
					if (Object(d.value) !== d.value && !isIndex(key) && !(typeof v === "function" && (key === "name" || key === "length"))) lines.push(`${at}: ${typeof d.value}`);
					visit(d.value, at);
					continue;
				}
				lines.push(`${at}: accessor${d.get === undefined ? "" : " get"}${d.set === undefined ? "" : " set"}`);
				visit(d.get, at + ".[[Get]]");
				visit(d.set, at + ".[[Set]]");
			}
			// What the getters of its prototypes give for it.
			for (let p = v, i = 0; p !== null && i < 10; p = attempt(() => getPrototypeOf(p)), i++) {
				if (typeof p !== "object" && typeof p !== "function") break;
				for (const key of attempt(() => ownKeys(p)) ?? []) {
					const d = attempt(() => getOwnPropertyDescriptor(p, key));
					if (d === undefined || typeof d.get !== "function") continue;
					let got;
					try {
						got = apply(d.get, v, []);
					} catch (e) {
						visit(getPrototypeOf(e), `${path}${keyOf(key)}.[[Thrown]].[[Prototype]]`);
						continue;
					}
					visit(got, path + keyOf(key) + "()");
				}
			}
		}
	}
};
visit(globalThis, "globalThis");
drain();
for (const [group, members] of Object.entries({ syntax, library, errors, results, handed })) {
	for (const [name, v] of Object.entries(members)) {
		visit(v, group + "." + name);
		drain();
	}
}
// Of what the patches saw only what the walk does not know by now is news: the values that
// this cell made itself, and what of ours ran into its hands.
for (const v of [...Object.values(patched.this), ...Object.values(patched.arguments)]) {
	if (seen.has(v) || spied.has(v)) continue;
	const what = describe(v), prototype = attempt(() => getPrototypeOf(v));
	lines.push(`patched: ${what}, ${prototype === null ? "without prototype" : seen.get(prototype) ?? "of an unknown prototype"}, keys ${attempt(() => ownKeys(v).map(String).join(" ")).slice?.(0, 80)}`);
}
return [...new Set(lines)].sort();
