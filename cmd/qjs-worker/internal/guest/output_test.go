package guest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 9.1
func TestOutput(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       []string
	}{
		{"one order", `text("a"); json({b: 1}); console.log("c"); text("d")`, []string{"a", `json {"b":1}`, "c", "d"}},
		{"they return nothing", `text([text("a"), json(1), console.log("b")].every(v => v === undefined))`, []string{"a", "json 1", "b", "true"}},
		{"text of what is no string", `text({a: [1]}); text(undefined); text(5n); text(new Map([[1, 2]]))`, []string{`{"a":[1]}`, "null", `"5"`, "[[1,2]]"}},
		{"text survives", "text('\\ud800\\0é\\u2028')", []string{"\ufffd\x00é\u2028"}},
		{"levels", `console.log("a"); console.info("a"); console.warn("a"); console.error("a"); console.debug("a"); console.trace("a")`,
			[]string{"a", "[info] a", "[warn] a", "[error] a", "[debug] a", "[trace] a"}},
		{"arguments", `console.log("a", 1, -0, NaN, null, undefined, true, 5n, Symbol("s"), [1, "b"], {c: new Date(0)}, () => 1, function f() {}, Promise.resolve())`,
			[]string{`a 1 -0 NaN null undefined true 5n Symbol(s) [1,"b"] {"c":"1970-01-01T00:00:00.000Z"} [Function] [Function: f] [Promise: not awaited]`}},
		{"none", `console.log()`, []string{""}},
		{"circular", `const o = {a: 1}; o.o = o; console.log(o)`, []string{`{"a":1,"o":"[Circular]"}`}},
		{"errors", `console.error(new TypeError("m"), Object.assign(new Error("n", {cause: 1}), {code: "E"}), [new Error("in")])`,
			[]string{`[error] TypeError: m Error: n {"cause":1,"code":"E"} [{"name":"Error","message":"in"}]`}},
		{"error without a message", `console.log(new Error)`, []string{"Error"}},
		{"printf", `console.log("%s is %d%% %i %f %o %O %j %c.", "x", "5", 1.9, 1.5, {a: 1}, [1], {b: 2}, "color: red", "rest", 1)`,
			[]string{`x is 5% 1 1.5 {"a":1} [1] {"b":2} . rest 1`}},
		{"printf leaves what it does not know", `console.log("100%", "%x", 1); console.log("%x %s"); console.log("%s %s", 1); console.log("a%")`,
			[]string{"100% %x 1", "%x %s", "1 %s", "a%"}},
		{"assert", `console.assert(true, "a"); console.assert(0, "b", 1); console.assert()`, []string{"[error] Assertion failed: b 1", "[error] Assertion failed"}},
		{"dir", `console.dir({a: 1}, {depth: 0}); console.dir("s")`, []string{`{"a":1}`, "s"}},
		{"count", `console.count(); console.count("x"); console.count(); console.countReset(); console.count()`, []string{"default: 1", "x: 1", "default: 2", "default: 1"}},
		{"time", `console.time(); console.timeLog(undefined, "a"); console.timeEnd(); console.timeEnd("none")`, []string{"default: 0.000 ms a", "default: 0.000 ms"}},
		{"group", `console.group("g"); console.log("a\nb"); console.groupEnd(); console.groupEnd(); console.warn("c")`, []string{"g", "  a\n  b", "[warn] c"}},
		{"table", `console.table([{a: 1, b: "x"}, {a: 22}, 5]); console.table({r: {c: 1}}); console.table(7)`,
			[]string{"(index) | a  | b | Values\n0       | 1  | x |       \n1       | 22 |   |       \n2       |    |   | 5     ", "(index) | c\nr       | 1", "7"}},
		{"what a getter throws", `try { console.log({get a() { throw new Error("g") }}) } catch (e) { text(e.message) }`, []string{"g"}},
		{"methods can be taken off", `const {log} = console; log("a"); [1].forEach(text)`, []string{"a", "1"}},
		{"before a failure", `text("a"); throw new Error("x")`, []string{"a"}},                               // SPEC 4.5
		{"shadowed", `const text = 5, console = {log() {}}; console.log(1); json(text)`, []string{"json 5"}}, // SPEC 4.1
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			if err := r.body(c.code); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.host.lines(t)); diff != "" {
				t.Errorf("(-want +got):\n%s\noutcome %s", diff, r.outcome())
			}
		})
	}
}
