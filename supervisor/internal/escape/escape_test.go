package escape_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/escape"
	"github.com/openclaw/codemode-supervisor/test/shipped"
)

var update = flag.Bool("update", false, "write golden.txt anew")

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	shipped.Remove()
	os.Exit(code)
}

// run gives the value of a cell that has what it needs.
func run(t *testing.T, code string) json.RawMessage {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real worker")
	}
	path, err := shipped.Worker()
	if err != nil {
		t.Fatal(err)
	}
	s, err := supervisor.New(supervisor.Options{Worker: path, CacheDir: filepath.Join(filepath.Dir(path), "code")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cat, warnings, err := catalog.Build(escape.Tools(), catalog.Options{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	l := limits.Default()
	l.OutputBytes, l.Timeout = escape.OutputBytes, 30*time.Second
	res := s.Exec(context.Background(), supervisor.Program{
		Code: code, Catalog: cat, Limits: l,
		Executor: supervisor.ExecutorFunc(func(_ context.Context, call *supervisor.Call) (json.RawMessage, error) {
			value, err := escape.Answer(call.Tool.Name, call.Input)
			if e, ok := errors.AsType[*escape.Error](err); ok {
				return nil, &supervisor.ToolError{Message: e.Message, Code: e.Code}
			}
			return value, err
		}),
	})
	if res.Status != supervisor.Completed {
		t.Fatalf("%s: %s %s", res.Status, res.Code, res.Error)
	}
	return res.Value
}

// What a cell can reach is what golden.txt lists. Who adds to it looks at each new line: is
// it the host's, could it call the host, does it hold something of another cell? SPEC 4.6
func TestReachable(t *testing.T) {
	var lines []string
	if err := json.Unmarshal(run(t, escape.Cell()), &lines); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("golden.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Skipf("golden.txt has %d lines now", len(lines))
	}
	added, missing := escape.Compare(lines)
	if len(added)+len(missing) > 0 {
		t.Errorf("go test -update writes golden.txt anew. New in reach:\n%s\nNo longer in reach:\n%s", strings.Join(added, "\n"), strings.Join(missing, "\n"))
	}
}

func TestAttempts(t *testing.T) {
	list, err := escape.Judge(run(t, escape.Attempts()))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.Outcome != escape.Refused {
			t.Errorf("%s: %s: %s", a.Name, a.Outcome, a.Detail)
		} else {
			t.Logf("%s: %s", a.Name, a.Detail)
		}
	}
}

// leaky is a cell that has got hold of what it should not have, and whose text() is as careless
// as the real one must not be.
const leaky = `globalThis.std = { evalScript() {}, loadFile() {} };
const { text: emit } = globalThis;
globalThis.text = function (v) {
	const o = {}, a = [], m = new Map();
	o.resolve = () => {};
	if (o.method) emit("method");
	a[0] = () => {};
	m.set(1, emit);
	Promise.resolve(1).then(() => {});
	for (const x of [1]) emit.call(null, JSON.stringify([v, x, typeof WeakRef, typeof nowhere]));
};
Error.stackTraceLimit = 20;
`

// Both cells notice such things.
func TestLeaksAreNoticed(t *testing.T) {
	var lines []string
	if err := json.Unmarshal(run(t, leaky+escape.Cell()), &lines); err != nil {
		t.Fatal(err)
	}
	added, _ := escape.Compare(lines)
	for _, want := range []string{`globalThis.std: object`, `globalThis.std.evalScript: function "evalScript"/0 of the cell`, `patched: map, globalThis.Map.prototype`} {
		if !slices.ContainsFunc(append(added, lines...), func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("the walk does not list %q; new is %q", want, added)
		}
	}
	list, err := escape.Judge(run(t, leaky+escape.Attempts()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, a := range list {
		got[a.Name] = a.Outcome == escape.Escaped
	}
	for _, want := range []string{
		"globals of other hosts", "std.evalScript and os.open by any object", "bytecode",
		"setters on Object.prototype see objects of the bridge", "getters on Object.prototype answer for the bridge",
		"setters on Array.prototype see arrays of the bridge", "methods of the language that the bridge calls",
		"Function.prototype.call, apply and bind", "Promise.prototype.then gets resolvers of the bridge", "JSON.parse and JSON.stringify",
		"globals that the bridge reads at a call", "a proxy behind the global object", "iterators and concatenation",
	} {
		if !got[want] {
			t.Errorf("%s: not noticed", want)
		}
	}
}

func TestCompare(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(golden(t), "\n"), "\n")
	if len(lines) < 1000 {
		t.Errorf("golden.txt has %d lines", len(lines))
	}
	if added, missing := escape.Compare(lines); added != nil || missing != nil {
		t.Errorf("golden.txt differs from itself: %q, %q", added, missing)
	}
	added, missing := escape.Compare(append([]string{"globalThis.os: object"}, lines[1:]...))
	if diff := cmp.Diff([][]string{{"globalThis.os: object"}, {lines[0]}}, [][]string{added, missing}); diff != "" {
		t.Error(diff)
	}
	if _, missing := escape.Compare(nil); len(missing) != len(lines) {
		t.Errorf("%d of %d lines are missing from nothing", len(missing), len(lines))
	}
}

func golden(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A list that is not all of the attempts is no good news.
func TestJudgeRefuses(t *testing.T) {
	for _, value := range []string{``, `null`, `[]`, `{}`, `"x"`, `[{"name":"import by direct eval","outcome":"refused","detail":""}]`, `[{"name":"x","outcome":"fine","detail":""}]`, `[{"name":1}]`, `[{"x":1}]`} {
		if list, err := escape.Judge(json.RawMessage(value)); err == nil {
			t.Errorf("%s: got %v", value, list)
		}
	}
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"object", ``, `{"a":1,"b":{"c":[null,true,"x"]},"then":null}`}, {"nothing", `{}`, ``},
		{"echo", `{"a":1}`, `{"tool":"echo","input":{"a":1}}`}, {"strict", ``, `{"tool":"strict","input":null}`},
	} {
		got, err := escape.Answer(c.tool, json.RawMessage(c.input))
		if err != nil || string(got) != c.want {
			t.Errorf("%s(%s): got %s, %v", c.tool, c.input, got, err)
		}
	}
	if _, err := escape.Answer("refuse", nil); err == nil || err.(*escape.Error).Code == "" {
		t.Errorf("refuse: %v", err)
	}
	if _, err := escape.Answer("reject", nil); err == nil {
		t.Error("reject: no error")
	}
	if _, warnings, err := catalog.Build(escape.Tools(), catalog.Options{}); err != nil || len(warnings) > 0 {
		t.Error(warnings, err)
	}
}
