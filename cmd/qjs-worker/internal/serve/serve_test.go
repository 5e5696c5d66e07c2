package serve

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

var codeCache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "serve-test-")
	if err != nil {
		panic(err)
	}
	codeCache = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// peer is the supervisor's side of a worker that runs in this process.
type peer struct {
	t     testing.TB
	conn  *workerproto.Conn
	exits chan int // codes that the worker ended its process with
	done  chan struct{}
	late  []string // outputs that came while a park was on its way
}

// worker starts one, which waits for its first command. tweak may change it before.
func worker(t testing.TB, tweak ...func(*Engine)) *peer {
	t.Helper()
	e := Load(codeCache, false)
	exits := make(chan int, 1)
	e.exit = func(code int) { exits <- code }
	if ready := e.Wait(); ready.Fault != "" {
		t.Fatal(ready.Fault)
	}
	t.Cleanup(func() { e.mod.Close() })
	for _, f := range tweak {
		f(e)
	}
	ours, theirs := socketPair(t)
	p := &peer{t: t, conn: workerproto.NewConn(ours), exits: exits, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		e.Serve(workerproto.NewConn(theirs))
	}()
	t.Cleanup(func() { p.conn.Close(); <-p.done })
	return p
}

// begin starts a cell that can call echo.
func begin(t testing.TB, start workerproto.Start) *peer {
	t.Helper()
	p := worker(t)
	if start.BudgetMillis == 0 {
		start.BudgetMillis = 10_000
	}
	if start.MemoryBytes == 0 {
		start.MemoryBytes = 64 << 20
	}
	if start.OutputBytes == 0 {
		start.OutputBytes = 64 << 10
	}
	if start.MaxPending == 0 {
		start.MaxPending = 1040
	}
	p.send(&echoes)
	p.send(&start)
	return p
}

// send writes a command.
func (p *peer) send(m workerproto.Message) {
	p.t.Helper()
	if err := p.conn.Write(m); err != nil {
		p.t.Fatal(err)
	}
}

// socketPair is what a worker has: a net.Pipe has no room for two that write at once.
func socketPair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "channel")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return ends[0], ends[1]
}

// next gives the next event.
func (p *peer) next() workerproto.Message {
	p.t.Helper()
	m, err := p.conn.ReadEvent()
	if err != nil {
		p.t.Fatalf("reading an event: %v", err)
	}
	return m
}

// last reads to the end, answers calls by answer, and gives what came.
func (p *peer) last(answer func(*workerproto.ToolCall) *workerproto.ToolResult) (outputs []string, end workerproto.Message) {
	p.t.Helper()
	var burst []*workerproto.ToolCall
	for {
		switch m := p.next().(type) {
		case *workerproto.Output:
			outputs = append(outputs, string(m.JSON))
		case *workerproto.ToolCall:
			burst = append(burst, m)
		case *workerproto.Idle:
			for _, c := range burst {
				r := answer(c)
				r.ID = c.ID
				if err := p.conn.Write(r); err != nil {
					p.t.Fatal(err)
				}
			}
			burst = nil
		case *workerproto.Done, *workerproto.Failed:
			return outputs, m
		}
	}
}

func echo(c *workerproto.ToolCall) *workerproto.ToolResult {
	return &workerproto.ToolResult{Value: c.Input}
}

func value(t testing.TB, end workerproto.Message) string {
	t.Helper()
	done, ok := end.(*workerproto.Done)
	if !ok {
		t.Fatalf("got %+v", end)
	}
	return string(done.Value)
}

// echoes is a catalog of one tool.
var echoes = workerproto.Surface{
	Tools:     []byte(`[{"id":"client:app:echo","name":"echo","description":"","source":"client"}]`),
	Functions: []byte("echo \"client:app:echo\"\n"),
}

func TestCellWithCalls(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte("text('a'); const r = await Promise.all([1, 2, 3].map(v => tools.echo({v}))); json(r); r.length")})
	outputs, end := p.last(echo)
	if got := value(t, end); got != "3" {
		t.Errorf("got %s", got)
	}
	if d := cmp.Diff([]string{`"a"`, `[{"v":1},{"v":2},{"v":3}]`}, outputs); d != "" {
		t.Error(d)
	}
}

// SPEC 10.2: the calls of a burst come before its Idle, and a burst that is too big has
// none.
func TestBursts(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte("await Promise.all([tools.echo(1), tools.echo(2)]); await tools.echo(3)")})
	var kinds []string
	for {
		m := p.next()
		kinds = append(kinds, m.Type().String())
		if idle, ok := m.(*workerproto.Idle); ok {
			kinds[len(kinds)-1] += fmt.Sprint(idle.Pending)
			ids := map[string][]uint64{"idle2": {1}, "idle1": {2}}[kinds[len(kinds)-1]]
			if len(kinds) > 6 {
				ids = []uint64{3}
			}
			for _, id := range ids {
				if err := p.conn.Write(&workerproto.ToolResult{ID: id, Value: []byte("0")}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, ok := m.(*workerproto.Done); ok {
			break
		}
	}
	want := []string{"prepared", "tool call", "tool call", "idle2", "idle1", "tool call", "idle1", "done"}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
}

func TestTooManyCalls(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte("await Promise.all(Array.from({length: 50}, (_, i) => tools.echo(i)))"), MaxPending: 10})
	_, end := p.last(func(*workerproto.ToolCall) *workerproto.ToolResult {
		t.Error("a burst ended")
		return &workerproto.ToolResult{}
	})
	if f, ok := end.(*workerproto.Failed); !ok || f.Code != "too_many_pending_tool_calls" || f.Phase != "limit" {
		t.Errorf("got %+v", end)
	}
}

// A call whose input cannot cross is refused in the guest; the others are not.
func TestBigInput(t *testing.T) {
	src := `const big = "x".repeat(9e6); const [a, b] = await Promise.allSettled([tools.echo(big), tools.echo("small")]);
		[a.reason.name, a.reason.code, a.reason.started, b.value]`
	p := begin(t, workerproto.Start{Source: []byte(src)})
	_, end := p.last(echo)
	if got := value(t, end); got != `["ToolError","invalid_input",false,"small"]` {
		t.Errorf("got %s", got)
	}
}

// SPEC 6.8: how a failure reaches the guest.
func TestToolFailure(t *testing.T) {
	src := `try { await tools.echo(1) } catch (e) { [e instanceof Error, e.name, e.message, e.toolId, e.code, e.started] }
		const e = await tools.echo(1).catch(e => e); [e.name, e.message, e.toolId, e.code, e.started]`
	p := begin(t, workerproto.Start{Source: []byte(src)})
	_, end := p.last(func(*workerproto.ToolCall) *workerproto.ToolResult {
		return &workerproto.ToolResult{Failed: true, Error: "no such file", ToolID: "client:app:echo", Code: "tool_failed", Started: "unknown"}
	})
	if got := value(t, end); got != `["ToolError","no such file","client:app:echo","tool_failed","unknown"]` {
		t.Errorf("got %s", got)
	}
}

// SPEC 9.2: exact boundaries, and what fits of what does not.
func TestOutputLimit(t *testing.T) {
	frame := workerproto.ItemCost("text", nil) + 2 // with quotes
	for _, c := range []struct {
		name     string
		source   string
		limit    uint64
		truncate bool
		outputs  []string
		end      string // value or code
		omitted  uint64
	}{
		{"just fits", `text("abcd")`, frame + 4, false, []string{`"abcd"`}, "null", 0},
		{"one over", `text("abcde")`, frame + 4, false, []string{`"abcd"`}, "output_limit_exceeded", 1},
		{"character boundary", `text("aé𝄞")`, frame + 6, false, []string{`"aé"`}, "output_limit_exceeded", 4},
		{"escape boundary", `text("a\n\u0001")`, frame + 6, false, []string{`"a\n"`}, "output_limit_exceeded", 6},
		{"surrogate pair", `text("a\ud800")`, frame + 3, false, []string{`"a"`}, "output_limit_exceeded", 6},
		{"nothing fits", `text("a"); text("b")`, frame + 1, false, []string{`"a"`}, "output_limit_exceeded", 3},
		{"json is cut as text", `json({k: "v"})`, frame + 7, false, []string{`"{\"k\":"`}, "output_limit_exceeded", 4},
		{"value over", `"x".repeat(100)`, 50, false, nil, "output_limit_exceeded", 102},
		{"value fits", `"x".repeat(48)`, 50, false, nil, `"` + strings.Repeat("x", 48) + `"`, 0},
		{"truncate output, the value stays", `text("a".repeat(2000)); text("f"); 5`, 1024, true, []string{`"` + strings.Repeat("a", 1024-256-int(frame)) + `"`}, "5", 0},
		{"error over", `throw new Error("z".repeat(5e5))`, 1024, false, nil, "output_limit_exceeded", 0},
		{"error over, truncate", `throw new Error("z".repeat(5e5))`, 1024, true, nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := begin(t, workerproto.Start{Source: []byte(c.source), OutputBytes: c.limit, TruncateOutput: c.truncate})
			outputs, end := p.last(nil)
			if d := cmp.Diff(c.outputs, outputs); d != "" {
				t.Error(d)
			}
			var got string
			var omitted uint64
			switch m := end.(type) {
			case *workerproto.Done:
				got, omitted = string(m.Value), m.Omitted
			case *workerproto.Failed:
				got, omitted = m.Code, m.Omitted
				if len(m.Error) > int(c.limit)+512 {
					t.Errorf("the error has %d bytes", len(m.Error))
				}
			}
			if got != c.end || c.omitted != 0 && omitted != c.omitted {
				t.Errorf("got %s with %d omitted, want %s with %d", got, omitted, c.end, c.omitted)
			}
		})
	}
}

// SPEC 9.2: a value that does not fit is marked in truncate mode.
func TestTruncatedValue(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`"é".repeat(10000)`), OutputBytes: 1024, TruncateOutput: true})
	_, end := p.last(nil)
	v := value(t, end)
	if len(v) > 1024 || !strings.HasPrefix(v, `{"truncated":true,"omittedBytes":19`) || !strings.Contains(v, `é"}`) {
		t.Errorf("got %d bytes: %.100s", len(v), v)
	}
}

// SPEC 9.2: over the limit nothing more is dispatched.
func TestOutputLimitBeforeCalls(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`text("x".repeat(2000)); await tools.echo(1)`), OutputBytes: 1024})
	_, end := p.last(func(*workerproto.ToolCall) *workerproto.ToolResult {
		t.Error("the call was dispatched")
		return &workerproto.ToolResult{}
	})
	if f, ok := end.(*workerproto.Failed); !ok || f.Code != "output_limit_exceeded" {
		t.Errorf("got %+v", end)
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name, source, code, phase, text string
	}{
		{"4.9: nothing can settle it", `await new Promise(() => {})`, "", "guest", "nothing can settle"},
		{"4.9: unawaited timer", `setTimeout(() => text("never"), 1e6); 7`, "done", "", "7"},
		{"4.9: awaited timer", `await new Promise(r => setTimeout(r, 20)); 8`, "done", "", "8"},
		{"10.4: unhandled", `Promise.reject(new TypeError("lost")); 1`, "", "guest", "TypeError: lost"},
		{"10.4: late handler", `const p = Promise.reject(1); await null; p.catch(() => 0); 2`, "done", "", "2"},
		{"10.4: uncaught in a timer", `setTimeout(() => { throw new Error("t") }, 1); await new Promise(r => setTimeout(r, 30)); 1`, "", "guest", "Error: t"},
		{"11.2: looks like ours", `throw new Error("interrupted")`, "", "guest", "Error: interrupted"},
		{"11.2: throws nothing", `throw undefined`, "", "guest", ""},
		{"13.2: endless", `for (;;);`, "timeout", "limit", "out of time"},
		{"13.2: endless microtasks", `for (;;) await null`, "timeout", "limit", ""},
		{"13.3", `const a = []; for (;;) a.push("x".repeat(1e5) + a.length)`, "memory_limit_exceeded", "limit", "heap"},
		{"13.3: in a promise executor", `new Promise(() => { const a = []; for (;;) a.push("x".repeat(1e5) + a.length) }).catch(() => 0); 1`, "memory_limit_exceeded", "limit", ""},
		{"4.4", "const a = 1;\nlet = ;", "invalid_input", "input", "2:"},
		{"5.1", `import fs from "fs"`, "module_access_denied", "input", ""},
		{"4.4: suggestions", `consle.log(1)`, "", "guest", "console"},
		{"4.4: hint", `require`, "", "guest", "hint:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := workerproto.Start{Source: []byte(c.source), MemoryBytes: 8 << 20}
			if c.code == "timeout" {
				start.BudgetMillis = 200
			}
			_, end := begin(t, start).last(nil)
			switch m := end.(type) {
			case *workerproto.Done:
				if c.code != "done" || string(m.Value) != c.text {
					t.Errorf("got value %s", m.Value)
				}
			case *workerproto.Failed:
				if m.Code != c.code || m.Phase != c.phase || !strings.Contains(m.Error, c.text) {
					t.Errorf("got %q %q: %s", m.Code, m.Phase, m.Error)
				}
			}
		})
	}
}

// A deadline stops a worker that computes: at once, after a call and in a timer.
func TestDeadline(t *testing.T) {
	for _, source := range []string{`for (;;);`, `await tools.echo(1); for (;;);`, `await new Promise(r => setTimeout(r, 1)); for (;;);`} {
		p := begin(t, workerproto.Start{Source: []byte(source), BudgetMillis: 100})
		if _, end := p.last(echo); end.Type() != workerproto.TypeFailed || end.(*workerproto.Failed).Code != "timeout" {
			t.Errorf("%s: got %+v", source, end)
		}
	}
}

// At rest the supervisor says what is to be done when the time is over: a guest that waits
// can still be parked. SPEC 12.1
func TestDeadlineAtRest(t *testing.T) {
	for _, source := range []string{`await tools.echo(1)`, `setTimeout(() => {}, 1e6); await tools.echo(1)`} {
		p := begin(t, workerproto.Start{Source: []byte(source), BudgetMillis: 1})
		p.rest()
		for until := time.Now().Add(5 * time.Millisecond); time.Now().Before(until); {
		}
		p.park()
	}
}

// An interrupt ends a worker that waits.
func TestInterrupt(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`await tools.echo(1)`)})
	for {
		switch m := p.next().(type) {
		case *workerproto.Idle:
			if err := p.conn.Write(&workerproto.Interrupt{Reason: "timeout"}); err != nil {
				t.Fatal(err)
			}
		case *workerproto.Failed:
			if m.Code != "timeout" {
				t.Errorf("got %+v", m)
			}
			return
		}
	}
}

// A worker whose supervisor is gone ends.
func TestSupervisorGone(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`await tools.echo(1)`)})
	for {
		if _, ok := p.next().(*workerproto.Idle); ok {
			break
		}
	}
	p.conn.Close()
	<-p.done
	if code := <-p.exits; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// PROTOCOL.md: what may come ahead of a cell, and in which order.
func TestServeRefusesOddOrder(t *testing.T) {
	for _, commands := range [][]workerproto.Message{
		{&workerproto.File{Path: "mcp/x.d.ts"}}, {&echoes, &echoes}, {&echoes, &workerproto.Namespaces{}}, {&workerproto.Namespaces{}},
	} {
		ours, theirs := socketPair(t)
		for _, m := range commands {
			if err := workerproto.NewConn(ours).Write(m); err != nil {
				t.Fatal(err)
			}
		}
		if code := (&Engine{}).Serve(workerproto.NewConn(theirs)); code != 1 {
			t.Errorf("%v: code %d", commands, code)
		}
		ours.Close()
		theirs.Close()
	}
	p := worker(t)
	p.send(&echoes)
	p.send(&workerproto.Interrupt{Reason: "timeout"})
	if m, ok := p.next().(*workerproto.Failed); !ok || m.Code != "timeout" {
		t.Errorf("got %+v", m)
	}
	p = worker(t)
	p.send(&workerproto.Start{Source: []byte(`text("ran")`), BudgetMillis: 10_000, MemoryBytes: 64 << 20, OutputBytes: 64 << 10, MaxPending: 10, Namespaces: true})
	if m := p.next(); m.Type() != workerproto.TypePrepared {
		t.Fatalf("got %+v", m)
	}
	p.send(&workerproto.Interrupt{Reason: "timeout"}) // while the scopes are being built
	if m, ok := p.next().(*workerproto.Failed); !ok || m.Code != "timeout" {
		t.Errorf("got %+v", m)
	}
}

func TestServeRefusesOddFirstCommand(t *testing.T) {
	ours, theirs := net.Pipe()
	go workerproto.NewConn(ours).Write(&workerproto.Interrupt{})
	if code := (&Engine{}).Serve(workerproto.NewConn(theirs)); code == 0 {
		t.Error("it was taken for a start")
	}
	ours.Close()
	if _, err := theirs.Read(nil); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
