package guest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The table in VALUES.md is true for json(), the final value and tool input. SPEC 4.3
func TestValuesTable(t *testing.T) {
	doc, err := os.ReadFile("VALUES.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(.+?)` \\| `(.+?)` \\|(.*)\\|$").FindAllStringSubmatch(string(doc), -1)
	if len(rows) < 40 {
		t.Fatalf("%d rows found in VALUES.md", len(rows))
	}
	for _, row := range rows {
		code, want, note := row[1], row[2], row[3]
		t.Run(code, func(t *testing.T) {
			binary := strings.Contains(want, "binary is not supported")
			r := newRun(t)
			err := r.body(fmt.Sprintf(`
				json(%[1]s);
				text({in: %[1]s});
				const v = %[1]s;
				tools.call("t", [v]).catch(e => text(e.message));
				return %[1]s`, code))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, r.outcome()); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			lines := r.host.lines(t)
			if diff := cmp.Diff("json "+want, lines[0]); diff != "" {
				t.Errorf("json() (-want +got):\n%s", diff)
			}
			if inside := `{"in":` + want + `}`; lines[1] != inside && lines[1] != "{}" { // a member that is undefined
				t.Errorf("text(): got %s, want %s", lines[1], inside)
			}
			switch {
			case binary:
				if len(r.host.calls) != 0 || !strings.Contains(lines[2], "binary is not supported") || !strings.Contains(lines[2], "not started") {
					t.Errorf("tool input: calls %v, output %q", r.host.calls, lines)
				}
				if !strings.Contains(note, "same") && !strings.Contains(note, "rejects") {
					t.Errorf("the row does not say that the call rejects")
				}
			case len(r.host.calls) != 1:
				t.Errorf("%d calls; output %q", len(r.host.calls), lines)
			default:
				if got := string(r.host.calls[0].Input); got != "["+want+"]" {
					t.Errorf("tool input: got %s, want [%s]", got, want)
				}
			}
		})
	}
}

// What is awkward to put in a table. SPEC 4.3, 4.8
func TestValues(t *testing.T) {
	deep := strings.Repeat("[", 999) + `["[too deep]"]` + strings.Repeat("]", 999)
	for _, c := range []struct{ name, code, want string }{
		{"a level below the limit", `let v = []; for (let i = 1; i < 1000; i++) v = [v]; return v`, strings.Repeat("[", 1000) + strings.Repeat("]", 1000)},
		{"too deep", `let v = []; for (let i = 1; i < 1001; i++) v = [v]; return v`, deep},
		{"far too deep", `let v = []; for (let i = 1; i < 200000; i++) v = [v]; return v`, deep},
		{"endless proxy", `const p = () => new Proxy([], {get: (t, k) => k === "length" ? 1 : k === "0" ? p() : undefined}); return JSON.stringify([1]) + (json(p()), "ok")`, `"[1]ok"`},
		{"too deep by toJSON", `class A { toJSON() { return [new A()] } } return [new A()].length + (json(new A()), "")`, `"1"`},
		{"deep Map", `let v = new Map(); for (let i = 0; i < 5000; i++) v = new Map([[1, v]]); text(v); return 1`, `1`},
		{"deep errors", `let v = new Error("e"); for (let i = 0; i < 5000; i++) v = new Error("e", {cause: v}); text(v); return 1`, `1`},
		{"deep from a deep stack", `function f(n) { return n === 0 ? JSON.stringify(tools === undefined) + (json([[[[1]]]]), "ok") : f(n - 1) } return f(500)`, `"falseok"`},
		{"long function name", `return {["f".repeat(300)]() {}}["f".repeat(300)]`, `"[Function: ` + strings.Repeat("f", 200) + `…]"`},
		{"function with a getter for a name", `return Object.defineProperty(() => 1, "name", {get() { throw 1 }})`, `"[Function]"`},
		{"getter throws", `return {get a() { throw new RangeError("g") }}`, `threw RangeError: g`},
		{"toJSON throws", `try { json({a: {toJSON() { throw new RangeError("g") }}}) } catch (e) { return e.message }`, `"g"`},
		{"getter in text", `try { text({get a() { throw new RangeError("g") }}) } catch (e) { return e.message }`, `"g"`},
		{"getter in console", `try { console.log({get a() { throw new RangeError("g") }}) } catch (e) { return e.message }`, `"g"`},
		{"getter is called once", `let n = 0; json({get a() { return ++n }}); return n`, `1`},
		{"getter that emits", `json({get a() { json({get b() { text("inner"); return 1 }}); return 2 }}); return 0`, `0`},
		{"cycle through toJSON", `const o = {toJSON() { return {o} }}; json(o); return 1`, `1`},
		{"same object inside itself by getter", `const o = {a: 1}; Object.defineProperty(o, "self", {enumerable: true, get() { return o }}); return o`, `{"a":1,"self":"[Circular]"}`},
		{"impostors", `return [Object.create(Map.prototype), Object.create(Uint8Array.prototype), Object.create(BigInt.prototype)]`, `[{},{},{}]`},
		{"error-like", `function E() {} E.prototype = Object.create(Error.prototype); return Object.assign(new E(), {message: "m"})`, `{"name":"Error","message":"m"}`},
		{"error class", `class MyError extends Error { name = "MyError"; code = 7 } return new MyError("m")`, `{"name":"MyError","message":"m","code":7}`},
		{"Map subclass", `class M extends Map {} return new M([[1, 2]])`, `[[1,2]]`},
		{"detached buffer", `const b = new ArrayBuffer(8), u = new Uint8Array(b), d = new DataView(b); b.transfer(); return [b, u, d]`, `["[ArrayBuffer(0): binary is not supported]","[Uint8Array(0): binary is not supported]","[DataView(0): binary is not supported]"]`},
		{"endless prototypes", `const p = new Proxy({}, {getPrototypeOf() { return p }}); return p`, `{}`},
		{"async function value", `return async function g() {}`, `"[Function: g]"`},
		{"promise is awaited", `return Promise.resolve(Promise.resolve(3))`, `3`},
		{"array of promises", `return [1, 2].map(async x => x)`, `["[Promise: not awaited]","[Promise: not awaited]"]`},
		{"lone surrogate key", `return {"\ud800": 1, "\0": 2}`, `{"\ud800":1,"\u0000":2}`},
		{"big", `return "x".repeat(1e6).length + JSON.stringify([..."ab"])`, `"1000000[\"a\",\"b\"]"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, eval(t, c.code)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Both ways: what a tool returned, and what a tool is given. SPEC 4.3, 6.8
func TestRoundTrip(t *testing.T) {
	const v = `{"__proto__":{"a":1},"s":"\ud800\u0000é€😀","n":[1.5,-1e+300,null,true],"e":{},"then":1}`
	r := newRun(t)
	if err := r.body(`return await tools.call("x", await tools.call("y"))`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.g.Settle(r.lastCall(), []byte(v), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(r.host.calls[1].Input); got != v {
		t.Errorf("input: got %s, want %s", got, v)
	}
	if got := r.outcome(); got != v {
		t.Errorf("value: got %s, want %s", got, v)
	}
	if !json.Valid([]byte(r.outcome())) {
		t.Error("the value is no JSON")
	}
}
