package guest_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

// park writes the run, and goes on in another engine.
func park(t *testing.T, r *run) *run {
	t.Helper()
	base, err := startImage()
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := r.g.Park(&stream, base); err != nil {
		t.Fatal(err)
	}
	r.g.VM().Close()
	other, err := compileEngine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return unpark(t, other, &stream, &fakeHost{now: r.host.now})
}

// unpark goes on with what was written.
func unpark(t *testing.T, mod *engine.Module, stream io.Reader, h *fakeHost) *run {
	t.Helper()
	base, err := startImage()
	if err != nil {
		t.Fatal(err)
	}
	g, err := guest.Restore(mod, engine.Config{}, h, memoryLimit, base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.VM().Close() })
	if err := g.Unpark(stream, base, memoryLimit, surface(t, catalog)); err != nil {
		t.Fatal(err)
	}
	return &run{t, g, h}
}

// Two hundred suspensions leave nothing behind in the guest.
func TestParkDoesNotGrow(t *testing.T) {
	mod, err := module()
	if err != nil {
		t.Fatal(err)
	}
	base, err := startImage()
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t)
	if err := r.body(`for (let i = 0; ; i++) { setTimeout(() => 0, 5); text(await tools.call("x", {i})); await yield_control({i}) }`); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for i := range 200 {
		if err := r.g.Settle(uint64(i+1), []byte(`"result"`), nil); err != nil {
			t.Fatal(err)
		}
		var stream bytes.Buffer
		if err := r.g.Park(&stream, base); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, stream.Len())
		r.g.VM().Close()
		h := &fakeHost{now: r.host.now + 10}
		r = unpark(t, mod, &stream, h)
		if err := r.g.FireTimers(); err != nil {
			t.Fatal(err)
		}
		if err := r.g.Resume(); err != nil {
			t.Fatal(err)
		}
		if r.lastCall() != uint64(i+2) {
			t.Fatalf("round %d: got %+v", i, h.calls)
		}
	}
	// The first rounds fill what the engine keeps for later, such as hash tables.
	if first, last := sizes[9], sizes[len(sizes)-1]; last > first+2*(4+engine.PageSize) {
		t.Errorf("the stream had %d bytes after ten rounds, and has %d after 200", first, last)
	}
}

// Everything that a run waits for survives in its image. SPEC 12.3, 14.3
func TestRestore(t *testing.T) {
	r := newRun(t)
	if err := r.body(`
		const before = crypto.randomUUID();
		const lost = Promise.reject(new Error("lost")), late = Promise.reject(new Error("late"));
		const never = setTimeout(() => text("never"), 50);
		setTimeout(() => text("timer at " + performance.now()), 30);
		const first = tools.call("first"), second = tools.web_search({q: 1});
		const a = await first;
		clearTimeout(never);
		late.catch(() => {});
		text("resumed with " + a.v);
		const third = await tools.call("third");
		try { await second } catch (e) { json(e); text(e.stack) }
		await new Promise(r => setTimeout(r, 100));
		console.count();
		return [third, before !== crypto.randomUUID(), Object.keys(tools).length, new URL("https://x").href]`); err != nil {
		t.Fatal(err)
	}
	r.host.now = 10
	r = park(t, r)
	if r.g.Pending() != 2 {
		t.Fatalf("pending: got %d", r.g.Pending())
	}
	if at, ok := r.g.NextTimer(); !ok || at != 30 {
		t.Fatalf("NextTimer: got %v, %v", at, ok)
	}
	if f := r.g.Unhandled(); f == nil || f.Message != "lost" {
		t.Errorf("unhandled: got %v", f)
	}
	if err := r.g.Settle(1, []byte(`{"v":"é"}`), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]guest.Call{{ID: 3, Method: "call", Tool: "third", Input: []byte("{}")}}, r.host.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	r.timers(1)
	lines := r.host.lines(t)

	r = park(t, r) // a second time, in the middle of other calls
	if err := r.g.Settle(3, []byte(`3`), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.g.Settle(2, nil, &guest.CallError{Message: "no", Code: "tool_error", Started: "unknown"}); err != nil {
		t.Fatal(err)
	}
	r = park(t, r)
	r.timers(5)
	if got := r.outcome(); got != `[3,true,5,"https://x/"]` {
		t.Errorf("outcome: got %s", got)
	}
	if diff := cmp.Diff([]string{"resumed with é", "timer at 30"}, lines); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"default: 1"}, r.host.lines(t)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// An error that a call rejected with before the restore is still a tool's.
func TestRestoreKeepsToolErrors(t *testing.T) {
	r := newRun(t)
	if err := r.body(`try { await tools.call("a") } catch (e) { await tools.call("b"); throw e }`); err != nil {
		t.Fatal(err)
	}
	if err := r.g.Settle(1, nil, &guest.CallError{Message: "no", Code: "tool_error", Started: true}); err != nil {
		t.Fatal(err)
	}
	r = park(t, r)
	if err := r.g.Settle(2, []byte("1"), nil); err != nil {
		t.Fatal(err)
	}
	o, _ := r.g.Outcome()
	if o.Failure == nil || !o.Failure.Tool || o.Failure.Message != "no" {
		t.Errorf("got %+v", o.Failure)
	}
}

// The outcome is part of the image, too.
func TestRestoreOutcome(t *testing.T) {
	for code, want := range map[string]string{
		`tools.call("x"); return {a: 1}`:           `{"a":1}`,
		`tools.call("x"); throw new Error("over")`: "threw Error: over",
	} {
		r := newRun(t)
		if err := r.body(code); err != nil {
			t.Fatal(err)
		}
		if got := park(t, r).outcome(); got != want {
			t.Errorf("%s: got %s", code, got)
		}
	}
}

// The same engine and prelude give the same image, byte for byte.
func TestBuildIsReproducible(t *testing.T) {
	mod, err := module()
	if err != nil {
		t.Fatal(err)
	}
	var stored [2][]byte
	for i := range stored {
		image, err := guest.Build(mod, guest.Script{Name: "extra.js", Source: "globalThis.extra = 1"})
		if err != nil {
			t.Fatal(err)
		}
		if stored[i], err = image.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(stored[0], stored[1]) {
		t.Error("two builds differ")
	}
}

func TestPolyfills(t *testing.T) {
	mod, err := module()
	if err != nil {
		t.Fatal(err)
	}
	image, err := guest.Build(mod, guest.Script{Name: "extra.js", Source: "globalThis.extra = 1"})
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{}
	g, err := guest.New(mod, image, config, h, memoryLimit, guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.VM().Close()
	r := &run{t, g, h}
	if err := r.body("return [extra, ALL_TOOLS, Object.keys(tools)]"); err != nil {
		t.Fatal(err)
	}
	if got := r.outcome(); got != `[1,[],["search","describe","call"]]` {
		t.Errorf("got %s", got)
	}
	if _, err := guest.Build(mod, guest.Script{Name: "bad.js", Source: "throw new Error('x')"}); err == nil {
		t.Error("a broken polyfill was accepted")
	}
}

// What the prelude takes does not count against the cell's heap. SPEC 13.3
func TestMemoryLimitLeavesTheCellItsHeap(t *testing.T) {
	r := newRunWith(t, config, 1<<20) // the least that can be configured, SPEC 13
	if err := r.body(`let s = []; for (let i = 0; i < 500; i++) s.push("x".repeat(1000) + i); await tools.call("x"); return s.length`); err != nil {
		t.Fatal(err)
	}
	if err := r.g.Settle(1, []byte("1"), nil); err != nil {
		t.Fatal(err)
	}
	if got := r.outcome(); got != "500" {
		t.Errorf("got %s", got)
	}
}
