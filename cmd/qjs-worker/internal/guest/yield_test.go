package guest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 12.1: what a yield says, and that nothing makes it throw.
func TestYieldNotes(t *testing.T) {
	for _, c := range []struct{ reason, want string }{
		{``, ""},
		{`undefined`, ""},
		{`"waiting for é"`, "waiting for é"},
		{`""`, ""},
		{`5`, "5"},
		{`-0`, "0"},
		{`10n ** 20n`, "100000000000000000000"},
		{`null`, "null"},
		{`true`, "true"},
		{`Symbol("s")`, "Symbol(s)"},
		{`{a: [1, new Date(0)]}`, `{"a":[1,"1970-01-01T00:00:00.000Z"]}`},
		{`function f() {}`, `"[Function: f]"`},
		{`new TypeError("no")`, `{"name":"TypeError","message":"no"}`},
		{`"a\ud800b"`, "a\ufffdb"},
		{`"x".repeat(1e6)`, strings.Repeat("x", 4096)},
		{`{get a() { throw 1 }}`, ""},
		{`{toJSON() { throw 1 }}`, ""},
		{`{toString() { throw 1 }, valueOf() { throw 1 }, [Symbol.toPrimitive]() { throw 1 }}`, `{"toString":"[Function: toString]","valueOf":"[Function: valueOf]"}`},
		{`new Proxy({}, {get() { throw 1 }, ownKeys() { throw 1 }, getPrototypeOf() { throw 1 }})`, ""},
		{`(() => { const r = Proxy.revocable({}, {}); r.revoke(); return r.proxy })()`, ""},
	} {
		r := newRun(t)
		if err := r.body("yield_control(" + c.reason + "); return 1"); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{c.want}, r.host.notes); d != "" {
			t.Errorf("%s (-want +got):\n%s%s", c.reason, d, r.outcome())
		}
		if r.g.Pending() != 1 || r.g.Yields() != 1 {
			t.Errorf("%s: %d pending, %d yields", c.reason, r.g.Pending(), r.g.Yields())
		}
	}
}

// SPEC 12.1: every open yield resolves to undefined at the next resume, in order; one that is
// made then waits for the one after.
func TestYields(t *testing.T) {
	r := newRun(t)
	if err := r.body(`
		const say = name => v => text(name + " " + v);
		yield_control(1).then(say("first")).then(() => yield_control(2)).then(say("third"));
		await Promise.all([yield_control(3).then(say("second")), tools.call("x")]);
		text("all");
		return await Promise.race([yield_control(), new Promise(() => {})]) === undefined`); err != nil {
		t.Fatal(err)
	}
	step := func(what string, pending, yields int, want ...string) {
		t.Helper()
		if r.g.Pending() != pending || r.g.Yields() != yields {
			t.Errorf("%s: %d pending, %d yields", what, r.g.Pending(), r.g.Yields())
		}
		if d := cmp.Diff(append([]string{}, want...), r.host.lines(t)); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
		r.host.items = nil
	}
	resume := func() {
		t.Helper()
		r = park(t, r)
		if err := r.g.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	step("before", 3, 2)
	resume()
	step("after a resume", 2, 1, "first undefined", "second undefined")
	resume()
	step("after another", 1, 0, "third undefined")
	resume() // nothing is open
	step("with nothing open", 1, 0)
	if err := r.g.Settle(1, []byte("1"), nil); err != nil {
		t.Fatal(err)
	}
	step("after the call", 1, 1, "all")
	if r.outcome() != "pending" {
		t.Errorf("got %s", r.outcome())
	}
	resume()
	if got := r.outcome(); got != "true" {
		t.Errorf("got %s", got)
	}
}

// A yield is a promise like any other, and works in a guest that replaced what it could.
func TestYieldIsOrdinary(t *testing.T) {
	for code, want := range map[string]string{
		`const p = yield_control(); return [p instanceof Promise, p.constructor === Promise, yield_control.name, yield_control.length, String(yield_control)]`: `[true,true,"yield_control",1,"function yield_control() {\n    [native code]\n}"]`,
		`const yield_control = () => 7; return yield_control()`: `7`,
		`yield_control = 5; return yield_control`:               `5`,
		`Promise = undefined; Map.prototype.set = Map.prototype.forEach = null; JSON.stringify = String.prototype.slice = null; return typeof yield_control({a: 1}).then`: `"function"`,
		`const {yield_control: y} = globalThis; new Promise(r => r(y())); return 1`:                                                                                       `1`,
	} {
		r := newRun(t)
		if err := r.body(code); err != nil {
			t.Fatal(err)
		}
		if err := r.g.Resume(); err != nil {
			t.Fatal(err)
		}
		if got := r.outcome(); got != want || r.g.Pending() != 0 {
			t.Errorf("%s: got %s, %d pending", code, got, r.g.Pending())
		}
	}
	if got := eval(t, "yeild_control()"); !strings.Contains(got, "is not defined") {
		t.Errorf("got %s", got)
	}
}

// SPEC 4.4: its name is among the suggestions.
func TestYieldSuggested(t *testing.T) {
	for _, name := range []string{"yieldControl", "yeild_control"} {
		r := newRun(t)
		if err := r.body(name + "()"); err != nil {
			t.Fatal(err)
		}
		o, _ := r.g.Outcome()
		if o.Failure == nil || len(o.Failure.Suggestions) == 0 || o.Failure.Suggestions[0] != "yield_control" {
			t.Errorf("%s: got %+v", name, o.Failure)
		}
	}
}
