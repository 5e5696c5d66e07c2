// Attempts to break out of a cell with the means of the language. Each gives undefined if it
// was refused, or says what it got; an exception is a refusal, too. Its value is the list of outcomes.
//
// Source text that names modules is in strings, put together: a cell that says import itself
// does not run at all.
const { ownKeys, getPrototypeOf, getOwnPropertyDescriptor, defineProperty, apply } = Reflect;
const list = [];
const attempt = (name, make) => { list.push({ name, make }); };

const AsyncFunction = (async () => {}).constructor;
const GeneratorFunction = (function* () {}).constructor;
const imports = "imp" + "ort";
const isObject = (v) => v !== null && (typeof v === "object" || typeof v === "function");
const shown = (v) => String(isObject(v) ? Object.prototype.toString.call(v) + " " + ownKeys(v).slice(0, 8).map(String).join(",") : v).slice(0, 200);

// resolves says whether a call that must be refused was answered.
let refusal = ""; // the last one
const resolves = async (call) => {
	let value;
	try {
		value = await call();
	} catch (e) {
		refusal = String(e?.message ?? e);
		return undefined;
	}
	return "answered with " + JSON.stringify(value)?.slice(0, 200);
};
const all = async (tries) => {
	for (const t of tries) {
		const got = await t();
		if (got !== undefined) return got;
	}
	return undefined;
};

// put appends to an array past any setter that Array.prototype may have.
const put = (a, value) => defineProperty(a, a.length, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

// withPatched puts properties in place while f runs, and then what was there before.
const withPatched = async (patches, f) => {
	const undo = [];
	try {
		for (let i = 0; i < patches.length; i++) { // for-of would call what is patched
			const o = patches[i][0], key = patches[i][1], d = patches[i][2];
			const was = getOwnPropertyDescriptor(o, key);
			try { defineProperty(o, key, { __proto__: null, configurable: true, ...d }); } catch { continue; }
			put(undo, [o, key, was]);
		}
		return await f();
	} finally {
		for (let i = undo.length - 1; i >= 0; i--) {
			if (undo[i][2] === undefined) delete undo[i][0][undo[i][1]];
			else defineProperty(undo[i][0], undo[i][1], undo[i][2]);
		}
	}
};

// useOurs calls all that is given to cells. No method of the language is used: they may be broken.
const useOurs = async () => {
	text("a"); text({ a: [1] }); json({ a: new Map([[1, { b: 1 }]]) }); console.log("%s", 1, { a: 1 });
	const calls = [tools.echo({ a: 1, b: [{ c: 1 }] }), tools.call("echo", [1, 2]), tools.search("echo", { limit: 1 }), tools.describe("echo"), tools.refuse({}), tools.call(1), tools.strict({})];
	const id = setTimeout(() => {}, 0);
	clearTimeout(id);
	const each = setInterval(() => {}, 1);
	clearInterval(each);
	queueMicrotask(() => {});
	structuredClone({ a: [1] });
	try { atob("*"); } catch {}
	try { setTimeout(1); } catch {}
	try { new URL("x"); } catch {}
	const url = new URL("https://a/?b=c");
	url.searchParams.append("d", "e");
	new TextDecoder().decode(new TextEncoder().encode("x"));
	crypto.randomUUID();
	crypto.getRandomValues(new Uint8Array(4));
	performance.now();
	for (let i = 0; i < 7; i++) try { await calls[i]; } catch {}
};

// Modules and what hosts usually give.

const modules = ["std", "os", "bjson", "qjs:std", "qjs:os", "qjs:bjson", "node:fs", "fs", "file:///etc/passwd", "/etc/passwd", "./cell.js", "data:text/javascript,export default 1", "https://example.com/x.js", "codemode:prelude.js", ""];
attempt("import by direct eval", () => all(modules.map((m) => () => resolves(() => eval(`${imports}(${JSON.stringify(m)})`)))));
attempt("import by indirect eval", () => all(modules.map((m) => () => resolves(() => (0, eval)(`${imports}(${JSON.stringify(m)})`)))));
attempt("import by Function", () => all(modules.map((m) => () => resolves(() => Function(`return ${imports}(${JSON.stringify(m)})`)()))));
attempt("import by the constructor of async functions", () => all(modules.map((m) => () => resolves(() => AsyncFunction(`return await ${imports}(${JSON.stringify(m)})`)()))));
attempt("import with attributes", () => all(["json", "text", "bytes", "bytecode"].map((type) => () => resolves(() => Function(`return ${imports}("/etc/passwd", { with: { type: "${type}" } })`)()))));
attempt("import of an object that changes", () => {
	let n = 0;
	const specifier = { toString: () => (n++ === 0 ? "" : "std") };
	return resolves(() => Function("s", `return ${imports}(s)`)(specifier));
});
attempt("import declaration in eval", () => resolves(() => (0, eval)(`${imports} * as std from "std"; std`)));
attempt("export declaration in eval", () => resolves(() => (0, eval)("export default 1")));
attempt("import.meta", () => all([() => resolves(() => eval(`${imports}.meta`)), () => resolves(() => Function(`return ${imports}.meta`)()), () => resolves(() => (0, eval)(`${imports}.meta.url`))]));
attempt("import.source and import.defer", () => all(["source", "defer"].map((k) => () => resolves(() => Function(`return ${imports}.${k}("std")`)()))));
attempt("globals of other hosts", () => {
	const names = "require module exports process Buffer global window self document navigator Deno Bun WebAssembly fetch XMLHttpRequest WebSocket EventSource Worker SharedWorker importScripts BroadcastChannel MessageChannel postMessage caches indexedDB localStorage Atomics ShadowRealm Realm Compartment std os bjson print scriptArgs load loadFile loadScript loadModule read readline readFile writeFile quit exit gc __loadScript evalScript $262 $vm d8 Packages Java java ActiveXObject WScript host bridge control board primordials __host__ __bridge__ InternalError CallSite setImmediate Intl Temporal".split(" ");
	const found = names.filter((n) => (0, eval)("typeof " + n) !== "undefined" || n in globalThis);
	return found.length > 0 ? found.join(" ") : undefined;
});
attempt("names of the prelude", () => {
	const names = "host calls lastCall request settle refuse setup table base toolsHandler missedTool expose define encode encodeFlat timers yields unhandled complete fail uncaught run rejected board result reason safeMap OriginalPromise OriginalError toolErrors emitText G polyfill".split(" ");
	const found = names.filter((n) => { try { return (0, eval)(n) !== undefined; } catch { return false; } });
	return found.length > 0 ? found.join(" ") : undefined;
});
attempt("std.evalScript and os.open by any object", () => {
	const names = new Set("evalScript loadScript loadFile loadModule urlGet popen exec getenv setenv getenviron readdir realpath remove rename tmpfile fdopen compileModule readBytecode writeBytecode dlopen spawn syscall pipe2 waitpid kill isatty setReadHandler ttySetRaw".split(" "));
	const seen = new Set(), queue = [globalThis];
	while (queue.length > 0) {
		const v = queue.pop();
		if (!isObject(v) || seen.has(v)) continue;
		seen.add(v);
		for (const key of ownKeys(v)) {
			const d = getOwnPropertyDescriptor(v, key);
			if (typeof key === "string" && names.has(key) && !(v === RegExp.prototype && key === "exec")) return key + " of " + shown(v);
			queue.push(d?.value, d?.get, d?.set);
		}
		queue.push(getPrototypeOf(v));
	}
	return undefined;
});
attempt("setTimeout of source text", async () => {
	globalThis.ran = undefined;
	for (const f of [setTimeout, setInterval, queueMicrotask]) try { f("globalThis.ran = 1", 0); } catch {}
	await new Promise((resolve) => setTimeout(resolve, 5));
	return globalThis.ran === 1 ? "it ran" : undefined;
});
attempt("streams of the console", () => {
	const found = ["_stdout", "_stderr", "Console", "context", "memory", "profile", "takeHeapSnapshot", "_times"].filter((k) => k in console);
	return found.length > 0 ? found.join(" ") : undefined;
});

// Realms and the functions around us.

attempt("constructors of everything lead to this realm", () => {
	const seen = new Set(), queue = [globalThis, [].values(), new Map().values(), (function* () {})(), (async function* () {})(), async () => {}];
	let makers = 0;
	while (queue.length > 0) {
		const v = queue.pop();
		if (!isObject(v) || seen.has(v)) continue;
		seen.add(v);
		let maker;
		try { maker = v.constructor?.constructor; } catch { continue; }
		if (typeof maker === "function" && maker !== Object) {
			let g;
			try { g = maker("return this")(); } catch { g = globalThis; }
			if (isObject(g) && g !== globalThis && Object.prototype.toString.call(g) === "[object global]") return shown(v);
			if (maker !== Function && maker !== AsyncFunction && maker !== GeneratorFunction && Function.prototype.toString.call(maker) === Function.prototype.toString.call(Function)) return "another Function by " + shown(v);
			makers++;
		}
		for (const key of ownKeys(v)) {
			const d = getOwnPropertyDescriptor(v, key);
			queue.push(d?.value, d?.get, d?.set);
		}
		queue.push(getPrototypeOf(v));
	}
	return makers === 0 ? "nothing was tried" : undefined;
});
attempt("Function of what tools give", async () => {
	const values = [await tools.object(), await tools.array(), tools.echo, tools, ALL_TOOLS, text, console, await tools.refuse().catch((e) => e), tools.echo()];
	for (const v of values) {
		const g = v?.constructor?.constructor?.("return this")();
		if (g !== undefined && g !== globalThis) return "another global object by " + shown(v);
	}
	return undefined;
});
attempt("caller and arguments of our functions", () => {
	const got = [];
	function inside() {
		for (const f of [inside, arguments.callee, text, json, tools.call, tools.echo, setTimeout]) {
			for (const key of ["caller", "arguments"]) {
				try { if (isObject(f[key]) && f[key] !== arguments) got.push(f.name + "." + key); } catch {}
			}
		}
		try { if (isObject(arguments.callee.caller)) got.push("callee.caller"); } catch {}
		return 1;
	}
	json({ toJSON: inside });
	text({ get a() { return inside(); } });
	new URLSearchParams("a=b").forEach(inside);
	return got.length > 0 ? got.join(" ") : undefined;
});
attempt("call sites by Error.prepareStackTrace", () => {
	const got = [];
	return withPatched([[Error, "prepareStackTrace", { value(e, sites) { put(got, sites); return ""; } }], [Error, "stackTraceLimit", { value: 1000, writable: true }]], async () => {
		json({ get a() { return new Error("x").stack; } });
		const o = {};
		Error.captureStackTrace?.(o);
		o.stack;
		for (const f of [() => setTimeout(1), () => tools.call = 1, () => atob("*")]) try { f(); } catch (e) { e.stack; }
		try { await tools.call(1); } catch (e) { e.stack; }
		return got.length > 0 ? "the hook got " + shown(got[0]) : undefined;
	});
});
attempt("host paths in stacks and messages", async () => {
	const got = [];
	const look = (e) => {
		for (const s of [e?.stack, e?.message, e?.fileName, String(e)]) {
			if (typeof s === "string" && /(^|[\s("'=])\/(home|root|work|usr|tmp|etc|proc|build|go)\/|\.go:\d|wazero|goroutine|0x[0-9a-f]{8}|[A-Z]:\\/.test(s)) got.push(s.slice(0, 200));
		}
	};
	const throwers = [() => null.x, () => { (function f() { f(); })(); }, () => eval("{"), () => JSON.parse("{"), () => new RegExp("("), () => "x".repeat(2 ** 31), () => setTimeout(1), () => structuredClone(() => 1),
		() => json({ get a() { throw new Error("x"); } }), () => text({ toJSON() { throw new Error("x"); } }), () => Function("}"), () => new URL("x"), () => crypto.getRandomValues(1), () => atob("*"), () => (0, eval)("(function g() { throw new Error('x') })()")];
	for (const f of throwers) try { f(); } catch (e) { look(e); }
	for (const f of [() => tools.call(1), () => tools.call("x"), () => tools.refuse(), () => tools.reject(), () => tools.strict({}), () => tools.echo(1n), () => tools.echo(new Uint8Array(1)), () => eval(imports + "('std')"), () => tools.search(1)]) try { await f(); } catch (e) { look(e); }
	return got.length > 0 ? got.join(" | ") : undefined;
});
attempt("stackTraceLimit that is an accessor", () => withPatched([[Error, "stackTraceLimit", { get() { throw new Error("limit"); } }]], async () => {
	try { await tools.call(1); } catch (e) { return typeof e.stack === "string" || e.stack === undefined ? undefined : shown(e.stack); }
	return undefined;
}));
attempt("errors that nobody may catch", () => {
	// InternalError marks what the engine stops for. Who can make one forges the end of a run.
	for (const f of [() => (function f() { f(); })(), () => "x".repeat(2 ** 31), () => new Array(-1), () => String.prototype.padEnd.call("x", 2 ** 31), () => new RegExp("(".repeat(5000) + ")".repeat(5000)), () => JSON.parse("[".repeat(100000))]) {
		try {
			f();
		} catch (e) {
			const C = e.constructor;
			if (![Error, RangeError, TypeError, SyntaxError].includes(C)) return "made by " + C?.name;
			if (getPrototypeOf(e).constructor.name === "InternalError") return "InternalError";
		}
	}
	return undefined;
});
attempt("bytecode", () => {
	const got = [];
	for (const f of [() => structuredClone(tools.call), () => structuredClone(Function), () => (0, eval)(new Uint8Array([0x18, 0, 0, 0])) instanceof Uint8Array ? 0 : 1, () => Function("\u0018\u0000\u0000\u0000")]) {
		try { const v = f(); if (v) got.push(shown(v)); } catch {}
	}
	for (const f of [text, json, tools.call, tools.echo, setTimeout, URL]) if (!Function.prototype.toString.call(f).includes("[native code]")) got.push("source of " + f.name);
	return got.length > 0 ? got.join(" ") : undefined;
});

// Breaking the language under the bridge.

const recorder = () => {
	const got = [];
	const note = (what, v) => { if (got.length < 20) put(got, what + ": " + typeof v); };
	return { got, note };
};
const names = ["resolve", "reject", "error", "tool", "fn", "show", "due", "next", "child", "sequence", "host", "call", "method", "input", "callback", "fire", "limit", "id"];
attempt("setters on Object.prototype see objects of the bridge", () => {
	const { got, note } = recorder();
	return withPatched(names.map((key) => [Object.prototype, key, { set(v) { note("set " + key, v); } }]), async () => {
		await useOurs();
		return got.length > 0 ? got.join(", ") : undefined;
	});
});
attempt("getters on Object.prototype answer for the bridge", () => {
	const { got, note } = recorder();
	const bridge = names.filter((k) => k !== "limit" && k !== "next"); // options of a search are the cell's own
	return withPatched(bridge.map((key) => [Object.prototype, key, { get() { note("get " + key, this); return undefined; }, set() {} }]), async () => {
		await useOurs();
		return got.length > 0 ? got.join(", ") : undefined;
	});
});
attempt("setters on Array.prototype see arrays of the bridge", () => {
	const { got, note } = recorder();
	const mine = new Set();
	return withPatched([0, 1, 2, 3].map((i) => [Array.prototype, i, { set(v) { if (isObject(v) && !mine.has(this)) note("set " + i, v); } }]), async () => {
		try { tools.echo({ a: 1 }).catch(() => {}); tools.search("x").catch(() => {}); setTimeout(() => {}, 0); text("x"); await tools.object(); } catch {}
		return got.filter((s) => s.endsWith("function")).length > 0 ? got.join(", ") : undefined;
	});
});
attempt("methods of the language that the bridge calls", () => {
	const { got } = recorder();
	const patches = [];
	const own = new Set(["constructor"]);
	for (const [name, o] of Object.entries({ "Map.prototype": Map.prototype, "Set.prototype": Set.prototype, "WeakSet.prototype": WeakSet.prototype, "WeakMap.prototype": WeakMap.prototype, "Array.prototype": Array.prototype, "String.prototype": String.prototype, "RegExp.prototype": RegExp.prototype, "Promise.prototype": Promise.prototype, Promise, JSON, Object, Reflect, "Number.prototype": Number.prototype, Math, Array, String, Number })) {
		for (const key of ownKeys(o)) {
			const d = getOwnPropertyDescriptor(o, key);
			if (typeof d.value !== "function" || own.has(key) || !d.configurable) continue;
			const f = d.value;
			patches.push([o, key, { value: function () { put(got, name + "." + String(key)); return new.target === undefined ? apply(f, this, arguments) : undefined; }, writable: true }]);
		}
	}
	return withPatched(patches, async () => {
		text("a"); text({ a: [1] }); json({ a: 1 });
		const calls = [tools.echo({ a: 1 }), tools.search("echo", { limit: 1 }), tools.refuse({}), tools.call(1)];
		clearTimeout(setTimeout(() => {}, 0));
		for (let i = 0; i < 4; i++) try { await calls[i]; } catch {}
		if (got.length === 0) return undefined;
		let called = "";
		for (let i = 0; i < got.length; i++) called += got[i] + " "; // without a method
		return called;
	});
});
attempt("Function.prototype.call, apply and bind", () => {
	const { got, note } = recorder();
	const { call, apply: applied, bind } = Function.prototype;
	return withPatched([
		[Function.prototype, "call", { value() { note("call", this); return apply(call, this, arguments); } }],
		[Function.prototype, "apply", { value() { note("apply", this); return apply(applied, this, arguments); } }],
		[Function.prototype, "bind", { value() { note("bind", this); return apply(bind, this, arguments); } }],
	], async () => {
		await useOurs();
		return got.length > 0 ? got.join(", ") : undefined;
	});
});
attempt("Promise.prototype.then gets resolvers of the bridge", () => {
	const { got, note } = recorder();
	const { then } = Promise.prototype;
	return withPatched([[Promise.prototype, "then", { value(a, b) { note("then", a); return apply(then, this, [a, b]); } }]], async () => {
		await useOurs();
		return got.length > 0 ? got.join(", ") : undefined;
	});
});
attempt("Symbol.species and constructors of promises", () => {
	const got = [];
	class Own extends Promise { constructor(f) { super((a, b) => { put(got, [a, b]); f(a, b); }); } }
	return withPatched([[Promise, Symbol.species, { get() { return Own; } }], [Promise.prototype, "constructor", { get() { return Own; }, set() {} }]], async () => {
		const r = await tools.echo({ a: 1 });
		return r.tool === "echo" && r.input.a === 1 ? undefined : shown(r);
	});
});
attempt("JSON.parse and JSON.stringify", () => {
	const { got, note } = recorder();
	return withPatched([[JSON, "parse", { value(s) { note("parse", s); return { tool: "forged" }; } }], [JSON, "stringify", { value(v) { note("stringify", v); return "{}"; } }]], async () => {
		await useOurs();
		return got.length > 0 ? got.join(", ") : undefined;
	});
});
attempt("globals that the bridge reads at a call", () => {
	const { got } = recorder();
	const patches = [];
	for (const key of ownKeys(globalThis)) {
		const d = getOwnPropertyDescriptor(globalThis, key);
		// What useOurs itself names is read by it.
		if (typeof key !== "string" || !("value" in d) || !d.configurable || ["text", "json", "console", "tools", "Map", "setTimeout", "clearTimeout", "setInterval", "clearInterval", "queueMicrotask", "structuredClone", "atob", "URL", "TextDecoder", "TextEncoder", "crypto", "Uint8Array", "performance"].includes(key)) continue;
		patches.push([globalThis, key, { get() { put(got, key); return d.value; }, set() {} }]);
	}
	return withPatched(patches, async () => {
		await useOurs();
		return got.length > 0 ? got.join(" ") : undefined;
	});
});
attempt("a proxy behind the global object", async () => {
	const was = getPrototypeOf(globalThis), got = [];
	const trap = new Proxy(was, {
		has(t, key) { if (typeof key === "string" && !(key in t)) put(got, key); return key in t; },
		get(t, key, r) { if (typeof key === "string" && !(key in t)) put(got, key); return Reflect.get(t, key, r); },
	});
	try { Object.setPrototypeOf(globalThis, trap); } catch { return undefined; }
	try {
		await useOurs();
	} finally {
		Object.setPrototypeOf(globalThis, was);
	}
	return got.length > 0 ? "names that are looked for: " + got.join(" ") : undefined;
});
attempt("iterators and concatenation", () => {
	const { got, note } = recorder();
	const iterate = Array.prototype[Symbol.iterator];
	return withPatched([[Array.prototype, Symbol.iterator, { value() { note("iterator", this); return apply(iterate, this, []); } }], [Array.prototype, Symbol.isConcatSpreadable, { get() { note("spreadable", this); } }], [Object.prototype, Symbol.toPrimitive, { get() { note("toPrimitive", this); } }]], async () => {
		text("a"); json([1, [2]]); tools.echo([1]).catch(() => {}); tools.search("a").catch(() => {}); setTimeout(() => {}, 0);
		await tools.object();
		return got.length > 0 ? got.join(", ") : undefined;
	});
});
attempt("arguments of what the bridge calls", async () => {
	const got = [];
	const look = (name, self, args, count) => {
		if (args.length > count) got.push(`${name}: ${args.length} arguments`);
		for (const v of [self, ...args]) if (typeof v === "function" && !Function.prototype.toString.call(v).includes("=>") && name !== "thenable") got.push(name + ": " + shown(v));
	};
	json({ toJSON() { look("toJSON", this, arguments, 1); return 1; } });
	await new Promise((resolve) => setTimeout(function () { look("timer", this === globalThis ? undefined : this, arguments, 1); resolve(); }, 0, 1));
	await new Promise((resolve) => queueMicrotask(function () { look("microtask", this === globalThis ? undefined : this, arguments, 0); resolve(); }));
	await tools.echo({}).then(function () { look("then", this === globalThis ? undefined : this, arguments, 1); });
	await tools.refuse({}).catch(function () { look("catch", this === globalThis ? undefined : this, arguments, 1); });
	return got.length > 0 ? got.join(", ") : undefined;
});

// Calls of tools that nobody gave.

const echo = "client:app:echo", vault = "mcp:vault:open_vault";
attempt("ids of tools that are not in the catalog", () => all([
	"", " ", "nope", "client:app:nope", "openclaw:core:exec", "exec", "wait", "tool_call", "client:app:", "client::echo", "CLIENT:APP:ECHO", "client:app:echo ", " client:app:echo", "client:app:echo\0", "client:app:echo\n", "client:app:e\u0441ho",
	"../echo", "client:app:../echo", "%65cho", "client:app:%65cho", "hasOwnProperty", "valueOf", "prototype", "\ud800", "search", "describe", "call", "list", "*", "client:app:*",
].map((id) => () => resolves(() => tools.call(id)))));
attempt("the hidden tool", () => all([vault, "open_vault", "vault:open_vault", "mcp:default:open_vault", "vault.open_vault"].flatMap((id) => [() => resolves(() => tools.call(id)), () => resolves(() => tools.describe(id))]).concat([
	async () => (JSON.stringify(await tools.search("open vault", { limit: 50 })).includes("vault") ? "it is found" : undefined),
	async () => (JSON.stringify(ALL_TOOLS).includes("vault") || "open_vault" in tools ? "it is listed" : undefined),
])));
attempt("an id that is no string", () => all([
	{ toString: () => echo }, { valueOf: () => echo }, { [Symbol.toPrimitive]: () => echo }, [echo], new String(echo), new Proxy(new String(echo), {}), () => echo, Symbol(echo), null, undefined, true, 1n,
].map((id) => () => resolves(() => tools.call(id)))));
attempt("an id that changes between two looks", async () => {
	let n = 0;
	const id = { toString() { return n++ === 0 ? echo : vault; }, toJSON() { return vault; }, length: echo.length };
	const got = await resolves(() => tools.call(id, {}));
	return got ?? (n > 0 ? "toString was called" : undefined);
});
attempt("an id that String.prototype changes", () => withPatched([[String.prototype, "toWellFormed", { value() { return vault; } }], [String.prototype, "toJSON", { value() { return vault; } }], [String.prototype, "toString", { value() { return vault; } }], [String.prototype, "valueOf", { value() { return vault; } }]], async () => {
	const r = await tools.call(echo, { a: 1 });
	return r.tool === "echo" ? undefined : shown(r);
}));
attempt("an entry of ALL_TOOLS that was changed", async () => {
	const entry = ALL_TOOLS.find((t) => t.name === "echo");
	try { entry.id = vault; entry.fn = "x"; } catch {}
	try { ALL_TOOLS[0] = { id: vault, name: "x" }; } catch {}
	const r = await tools.echo({ a: 1 });
	try { entry.id = echo; delete entry.fn; } catch {}
	return r.tool === "echo" ? undefined : shown(r);
});
attempt("paths under MCP", () => all([
	() => MCP.vault, () => MCP["vault.openVault"], () => MCP["shelf.echo vault"], () => MCP["shelf\n"], () => MCP.shelf["../vault/openVault"], () => MCP.shelf.openVault,
	() => MCP.shelf["echo \"mcp:shelf:echo\"\nvault.openVault"], () => Object.getOwnPropertyDescriptor(MCP, "vault"), () => Reflect.get(MCP.shelf, "openVault", MCP.vault),
	() => Object.keys(MCP).concat(Object.keys(MCP.shelf)).join().replace("$api,shelf,$api,echo", "") || undefined,
].map((get) => async () => {
	const got = get();
	return got === undefined ? undefined : shown(got);
}).concat([
	() => resolves(() => MCP.shelf.$api("openVault")), () => resolves(() => MCP.shelf.$api("vault.openVault", { schema: true })),
	async () => (JSON.stringify([await MCP.$api(), await MCP.shelf.$api(undefined, { schema: true })]).includes("vault") ? "the hidden server is described" : undefined),
])));
attempt("declarations of what is hidden", () => all(["mcp/vault.d.ts", "tools/open_vault.d.ts", "tools/mcp:vault:open_vault.d.ts", "mcp/../../etc/passwd", "tools/../mcp/vault.d.ts", "/etc/passwd", "tools//etc/passwd", "mcp/index.d.ts\0"]
	.map((path) => () => resolves(() => API.read(path))).concat([
	async () => (JSON.stringify([await API.list(), await API.read("mcp/index.d.ts"), await API.read("mcp/shelf.d.ts")]).includes("vault") ? "it is listed" : undefined),
])));
attempt("the prototype of a call's promise", async () => {
	const promise = tools.echo({ n: 1 });
	const prototype = Object.getPrototypeOf(promise);
	for (const change of [() => { prototype.then = 1; }, () => { prototype.x = 1; }, () => delete prototype.toJSON, () => Object.defineProperty(prototype, "y", { value: 1 }), () => Object.setPrototypeOf(prototype, {}), () => Object.freeze(prototype)]) try { change(); } catch {}
	const other = tools.echo({ n: 2 });
	const r = await Promise.all([promise, other]);
	return "y" in other || typeof other.then !== "function" || JSON.stringify(other) !== '"[Promise: not awaited]"' || r[1].input.n !== 2 ? shown(r) : undefined;
});
attempt("names that every object has", () => {
	const found = ["__proto__", "constructor", "toString", "then"].filter((n) => n in tools);
	return found.length > 0 ? found.join(" ") : undefined;
});
attempt("forged numbers of calls", async () => {
	const r = await Promise.allSettled([
		tools.call.call({ id: 1, __proto__: null }, echo, { n: 1 }), tools.call.apply({ resolve() {}, reject() {} }, [echo, { n: 2 }]),
		tools.echo.call({ id: vault }, { n: 3 }), Reflect.apply(tools.echo, { tool: vault }, [{ n: 4 }]),
	]);
	const more = await Promise.allSettled([tools.call(echo, { n: 2 }, 1, "call", vault), tools.echo({ n: 4 }, vault, "call"), MCP.shelf.echo({}, "vault.openVault")]);
	for (const m of more) if (m.status !== "rejected" || m.reason.started !== false) return JSON.stringify(m);
	for (let i = 0; i < r.length; i++) if (r[i].status !== "fulfilled" || r[i].value.tool !== "echo" || r[i].value.input.n !== i + 1) return JSON.stringify(r[i]);
	return undefined;
});
attempt("answers that are swapped", async () => {
	const n = 40;
	const r = await Promise.all(Array.from({ length: n }, (_, i) => tools.echo({ i })));
	for (let i = 0; i < n; i++) if (r[i].input.i !== i) return `call ${i} got the answer of ${r[i].input.i}`;
	return undefined;
});
attempt("calls from within the reading of an input", async () => {
	const inner = [];
	const r = await tools.echo({ get a() { inner.push(tools.echo({ inner: true })); return 1; }, b: { toJSON() { inner.push(tools.echo({ inner: true })); return 2; } } });
	for (const p of inner) if ((await p).input.inner !== true) return "an inner call was mixed up";
	return r.input.a === 1 && r.input.b === 2 ? undefined : JSON.stringify(r);
});
attempt("options of a search that name a call", () => all([{ method: "call", id: vault, tool: vault }, { limit: 1, query: vault, __proto__: { method: "call" } }].map((options) => async () => {
	const r = await tools.search("echo", options).catch(() => []);
	return Array.isArray(r) && !JSON.stringify(r).includes("vault") ? undefined : shown(r);
})));
attempt("input that the schema forbids", () => all([
	{}, { n: "1" }, { n: 1, x: 1 }, [], null, "x", { n: { valueOf: () => 1 } }, JSON.parse('{"n":1,"__proto__":1}'), { n: 1.5 }, { get n() { return "1"; } }, { n: 1, toJSON: () => ({ n: "x" }) }, new Proxy({ n: 1 }, { get: (t, k) => (k === "n" ? "x" : t[k]) }),
].map((input) => () => resolves(() => tools.strict(input)))));
attempt("input that changes between check and use", async () => {
	let n = 0;
	const r = await tools.strict({ get n() { return n++ === 0 ? 1 : "changed"; } }).catch(() => undefined);
	return r === undefined || typeof r.input.n === "number" ? undefined : JSON.stringify(r);
});
attempt("__proto__ in input and results", async () => {
	const r = await tools.echo(JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"a":{"__proto__":{"polluted":1}}}'));
	const h = await tools.hostile();
	if ({}.polluted !== undefined || [].polluted !== undefined || (() => {}).polluted !== undefined) { delete Object.prototype.polluted; return "a prototype was changed"; }
	if (getPrototypeOf(r.input) !== Object.prototype || getPrototypeOf(h) !== Object.prototype) return "a result has a prototype of its sender's";
	return undefined;
});
attempt("input as a proxy", () => all([
	new Proxy({}, { ownKeys: () => ["a", "a"], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }) }),
	new Proxy({}, { getPrototypeOf() { throw new Error("trap"); } }), new Proxy([], { get: (t, k) => (k === "length" ? 3 : vault) }),
	(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy; })(), new Proxy(() => {}, {}), new Proxy(tools, {}),
].map((input) => async () => {
	let r;
	try { r = await tools.echo(input); } catch { return undefined; }
	return r.tool === "echo" ? undefined : shown(r);
})));
attempt("very long names and inputs", () => all([
	() => resolves(() => tools.call("x".repeat(1 << 20))), () => resolves(() => tools.describe("\0".repeat(1 << 20))), () => resolves(() => tools.call(echo + ":".repeat(1 << 18))),
	async () => { const key = "k".repeat(1 << 20); const r = await tools.echo({ [key]: 1 }).catch(() => ({ input: { [key]: 1 } })); return r.input[key] === 1 ? undefined : "it was changed"; },
	async () => { let deep = {}; for (let i = 0; i < 5000; i++) deep = { deep }; const r = await tools.echo(deep).catch(() => undefined); return r === undefined || r.tool === "echo" ? undefined : shown(r); },
]));
attempt("input that looks like a frame", async () => {
	const strings = ["\0\0\0\x10", "\x82\xa4type\xa6result", "\n{\"type\":\"result\"}\n", "\ud800\udfff\ud800", "\u2028\u2029", "</script>", "${1}", "\x1b[2J"];
	const r = await tools.echo(strings);
	for (let i = 0; i < strings.length; i++) if (r.input[i] !== strings[i].toWellFormed() && r.input[i] !== strings[i]) return JSON.stringify(r.input[i]);
	return undefined;
});
attempt("tools and its functions can be replaced", () => {
	const before = tools.call;
	for (const f of [
		() => { tools.call = () => 1; }, () => { tools.evil = () => 1; }, () => { delete tools.call; }, () => Object.defineProperty(tools, "call", { value: 1 }), () => Object.setPrototypeOf(tools, { evil: 1 }),
		() => Object.assign(tools, { evil: 1 }), () => { tools.__proto__ = { evil: 1 }; }, () => ALL_TOOLS.push({ id: vault }), () => { ALL_TOOLS.length = 0; },
	]) try { f(); } catch {}
	if (tools.call !== before || "evil" in tools || ALL_TOOLS.length === 0) return "tools was changed";
	return undefined;
});
attempt("the table behind the proxy of tools", () => {
	const got = [];
	return withPatched([[Object.prototype, "evil", { get() { put(got, this); return undefined; } }]], async () => {
		tools.evil;
		class Grab { static [Symbol.hasInstance]() { return false; } }
		Reflect.get(tools, "evil", { mine: true });
		return got.length > 0 ? "a getter ran with " + shown(got[0]) : undefined;
	});
});
attempt("globals of ours that cannot be taken back", async () => {
	// A cell may replace them. What it replaced must stay its own affair.
	const was = getOwnPropertyDescriptor(globalThis, "text");
	globalThis.text = () => "replaced";
	const { echo: call } = tools;
	const r = await call({ a: 1 });
	defineProperty(globalThis, "text", was);
	return r.tool === "echo" ? undefined : shown(r);
});
attempt("toJSON on every prototype", () => withPatched([Object.prototype, Array.prototype, String.prototype, Number.prototype, Boolean.prototype, Function.prototype].map((p) => [p, "toJSON", { value() { return { method: "call", tool: vault }; } }]), async () => {
	const r = await tools.call(echo, { a: 1 });
	return r.tool === "echo" ? undefined : shown(r);
}));
attempt("then on Object.prototype", async () => {
	const got = [];
	let result;
	await withPatched([[Object.prototype, "then", { get() { put(got, this); return undefined; } }]], async () => { result = await tools.echo({ a: 1 }); });
	const strangers = got.filter((v) => isObject(v) && v !== result && v !== globalThis && ownKeys(v).some((k) => typeof v[k] === "function"));
	return strangers.length > 0 ? strangers.map(shown).join(", ") : undefined;
});

// Other channels.

attempt("memory that another thread shares", () => {
	const found = ["Atomics", "Worker", "postMessage", "MessageChannel"].filter((n) => (0, eval)("typeof " + n) !== "undefined");
	return found.length > 0 ? found.join(" ") : undefined;
});
attempt("buffers over other memory", () => {
	for (const f of [() => new Uint8Array(new ArrayBuffer(8), 0, 9), () => new Uint8Array(new ArrayBuffer(8), 2 ** 31), () => new DataView(new ArrayBuffer(8), 9), () => new DataView(new ArrayBuffer(8)).getFloat64(1), () => new DataView(new ArrayBuffer(8)).getUint8(-1), () => new DataView(new ArrayBuffer(8)).getUint8(2 ** 32)]) {
		try { f(); return "no error from " + f; } catch {}
	}
	const b = new ArrayBuffer(16, { maxByteLength: 64 }), a = new Uint8Array(b), view = new DataView(b, 8);
	b.resize(4);
	if (a.length !== 4 || a[8] !== undefined) return "an array past its buffer";
	try { view.getUint8(0); return "a view past its buffer"; } catch {}
	const shrinking = new ArrayBuffer(64, { maxByteLength: 64 }), s = new Uint8Array(shrinking).fill(7);
	s.fill({ valueOf() { shrinking.resize(1); return 1; } });
	const detached = new ArrayBuffer(8), d = new Uint8Array(detached);
	detached.transfer?.();
	return d[0] === undefined && d.length === 0 ? undefined : "a buffer that is gone";
});
attempt("arrays that change while the engine walks them", () => {
	const a = Array.from({ length: 64 }, (_, i) => i);
	const got = a.slice(0, { valueOf() { a.length = 1; return 64; } });
	const b = Array.from({ length: 64 }, (_, i) => i);
	b.sort(() => { b.length = 0; return 0; });
	const c = [1, 2, 3];
	const text = JSON.stringify([c, { toJSON() { c.length = 0; return 1; } }, c]);
	const d = Array.from({ length: 64 }, (_, i) => i);
	d.splice(0, { valueOf() { d.length = 2; return 60; } }, ...d);
	return [...got, ...b, ...d].every((v) => v === undefined || typeof v === "number") && typeof text === "string" ? undefined : "values of nobody";
});
attempt("timing of the collector", async () => {
	const got = [];
	const registry = new FinalizationRegistry(function (held) { got.push([this === undefined || this === globalThis || this === registry, held, arguments.length]); });
	for (let i = 0; i < 50; i++) registry.register({ i }, i);
	const gone = new WeakRef({});
	for (let i = 0; i < 50; i++) ({ big: new Array(1000).fill(i) });
	await new Promise((resolve) => setTimeout(resolve, 2));
	if (got.some(([self, held, n]) => !self || typeof held !== "number" || n !== 1)) return JSON.stringify(got.slice(0, 3));
	const v = gone.deref();
	return v === undefined || getPrototypeOf(v) === Object.prototype ? undefined : shown(v);
});
attempt("template objects", () => {
	const tag = (t) => t, one = () => tag`a`;
	const t = one();
	try { t.raw[0] = "x"; t[0] = "x"; } catch {}
	return one() === t && t[0] === "a" && t.raw[0] === "a" ? undefined : "a template that can be changed";
});
attempt("private names of the prelude's classes", () => {
	for (const [C, key] of [[URL, "href"], [URLSearchParams, "size"], [TextDecoder, "encoding"], [TextEncoder, "encoding"]]) {
		const get = getOwnPropertyDescriptor(C.prototype, key)?.get;
		for (const v of [{}, Object.create(C.prototype), new Proxy(new C(C === URL ? "https://a/" : undefined), {})]) {
			if (get === undefined || C === TextEncoder) continue;
			try { const got = apply(get, v, []); if (isObject(got)) return `${C.name}.${key} of a stranger: ${shown(got)}`; } catch {}
		}
	}
	return undefined;
});
attempt("the state of another cell", () => {
	const key = "codemode escape attempt";
	const was = Symbol.for(key);
	return was[key] === undefined && globalThis[key] === undefined && Math[key] === undefined ? undefined : "something was left behind";
});

const { then } = Promise.prototype;
const outcomes = [];
for (const { name, make } of list) {
	let outcome = "refused", detail = "";
	refusal = "";
	try {
		// Promise.race would call what is patched by now.
		const got = await new Promise((resolve, reject) => {
			setTimeout(resolve, 3000, "late");
			apply(then, (async () => await make())(), [resolve, reject]); // without the await the promise of make is asked for its then
		});
		if (got === "late") detail = "it did not end";
		else if (got !== undefined) {
			outcome = "ESCAPED";
			detail = String(got).slice(0, 500);
		} else detail = refusal.slice(0, 200);
	} catch (e) {
		detail = String(e?.message ?? e).slice(0, 200);
	}
	outcomes.push({ name, outcome, detail });
}
return outcomes;
