package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

const memoryLimit = 64 << 20

var config engine.Config

// compileEngine compiles the engine with a code cache of the package's own, which outlives
// the test binary: without it each costs 340 ms.
func compileEngine() (*engine.Module, error) {
	wasm, err := os.ReadFile("../assets/dist/quickjs.wasm")
	if err != nil {
		return nil, errors.New("the engine is missing: run make deps")
	}
	cache := filepath.Join(os.TempDir(), "codemode-supervisor-test-code")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	return engine.Compile(context.Background(), wasm, cache, nil)
}

var module = sync.OnceValues(compileEngine)

var startImage = sync.OnceValues(func() (*engine.Image, error) {
	mod, err := module()
	if err != nil {
		return nil, err
	}
	return guest.Build(mod)
})

// surface is what a guest sees of a catalog, given as a JSON array of compact entries with two
// fields more: fn, the name of the convenience function, and mcp, the path under MCP. The
// entries of MCP servers are not listed.
func surface(t testing.TB, entries string) guest.Surface {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal([]byte(entries), &all); err != nil {
		t.Fatal(err)
	}
	s := guest.Surface{}
	listed := []map[string]any{}
	var functions, mcp []string
	for _, e := range all {
		id, _ := json.Marshal(e["id"])
		if path, ok := e["mcp"].(string); ok {
			mcp = append(mcp, path+" "+string(id)+"\n")
			continue
		}
		if fn, ok := e["fn"].(string); ok {
			functions = append(functions, fn+" "+string(id)+"\n")
		}
		delete(e, "fn")
		listed = append(listed, e)
	}
	slices.Sort(functions)
	slices.Sort(mcp)
	s.Functions.Data, s.MCP.Data = []byte(strings.Join(functions, "")), []byte(strings.Join(mcp, ""))
	s.Tools.Data, _ = json.Marshal(listed)
	return s
}

// fakeHost records what the guest reports. Its clock stands until a test moves it.
type fakeHost struct {
	items  []guest.Item
	calls  []guest.Call
	notes  []string
	missed []string
	now    float64
}

func (h *fakeHost) Output(i guest.Item) { h.items = append(h.items, i) }
func (h *fakeHost) Call(c guest.Call)   { h.calls = append(h.calls, c) }
func (h *fakeHost) Yield(note string)   { h.notes = append(h.notes, note) }
func (h *fakeHost) Missed(name string)  { h.missed = append(h.missed, name) }
func (h *fakeHost) Now() float64        { return h.now }

// lines are the texts of the output, the values as JSON with "json " in front.
func (h *fakeHost) lines(t testing.TB) []string {
	t.Helper()
	out := []string{}
	for _, i := range h.items {
		if i.Kind == "json" {
			out = append(out, "json "+string(i.JSON))
			continue
		}
		var s string
		if err := json.Unmarshal(i.JSON, &s); err != nil {
			t.Fatalf("output %q is no JSON string: %v", i.JSON, err)
		}
		out = append(out, s)
	}
	return out
}

const catalog = `[
	{"id":"openclaw:core:web_search","name":"web_search","label":"Web search","description":"searches","source":"openclaw","sourceName":"core","fn":"web_search"},
	{"id":"openclaw:core:get-user","name":"get-user","description":"a user","source":"openclaw","sourceName":"core","fn":"get_user"},
	{"id":"plugin:a:same","name":"same","description":"one","source":"plugin","sourceName":"a"},
	{"id":"plugin:b:same","name":"same","description":"two","source":"plugin","sourceName":"b"}
]`

type run struct {
	t    testing.TB
	g    *guest.Guest
	host *fakeHost
}

func newRun(t testing.TB) *run {
	t.Helper()
	return newRunWith(t, engine.Config{}, memoryLimit)
}

func newRunWith(t testing.TB, cfg engine.Config, limit int64) *run {
	t.Helper()
	return start(t, cfg, limit, guest.Options{Surface: surface(t, catalog)})
}

// start makes a guest.
func start(t testing.TB, cfg engine.Config, limit int64, opts guest.Options) *run {
	t.Helper()
	mod, err := module()
	if err != nil {
		t.Fatal(err)
	}
	image, err := startImage()
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{}
	g, err := guest.New(mod, image, cfg, h, limit, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.VM().Close() })
	return &run{t, g, h}
}

// body runs code as the body of an async function.
func (r *run) body(code string) error {
	return r.g.Run("(async () => {\n"+code+"\n})", "cell.js")
}

// timers lets time pass until none is left, at most n times.
func (r *run) timers(n int) {
	r.t.Helper()
	for range n {
		at, ok := r.g.NextTimer()
		if !ok {
			return
		}
		r.host.now = max(r.host.now, at)
		if err := r.g.FireTimers(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// outcome gives the value's JSON, or the failure after "threw ", or "pending".
func (r *run) outcome() string {
	o, ok := r.g.Outcome()
	switch {
	case !ok:
		return "pending"
	case o.Failure != nil:
		return "threw " + o.Failure.Error()
	}
	return string(o.Value)
}

// eval runs code as a body and gives the outcome.
func eval(t testing.TB, code string) string {
	t.Helper()
	r := newRun(t)
	if err := r.body(code); err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	r.timers(100)
	return r.outcome()
}

// lastCall is the id of the call that the guest made last.
func (r *run) lastCall() uint64 {
	r.t.Helper()
	if len(r.host.calls) == 0 {
		o, _ := r.g.Outcome()
		r.t.Fatalf("no call was made; outcome %s, failure %+v", r.outcome(), o.Failure)
	}
	return r.host.calls[len(r.host.calls)-1].ID
}

// quote gives s as a JSON string, which is a JavaScript literal too.
func quote(s string) string {
	b := new(strings.Builder)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
