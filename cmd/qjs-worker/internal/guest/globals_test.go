package guest_test

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

var update = flag.Bool("update", false, "write testdata anew")

// walk lists everything that can be reached from `roots`, by own keys, accessors and
// prototypes: one line each, the path by which it was found first and what it is.
const walk = `
function walk(roots) {
	const seen = new Map(), queue = [], out = [];
	const visit = (v, path) => {
		if (v === null || (typeof v !== "object" && typeof v !== "function") || seen.has(v)) return;
		seen.set(v, path);
		queue.push([v, path]);
		let what = typeof v;
		if (what === "function") {
			const name = Object.getOwnPropertyDescriptor(v, "name")?.value;
			const source = Function.prototype.toString.call(v);
			what += " " + name + (source.includes("[native code]") ? "" : " with source") + ("prototype" in v ? " (constructor)" : "");
		}
		out.push(path + ": " + what);
	};
	for (const [name, root] of Object.entries(roots)) {
		visit(root, name);
		drain();
	}
	function drain() { while (queue.length > 0) {
		const [v, path] = queue.shift();
		visit(Object.getPrototypeOf(v), path + ".[[Prototype]]");
		for (const key of Reflect.ownKeys(v)) {
			const d = Object.getOwnPropertyDescriptor(v, key), at = path + "." + String(key);
			if ("value" in d) visit(d.value, at);
			visit(d.get, at + " get");
			visit(d.set, at + " set");
		}
	} }
	return out;
}
const intrinsics = [function* () {}, async function () {}, async function* () {}, [][Symbol.iterator](), ""[Symbol.iterator](), new Map()[Symbol.iterator](), new Set()[Symbol.iterator](), "".matchAll(/x/g), Iterator.from({next() {}}), [].values().map(x => x), (function () { "use strict"; return arguments })()];
`

// bareWalk is the walk in an engine without us.
func bareWalk(t *testing.T) []string {
	t.Helper()
	mod, err := module()
	if err != nil {
		t.Fatal(err)
	}
	vm, err := mod.New(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close()
	v, err := vm.Eval("(() => {"+walk+"return JSON.stringify(walk({globalThis, intrinsics}))})()", "walk.js", engine.Script)
	if err != nil {
		t.Fatal(err)
	}
	s, err := vm.String(v)
	if err != nil {
		t.Fatal(err)
	}
	return parseLines(t, s)
}

func parseLines(t *testing.T, s string) []string {
	t.Helper()
	var out []string
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		t.Fatalf("%v: %.200s", err, s)
	}
	return out
}

// Nothing can be reached but what the engine has and what testdata/reachable.txt lists, with what
// calls, results, rejections and errors bring along. No host function is among it. SPEC 4.6, peers S01
func TestReachable(t *testing.T) {
	r := newRun(t)
	if err := r.body(walk + `
		const result = await tools.call("x"), promise = tools.call("y");
		let rejection, refusal, badTimer;
		try { await promise } catch (e) { rejection = e }
		try { await tools.call(1) } catch (e) { refusal = e }
		try { setTimeout(1) } catch (e) { badTimer = e }
		const url = new URL("https://x/?a=b"), decoder = new TextDecoder(), pairs = url.searchParams.entries();
		return walk({globalThis, intrinsics, result, promise, rejection, refusal, badTimer, url, decoder, pairs, timer: setTimeout(() => 1), clone: structuredClone({})})`); err != nil {
		t.Fatal(err)
	}
	if err := r.g.Settle(1, []byte(`{"a":[{}]}`), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.g.Settle(2, nil, &guest.CallError{Message: "m", Code: "tool_error", Started: true}); err != nil {
		t.Fatal(err)
	}
	o, _ := r.g.Outcome()
	if o.Failure != nil {
		t.Fatal(o.Failure, o.Failure.Stack)
	}
	base := map[string]bool{}
	for _, l := range bareWalk(t) {
		base[l] = true
	}
	var got []string
	for _, l := range parseLines(t, string(o.Value)) {
		if strings.Contains(l, "codemode:") || strings.Contains(l, "with source") && !strings.HasPrefix(l, "intrinsics.") {
			t.Errorf("reachable: %s", l)
		}
		if !base[l] {
			got = append(got, l)
		}
	}
	golden(t, "testdata/reachable.txt", got)
}

// SPEC 4.6
func TestGlobals(t *testing.T) {
	names := parseLines(t, eval(t, `return Object.getOwnPropertyNames(globalThis)`))
	slices.Sort(names)
	golden(t, "testdata/globals.txt", names)
	for _, name := range strings.Fields("process module exports require fetch Deno Bun WebAssembly gc navigator os std window self global Buffer print scriptArgs XMLHttpRequest Worker importScripts") {
		if got := eval(t, "return typeof "+name); got != `"undefined"` {
			t.Errorf("typeof %s: got %s", name, got)
		}
	}
	if got := eval(t, `return [Object.keys(globalThis), Object.getOwnPropertySymbols(globalThis).map(String)]`); got != `[[],["Symbol(Symbol.toStringTag)"]]` {
		t.Errorf("enumerable names and symbols of the global object: got %s", got)
	}
}

// Our functions on a stack cannot be had by way of V8's stack API.
func TestNoCallSites(t *testing.T) {
	got := eval(t, `
		const seen = [];
		Error.prepareStackTrace = (e, sites) => { seen.push(sites); return "hooked" };
		json({get a() { return new Error("x").stack }});
		const o = {}; Error.captureStackTrace(o);
		try { setTimeout(1) } catch {}
		try { tools.nope } catch {}
		tools.call(1).catch(() => {});
		return [seen, typeof o.stack]`)
	if got != `[[],"string"]` {
		t.Errorf("got %s", got)
	}
}

func golden(t *testing.T, file string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it anew):\n%s", file, diff)
	}
}
