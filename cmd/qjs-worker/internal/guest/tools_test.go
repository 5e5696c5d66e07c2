package guest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

// What the host is asked for. SPEC 6.3, 6.4
func TestCalls(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       guest.Call
	}{
		{"call", `tools.call("plugin:a:same", {a: [1, undefined]})`, guest.Call{Method: "call", Tool: "plugin:a:same", Input: []byte(`{"a":[1,null]}`)}},
		{"by name, as given", `tools.call(" web_search ")`, guest.Call{Method: "call", Tool: " web_search ", Input: []byte(`{}`)}},
		{"convenience", `tools.web_search({query: "x"})`, guest.Call{Method: "call", Tool: "openclaw:core:web_search", Input: []byte(`{"query":"x"}`)}},
		{"convenience by another name", `tools.get_user()`, guest.Call{Method: "call", Tool: "openclaw:core:get-user", Input: []byte(`{}`)}},
		{"what map adds", `[{a: 1}].map(tools.web_search)`, guest.Call{Method: "call", Tool: "openclaw:core:web_search", Input: []byte(`{"a":1}`)}},
		{"null stays", `tools.web_search(null)`, guest.Call{Method: "call", Tool: "openclaw:core:web_search", Input: []byte(`null`)}},
		{"search", `tools.search("mail", {limit: 3})`, guest.Call{Method: "search", Tool: "mail", Input: []byte(`{"limit":3}`)}},
		{"search without options", `tools.search("")`, guest.Call{Method: "search", Tool: "", Input: []byte(`{}`)}},
		{"describe", `tools.describe("same")`, guest.Call{Method: "describe", Tool: "same", Input: []byte(`{}`)}},
		{"input is taken at the call", `const i = {a: 1}; tools.call("x", i); i.a = 2`, guest.Call{Method: "call", Tool: "x", Input: []byte(`{"a":1}`)}},
		{"lone surrogates in an id", `tools.call("a\ud800")`, guest.Call{Method: "call", Tool: "a\ufffd", Input: []byte(`{}`)}},
		{"methods can be taken off", `const {call: c} = tools; c("x")`, guest.Call{Method: "call", Tool: "x", Input: []byte(`{}`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			if err := r.body(c.code); err != nil {
				t.Fatal(err)
			}
			c.want.ID = 1
			if diff := cmp.Diff([]guest.Call{c.want}, r.host.calls); diff != "" {
				t.Errorf("(-want +got):\n%s\noutcome %s", diff, r.outcome())
			}
			if r.g.Pending() != 1 {
				t.Errorf("pending: got %d", r.g.Pending())
			}
		})
	}
}

// What is wrong with the arguments rejects and is never thrown. SPEC 6.8, 6.7
func TestCallsThatAreNotMade(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"no id", `tools.call()`, `ToolError|tools.call: the first argument must be a string, not undefined; it was not started|invalid_input|false`},
		{"id is an object", `tools.describe({id: "x"})`, `ToolError|tools.describe: the first argument must be a string, not object; it was not started|invalid_input|false`},
		{"query is a number", `tools.search(5)`, `ToolError|tools.search: the first argument must be a string, not number; it was not started|invalid_input|false`},
		{"options are a number", `tools.search("x", 5)`, `ToolError|tools.search: the second argument must be an object such as {limit: 5}; it was not started|invalid_input|false`},
		{"binary", `tools.web_search({a: [new Uint8Array(3)]})`, `ToolError|tools.web_search: the input holds a Uint8Array(3), and binary is not supported: send a string (for example btoa(…)) or an array of numbers; it was not started|invalid_input|false`},
		{"getter throws", `tools.call("x", {get a() { throw new RangeError("mine") }})`, `RangeError|mine|undefined|undefined`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			if err := r.body(`
				let p;
				try { p = ` + c.code + ` } catch { return "thrown" }
				try { await p } catch (e) { return [e.name, e.message, e.code, e.started].map(String).join("|") }`); err != nil {
				t.Fatal(err)
			}
			if got := r.outcome(); got != `"`+c.want+`"` {
				t.Errorf("got  %s\nwant %q", got, c.want)
			}
			if len(r.host.calls) != 0 {
				t.Errorf("calls were made: %v", r.host.calls)
			}
		})
	}
}

// SPEC 10.3
func TestSettle(t *testing.T) {
	r := newRun(t)
	if err := r.body(`
		const slow = tools.call("slow"), fast = tools.call("fast"), failing = tools.call("failing");
		text(await Promise.race([slow, fast]));
		text((await Promise.allSettled([slow, fast, failing])).map(s => s.status));
		return await Promise.any([failing, slow])`); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		id     uint64
		result string
		err    *guest.CallError
	}{{2, `"fast"`, nil}, {3, "", &guest.CallError{Message: "no", Code: "tool_error", Started: true}}, {1, `{"v":1}`, nil}} {
		if err := r.g.Settle(s.id, []byte(s.result), s.err); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"fast", `["fulfilled","fulfilled","rejected"]`}, r.host.lines(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := r.outcome(); got != `{"v":1}` {
		t.Errorf("got %s", got)
	}
	if err := r.g.Settle(2, []byte(`1`), nil); err == nil || !strings.Contains(err.Error(), "call 2 is not pending") {
		t.Errorf("settling twice: %v", err)
	}
	if f := r.g.Unhandled(); f != nil {
		t.Errorf("unhandled: %v", f)
	}
}

// SPEC 6.8
func TestToolError(t *testing.T) {
	r := newRun(t)
	if err := r.body("function load() {\n  return tools.web_search({q: 1});\n}\n" + `
		try { await load() } catch (e) {
			json(e);
			json([e instanceof Error, Object.getPrototypeOf(e) === Error.prototype, Object.keys(e), Object.getOwnPropertyNames(e).sort(), String(e)]);
			text(e.stack);
			try { e.constructor.constructor("return process")() } catch (x) { text(x.name) }
			throw e;
		}`); err != nil {
		t.Fatal(err)
	}
	if err := r.g.Settle(1, nil, &guest.CallError{Message: "it broke", ToolID: "openclaw:core:web_search", Code: "tool_error", Started: "unknown"}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`json {"name":"ToolError","message":"it broke","toolId":"openclaw:core:web_search","code":"tool_error","started":"unknown"}`,
		`json [true,true,["toolId","code","started"],["code","message","name","stack","started","toolId"],"ToolError: it broke"]`,
		"    at load (cell.js:3:16)\n    at <anonymous> (cell.js:6:15)\n",
		"ReferenceError",
	}
	got := r.host.lines(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o, _ := r.g.Outcome()
	if o.Failure == nil || !o.Failure.Tool || o.Failure.Name != "ToolError" || !strings.Contains(o.Failure.Stack, "at load (cell.js:3:") {
		t.Errorf("failure: %+v", o.Failure)
	}
	if string(o.Failure.JSON) != want[0][len("json "):] {
		t.Errorf("failure's JSON: %s", o.Failure.JSON)
	}
}

// An error counts as a tool's by identity only. SPEC 11.1
func TestToolFailureByIdentity(t *testing.T) {
	for _, c := range []struct {
		code string
		want bool
	}{
		{`await tools.call("x")`, true},
		{`await tools.call("x").catch(e => { throw e })`, true},
		{`await tools.call("x").catch(e => { throw new Error(e.message, {cause: e}) })`, false},
		{`await tools.call("x").catch(e => { throw Object.assign(new Error(e.message), {name: "ToolError", code: e.code, started: true}) })`, false},
		{`await tools.call("x").catch(e => { throw structuredClone(e) })`, false},
	} {
		r := newRun(t)
		if err := r.body(c.code); err != nil {
			t.Fatal(err)
		}
		if err := r.g.Settle(1, nil, &guest.CallError{Message: "m", Code: "tool_error", Started: true}); err != nil {
			t.Fatal(err)
		}
		o, ok := r.g.Outcome()
		if !ok || o.Failure == nil || o.Failure.Tool != c.want {
			t.Errorf("%s: %+v", c.code, o.Failure)
		}
	}
}

// A result that the engine cannot read costs the call.
func TestUnreadableResult(t *testing.T) {
	for _, result := range []string{"{", strings.Repeat("[", 300000)} {
		r := newRun(t)
		if err := r.body(`try { await tools.call("x") } catch (e) { return [e.name, e.code, e.started] }`); err != nil {
			t.Fatal(err)
		}
		if err := r.g.Settle(1, []byte(result), nil); err != nil {
			t.Fatal(err)
		}
		if got := r.outcome(); got != `["ToolError","invalid_result",true]` {
			t.Errorf("got %s", got)
		}
	}
}

// SPEC 6.3, 4.4
func TestToolsObject(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"keys", `return Object.keys(tools)`, `["search","describe","call","get_user","web_search"]`},
		{"in", `return ["web_search" in tools, "same" in tools, "then" in tools]`, `[true,false,false]`},
		{"spread", `return Object.keys({...tools}).length`, `5`},
		{"for in", `const k = []; for (const n in tools) k.push(n); return k.length`, `5`},
		{"quiet names", `return [tools.then, tools.toJSON, tools.constructor, tools.toString, tools.hasOwnProperty, tools[Symbol.iterator], tools.__proto__].every(v => v === undefined)`, `true`},
		{"await tools", `return (await tools) === tools`, `true`},
		{"log", `return tools`, `{"search":"[Function: search]","describe":"[Function: describe]","call":"[Function: call]","get_user":"[Function: get_user]","web_search":"[Function: web_search]"}`},
		{"sloppy assignment does nothing", `tools.call = 1; delete tools.search; tools.x = 1; return [typeof tools.call, typeof tools.search, "x" in tools]`, `["function","function",false]`},
		{"strict assignment throws", `"use strict"; try { tools.call = 1 } catch (e) { return e.name }`, `"TypeError"`},
		{"no redefinition", `try { Object.defineProperty(tools, "x", {value: 1}) } catch (e) { return e.name }`, `"TypeError"`},
		{"no new prototype", `return [Object.isFrozen(tools), Object.getPrototypeOf(tools)]`, `[true,null]`},
		{"shadow", `const tools = {a: 1}; return tools`, `{"a":1}`},
		{"functions are no constructors", `try { new tools.web_search() } catch (e) { return e.name }`, `"TypeError"`},
		{"shape of functions", `return [tools.web_search.name, tools.web_search.length, tools.search.length, tools.describe.length, "prototype" in tools.call]`, `["web_search",1,2,1,false]`},
		{"no source to see", `return String(tools.call)`, `"function call() {\n    [native code]\n}"`},
		{"unknown names are undefined", `return [typeof tools.web_serach, typeof tools.same, tools.nope?.() === undefined, !tools.nope]`, `["undefined","undefined",true,true]`},
		{"ALL_TOOLS", `return [ALL_TOOLS.length, Object.isFrozen(ALL_TOOLS), "fn" in ALL_TOOLS[0], ALL_TOOLS === ALL_TOOLS, ALL_TOOLS[1].name]`, `[4,true,false,true,"get-user"]`},
		{"ALL_TOOLS can be replaced", `globalThis.ALL_TOOLS = 1; return ALL_TOOLS`, `1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, eval(t, c.code)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC 4.4: a call of a tool that does not exist says what does.
func TestUnknownTool(t *testing.T) {
	const rest = ` tools.search(query) finds tools, and "name" in tools tells whether one is there`
	for code, want := range map[string]string{
		`tools.web_serach()`:                    `tools.web_serach does not exist; did you mean tools.web_search?` + rest,
		`await tools.webSearch({q: 1})`:         `tools.webSearch does not exist; did you mean tools.web_search?` + rest,
		`tools.same()`:                          `tools.same does not exist; did you mean tools.call("plugin:a:same") or tools.call("plugin:b:same")?` + rest,
		`tools.zzzzzzzz()`:                      `tools.zzzzzzzz does not exist;` + rest,
		`tools.nope; null.x`:                    ``, // another error's story
		`tools.then; const f = 1; f()`:          ``,
		`throw new TypeError("not a function")`: ``,
	} {
		r := newRun(t)
		if err := r.body(code); err != nil {
			t.Fatal(err)
		}
		outcome, ok := r.g.Outcome()
		if !ok || outcome.Failure == nil || outcome.Failure.Name != "TypeError" || outcome.Failure.Hint != want {
			t.Errorf("%s: got %+v", code, outcome.Failure)
		}
	}
}

// Names that catalogs should not send as functions do no harm. SPEC 6.4
func TestOddFunctionNames(t *testing.T) {
	r := start(t, config, memoryLimit, guest.Options{Surface: surface(t, `[
		{"id":"1","name":"then","fn":"then"},{"id":"2","name":"call","fn":"call"},{"id":"3","name":"__proto__","fn":"__proto__"},
		{"id":"4","name":"x","fn":"x"},{"id":"5","name":"x","fn":"x"}]`)})
	if err := r.body(`tools.x(); tools.call("y"); return [Object.keys(tools), tools.then === undefined]`); err != nil {
		t.Fatal(err)
	}
	if got := r.outcome(); got != `[["search","describe","call","x"],true]` {
		t.Errorf("got %s", got)
	}
	if r.host.calls[0].Tool != "4" || r.host.calls[1].Tool != "y" {
		t.Errorf("calls: %v", r.host.calls)
	}
}

// SPEC 4.3: the short way for flat inputs writes what the long way writes.
func TestFlatInput(t *testing.T) {
	for _, value := range []string{
		`{}`, `{v: 1}`, `{v: -0, w: NaN, x: Infinity, y: 1e21, z: 0.1}`, `{s: "\ud800", t: "é\u0000\n", u: ""}`,
		`{a: undefined, b: null, c: true, d: false}`, `JSON.parse('{"__proto__": 1, "a b": 2}')`, `{2: "b", 1: "a", z: 1, [Symbol("s")]: 1}`,
		`{big: 1n}`, `{f() {}}`, `{nested: {v: 1}}`, `{list: [1]}`, `{d: new Date(0)}`, `{toJSON() { return {t: 1} }}`, `new Map([[1, 2]])`,
		`Object.create({inherited: 1}, {own: {value: 1, enumerable: true}})`, `Object.create(null)`, `new Proxy({v: 1}, {})`,
		`{get once() { this.n = (this.n ?? 0) + 1; return this.n }}`, `Object.fromEntries(Array.from({length: 20}, (_, i) => ["k" + i, i]))`,
	} {
		r := newRun(t)
		if err := r.body(`const make = () => (` + value + `); json(make()); tools.call("x", make())`); err != nil {
			t.Fatal(err)
		}
		if len(r.host.items) != 1 || len(r.host.calls) != 1 {
			t.Errorf("%s: %d items, %d calls: %s", value, len(r.host.items), len(r.host.calls), r.outcome())
			continue
		}
		if got, want := string(r.host.calls[0].Input), string(r.host.items[0].JSON); got != want {
			t.Errorf("%s: the input is %s, json() writes %s", value, got, want)
		}
	}
	// Neither way sees a toJSON that the guest gave to all objects otherwise than JSON does.
	r := newRun(t)
	if err := r.body(`Object.prototype.toJSON = function () { return "patched" }; tools.call("x", {v: 1})`); err != nil {
		t.Fatal(err)
	}
	if len(r.host.calls) != 1 || string(r.host.calls[0].Input) != `"patched"` {
		t.Errorf("got %v", r.host.calls)
	}
}
