package guest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

// hostilePatches are what a cell may do to the language before it uses what we give it.
var hostilePatches = []struct{ name, code string }{
	{"Array.prototype", `for (const k of Object.getOwnPropertyNames(Array.prototype)) if (typeof Array.prototype[k] === "function") Array.prototype[k] = broken`},
	{"Object.prototype descriptors", `for (const k of ["get", "set", "value", "writable", "enumerable", "configurable"]) Object.prototype[k] = broken`},
	{"Object.prototype fields", `for (const k of ["up", "level", "written", "due", "next", "child", "resolve", "reject", "error", "tool", "fn", "show"]) Object.defineProperty(Object.prototype, k, {set() { throw new Error(k) }, get() { throw new Error(k) }, configurable: true})`},
	{"Object and Reflect", `for (const o of [Object, Reflect, Array, String, Number, Math, Error]) for (const k of Object.getOwnPropertyNames(o)) if (typeof o[k] === "function" && k !== "getOwnPropertyNames") try { o[k] = broken } catch {}`},
	{"JSON", `JSON.stringify = JSON.parse = broken; globalThis.JSON = undefined`},
	{"Map, Set, WeakMap", `for (const C of [Map, Set, WeakMap, WeakSet]) for (const k of Reflect.ownKeys(C.prototype)) if (k !== "constructor") Object.defineProperty(C.prototype, k, {value: broken, configurable: true}); Object.getPrototypeOf(new (class extends Map {})().__proto__); `},
	{"Promise.prototype.then", `Promise.prototype.then = Promise.prototype.catch = broken`},
	{"Promise species", `Object.defineProperty(Promise, Symbol.species, {get: broken})`},
	{"Promise statics", `for (const k of ["resolve", "reject", "all", "race", "withResolvers"]) Promise[k] = broken; globalThis.Promise = broken`},
	{"iterators", `const IP = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())); Object.getPrototypeOf([][Symbol.iterator]()).next = broken; Object.getPrototypeOf(new Map().entries()).next = broken; Array.prototype[Symbol.iterator] = String.prototype[Symbol.iterator] = broken; IP[Symbol.iterator] = broken`},
	{"String and Number", `for (const P of [String.prototype, Number.prototype, Boolean.prototype, BigInt.prototype, Symbol.prototype]) for (const k of Object.getOwnPropertyNames(P)) if (k !== "constructor" && k !== "description" && k !== "length") P[k] = broken`},
	{"Function.prototype", `for (const k of ["call", "apply", "bind", "toString"]) Function.prototype[k] = broken`},
	{"Error", `Error.prepareStackTrace = broken; Error.stackTraceLimit = 0; Object.defineProperty(Error.prototype, "stack", {get: broken}); Error.prototype.toString = broken; globalThis.Error = globalThis.TypeError = broken`},
	{"RegExp", `for (const k of Reflect.ownKeys(RegExp.prototype)) try { Object.defineProperty(RegExp.prototype, k, {value: broken}) } catch {}`},
	{"typed arrays", `for (const P of [Object.getPrototypeOf(Uint8Array.prototype), ArrayBuffer.prototype, DataView.prototype]) for (const k of Reflect.ownKeys(P)) if (k !== "constructor") Object.defineProperty(P, k, {value: broken, configurable: true})`},
	{"globals", `for (const k of Object.getOwnPropertyNames(globalThis)) if (typeof globalThis[k] === "function" && !["text", "json", "setTimeout", "P"].includes(k)) try { globalThis[k] = broken } catch {}`},
}

// The prelude took what it uses before the cell could patch it.
func TestHostilePatches(t *testing.T) {
	const code = `
		const then = Promise.prototype.then, call = tools.call, log = console.log, T = tools;
		const value = {a: [1, {b: "c"}], m: new Map([[1, 2]]), s: new Set([3]), d: 5n, f() {}, n: null}, E = Error, bytes = new Uint8Array(2);
		value.self = value;
		const broken = function () { throw "broken" };
		patch: { PATCH }
		text("text");
		text(value);
		json(value);
		log("log %s", value, 1);
		json(bytes);
		text(typeof T.web_serach);
		setTimeout(v => text(v), 2, "timer");
		const timeout = setTimeout(() => text("never"), 1);
		const r = await call("x", {value: 1, list: [1, 2]});
		json(r);
		let caught;
		try { await T.web_search({q: 1}) } catch (e) { caught = e }
		json([caught.name, caught.message, caught.toolId, caught.code, caught.started]);
		(async () => { throw "unhandled" })();
		await new globalThis.P(r => setTimeout(r, 5));
		return value;`
	const jsonValue = `{"a":[1,{"b":"c"}],"m":[[1,2]],"s":[3],"d":"5","f":"[Function: f]","n":null,"self":"[Circular]"}`
	want := []string{
		"text", jsonValue, "json " + jsonValue, "log " + jsonValue + " 1", `json "[Uint8Array(2): binary is not supported]"`,
		"undefined",
		`json {"r":[1,{"x":null}]}`, `json ["ToolError","no","the id","tool_error",true]`, "never", "timer",
	}
	for _, p := range hostilePatches {
		t.Run(p.name, func(t *testing.T) {
			r := newRun(t)
			body := "globalThis.P = Promise;" + strings.Replace(code, "PATCH", p.code, 1)
			if err := r.body(body); err != nil {
				t.Fatal(err)
			}
			if len(r.host.calls) != 1 || string(r.host.calls[0].Input) != `{"value":1,"list":[1,2]}` {
				t.Fatalf("calls: %v; outcome %s; output %q", r.host.calls, r.outcome(), r.host.lines(t))
			}
			if err := r.g.Settle(1, []byte(`{"r":[1,{"x":null}]}`), nil); err != nil {
				t.Fatal(err)
			}
			if len(r.host.calls) != 2 {
				t.Fatalf("calls: %v; outcome %s", r.host.calls, r.outcome())
			}
			if err := r.g.Settle(2, nil, &guest.CallError{Message: "no", ToolID: "the id", Code: "tool_error", Started: true}); err != nil {
				t.Fatal(err)
			}
			r.timers(10)
			if diff := cmp.Diff(want, r.host.lines(t)); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if got := r.outcome(); got != jsonValue {
				t.Errorf("outcome: got %s", got)
			}
			if f := r.g.Unhandled(); f == nil || f.Message != "unhandled" {
				t.Errorf("unhandled: got %v", f)
			}
		})
	}
}

// These break what the engine itself does (its JSON.stringify and await look at what they
// patch), so the cell fails; but it fails as a guest, with a failure that can be read.
func TestHostilePatchesOfTheEngine(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`for (let i = 0; i < 8; i++) Object.defineProperty(Array.prototype, i, {set() { throw new Error("set") }, configurable: true}); text([[1]]); return 1`, "threw Error: set"},
		{`for (let i = 0; i < 8; i++) Object.defineProperty(Array.prototype, i, {set() { throw new Error("set") }, configurable: true}); throw new RangeError("x")`, "threw RangeError: x"},
		{`Object.defineProperty(Promise.prototype, "constructor", {get() { throw new Error("get") }}); await tools.call("x")`, "threw Error: get"},
		{`Object.defineProperty(Promise.prototype, "constructor", {get() { throw new Error("get") }}); return 1`, "1"},
		{`Object.prototype.toJSON = () => { throw new Error("toJSON") }; return {}`, "threw Error: toJSON"},
		{`Array.prototype.toJSON = () => 1; return [[new Map([[1, 2]])], {a: new Map([[1, 2]])}].length + Object.keys(tools).length`, "7"},
	} {
		if got := eval(t, c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}
