package guest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

// SPEC 4.4
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       guest.Failure
	}{
		{"error", `const f = () => { throw new TypeError("m") }; f()`, guest.Failure{Name: "TypeError", Message: "m",
			Stack: "    at f (cell.js:2:29)\n    at <anonymous> (cell.js:2:47)\n", JSON: []byte(`{"name":"TypeError","message":"m"}`)}},
		{"string", `throw "m"`, guest.Failure{Message: "m", JSON: []byte(`"m"`)}},
		{"undefined", `throw undefined`, guest.Failure{Message: "undefined", JSON: []byte(`null`)}},
		{"object", `throw {code: 1}`, guest.Failure{Message: `{"code":1}`, JSON: []byte(`{"code":1}`)}},
		{"promise", `throw Promise.resolve()`, guest.Failure{Message: "[Promise: not awaited]", JSON: []byte(`"[Promise: not awaited]"`)}},
		{"own fields", `throw Object.assign(new Error("m"), {code: 1, stack: "s"})`, guest.Failure{Name: "Error", Message: "m", Stack: "s\n", JSON: []byte(`{"name":"Error","message":"m","code":1}`)}},
		{"hostile fields", `const e = new Error("m"); for (const k of ["name", "message", "stack"]) Object.defineProperty(e, k, {get() { throw 1 }}); throw e`, guest.Failure{JSON: []byte(`null`)}},
		{"looks like ours", `throw Object.assign(new Error("interrupted"), {name: "InternalError", stack: ""})`, guest.Failure{Name: "InternalError", Message: "interrupted", JSON: []byte(`{"name":"InternalError","message":"interrupted"}`)}}, // SPEC 11.2
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			if err := r.body(c.code); err != nil {
				t.Fatal(err)
			}
			o, ok := r.g.Outcome()
			if !ok || o.Failure == nil {
				t.Fatalf("no failure: %s", r.outcome())
			}
			if diff := cmp.Diff(c.want, *o.Failure); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC 4.4
func TestSuggestions(t *testing.T) {
	for _, c := range []struct {
		name string
		want []string
		hint string
	}{
		{"web_search", []string{"tools.web_search"}, ""},
		{"webSearch", []string{"tools.web_search"}, ""},
		{"serach", []string{"tools.search"}, ""},
		{"Consle", []string{"console"}, ""},
		{"setTimout", []string{"setTimeout"}, ""},
		{"ALLTOOLS", []string{"ALL_TOOLS"}, ""},
		{"tolls", []string{"tools"}, ""},
		{"qqqqqq", nil, ""},
		{"require", nil, "there are no modules here"},
		{"process", nil, "no environment"},
		{"fetch", nil, "no network"},
		{"Buffer", nil, "TextEncoder"},
		{"module", nil, "no modules"},
	} {
		r := newRun(t)
		if err := r.body(c.name + "()"); err != nil {
			t.Fatal(err)
		}
		o, _ := r.g.Outcome()
		if o.Failure == nil || o.Failure.Name != "ReferenceError" {
			t.Fatalf("%s: %s", c.name, r.outcome())
		}
		if len(o.Failure.Suggestions) > 3 || len(c.want) > 0 && (len(o.Failure.Suggestions) == 0 || o.Failure.Suggestions[0] != c.want[0]) || c.want == nil && o.Failure.Suggestions != nil {
			t.Errorf("%s: got suggestions %q, want %q first", c.name, o.Failure.Suggestions, c.want)
		}
		if !strings.Contains(o.Failure.Hint, c.hint) || c.hint == "" && o.Failure.Hint != "" {
			t.Errorf("%s: got hint %q, want %q", c.name, o.Failure.Hint, c.hint)
		}
	}
}

// SPEC 10.4
func TestUnhandled(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"none", `return 1`, ""},
		{"rejection", `Promise.reject(new Error("a")); Promise.reject(new Error("b")); return 1`, "Error: a"},
		{"not awaited call", `tools.call("x"); return 1`, "ToolError: no"},
		{"call with a handler", `tools.call("x").catch(() => {}); return 1`, ""},
		{"late handler", `const p = Promise.reject(new Error("a")); Promise.reject(2); await 0; await 0; p.catch(() => {}); return 1`, "2"},
		{"allSettled", `await Promise.allSettled([Promise.reject(1)]); return 1`, ""},
		{"lost race", `await Promise.race([1, Promise.reject(1)]); return 1`, ""},
		{"the cell's own", `throw new Error("cell")`, ""},
		{"handled by the cell's own failure", `await Promise.reject(new Error("x"))`, ""},
		{"frozen reason", `Promise.reject(Object.freeze(new Error("f"))); return 1`, "Error: f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			if err := r.body(c.code); err != nil {
				t.Fatal(err)
			}
			for _, call := range r.host.calls {
				if err := r.g.Settle(call.ID, nil, &guest.CallError{Message: "no", Code: "tool_error", Started: true}); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if f := r.g.Unhandled(); f != nil {
				got = f.Error()
				if f.Tool != strings.HasPrefix(got, "ToolError") {
					t.Errorf("Tool: got %v", f.Tool)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q; outcome %s", got, c.want, r.outcome())
			}
		})
	}
}

func TestRejectionStorm(t *testing.T) {
	r := newRun(t)
	if err := r.body(`for (let i = 0; i < 1e5; i++) Promise.reject(i); return 1`); err != nil {
		t.Fatal(err)
	}
	if f := r.g.Unhandled(); f == nil || f.Message != "0" || r.outcome() != "1" {
		t.Errorf("got %v, outcome %s", f, r.outcome())
	}
}

// What a timer or a microtask throws fails the run; the first one wins.
func TestUncaught(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"microtask", `queueMicrotask(() => { throw new Error("a") }); queueMicrotask(() => { text("still runs"); throw new Error("b") }); await new Promise(() => {})`, "threw Error: a"},
		{"after the value", `queueMicrotask(() => { queueMicrotask(() => { throw new Error("a") }) }); return 1`, "threw Error: a"},
		{"timer", `setTimeout(() => { throw new Error("a") }); await new Promise(() => {})`, "threw Error: a"},
		{"timer after the cell failed", `setTimeout(() => { throw new Error("a") }); throw new Error("first")`, "threw Error: first"},
		{"getter of the value", `return {get a() { throw new Error("a") }}`, "threw Error: a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			if err := r.body(c.code); err != nil {
				t.Fatal(err)
			}
			r.timers(5)
			if got := r.outcome(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.name == "microtask" && len(r.host.items) != 1 {
				t.Error("the second microtask did not run")
			}
		})
	}
}

func TestSyntaxError(t *testing.T) {
	r := newRun(t)
	err := r.g.Run("(async () => { let = ; })", "cell.js")
	e, ok := errors.AsType[*engine.Exception](err)
	if !ok || e.Name != "SyntaxError" {
		t.Fatalf("got %v", err)
	}
}

// A stop of the engine's is an error of the Go call, however the guest disguises it. SPEC 11.2, 13.3
func TestStops(t *testing.T) {
	const hang, fill = `for (;;);`, `const a = []; for (;;) a.push("x".repeat(1e6) + a.length)`
	for _, c := range []struct {
		name, code string
		want       error
	}{
		{"loop", hang, engine.ErrInterrupted},
		{"loop in try", `try { ` + hang + ` } finally { return 1 }`, engine.ErrInterrupted},
		{"loop in a job", `await 0; ` + hang, engine.ErrInterrupted},
		{"loop in an executor", `await new Promise(() => { ` + hang + ` }).catch(() => {}); return 1`, engine.ErrInterrupted},
		{"loop in a timer", `setTimeout(() => { ` + hang + ` }); await new Promise(() => {})`, engine.ErrInterrupted},
		{"loop in a getter of the value", `return {get a() { ` + hang + ` }}`, engine.ErrInterrupted},
		{"loop in a getter of output", `json({get a() { ` + hang + ` }})`, engine.ErrInterrupted},
		{"loop of microtasks", `for (;;) await 0`, engine.ErrInterrupted},
		{"heap", fill, engine.ErrOutOfMemory},
		{"heap in try", `try { ` + fill + ` } catch { return 1 }`, engine.ErrOutOfMemory},
		{"heap in a job", `await 0; ` + fill, engine.ErrOutOfMemory},
		{"heap in an executor", `await new Promise(() => { ` + fill + ` })`, engine.ErrOutOfMemory},
		{"heap in a getter of output", `text({get a() { ` + fill + ` }})`, engine.ErrOutOfMemory},
	} {
		t.Run(c.name, func(t *testing.T) {
			polls := 0
			stop := engine.Config{Interrupt: func() bool { polls++; return polls > 20 && c.want == engine.ErrInterrupted }}
			r := newRunWith(t, stop, 4<<20)
			err := r.body(c.code)
			if err == nil {
				r.host.now = 10
				err = r.g.FireTimers()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v; outcome %s", err, c.want, r.outcome())
			}
		})
	}
}

// SPEC 11.2: the guest has no way to make an error that the engine would take for its own.
func TestForgedStop(t *testing.T) {
	for _, code := range []string{
		`throw new InternalError("interrupted")`,
		`throw InternalError("out of memory")`,
		`class X extends InternalError {} throw new X("interrupted")`,
		`Promise.reject(Object.assign(new Error("interrupted"), {name: "InternalError"}))`,
		// With one of the engine's own in hand: an executor makes a rejection of a stop.
		`const e = new Error("out of memory"); e.constructor("interrupted"); throw e`,
		`const C = Object.getPrototypeOf(new Error("x")).constructor; throw Reflect.construct(C, ["interrupted"], Error)`,
	} {
		r := newRunWith(t, config, memoryLimit)
		if err := r.body(code); err != nil {
			t.Errorf("%s: got %v", code, err)
		}
	}
	if got := eval(t, `try { throw eval('new InternalError("x")') } catch (e) { return e.name }`); got != `"ReferenceError"` {
		t.Errorf("got %s", got)
	}
}

// An unhandled rejection whose reason is the engine's stop is not the guest's failure.
func TestUnhandledStop(t *testing.T) {
	r := newRunWith(t, config, 4<<20)
	const fill = `new Promise(() => { const a = []; for (;;) a.push("x".repeat(1e6) + a.length) })`
	if err := r.body(fill + `; return 1`); !errors.Is(err, engine.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	// Nor can the guest handle it away.
	r = newRunWith(t, config, 4<<20)
	if err := r.body(fill + `.catch(() => 0); return 1`); !errors.Is(err, engine.ErrOutOfMemory) {
		t.Errorf("handled: got %v", err)
	}
}

// SPEC 4.8
func TestDeepRecursion(t *testing.T) {
	for _, code := range []string{
		`(function f() { f() })()`,
		`const o = {get a() { return json(o) }}; json(o)`,
		`async function f() { await f() } await f()`,
		`async function f(n) { if (n) await f(n - 1) } await f(5000)`,
		`function f() { return new Promise(r => r(f())) } await f()`,
		`async function* g() { yield* g() } for await (const x of g());`,
		`const f = async () => { try { await f() } catch (e) { throw e } }; await f()`,
		`const o = {toJSON() { text(o); return 1 }}; text(o)`,
		`const f = () => console.log({get a() { f() }}); f()`,
		`let o = {}; for (let i = 0; i < 1e5; i++) o = {o}; structuredClone(o)`,
		`let s = new Map(); for (let i = 0; i < 1e5; i++) s = new Map([[s, s]]); structuredClone(s)`,
	} {
		if got := eval(t, `try { `+code+` } catch (e) { return e.name } return "no error"`); got != `"RangeError"` && got != `"InternalError"` {
			t.Errorf("%s: got %s", code, got)
		}
	}
}
