package gatewayrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

var scopeA, scopeB = obj{"sessionId": "a"}, obj{"sessionId": "b"}

// SPEC 21, 10.1, 2.7, 9.4, 18.1: one of everything.
func TestSession(t *testing.T) {
	noLeaks(t)
	c := serve(t, Options{Supervisor: newSupervisor(t, nil)}).connect()
	c.answerTo[toolCall] = echo
	c.answerTo[hookBefore] = func(json.RawMessage) (any, error) { return obj{}, nil }
	decided := make(chan struct{})
	c.answerTo[toolApprove] = func(json.RawMessage) (any, error) {
		<-decided
		return obj{"approved": true}, nil
	}
	c.initialize(obj{"hooks": true, "approvals": true, "output": true, "events": "content"})
	h := c.open(scopeA, obj{"shapes": []string{"openai-chat", "gemini"}, "strict": true}, "echo", "send!approve", "secret!deny")
	res := c.exec(h, `text("one"); json({two: 2}); const e = await tools.echo({v: 1}); const s = await tools.send({to: "x"}); [e, s, typeof tools.secret]`)
	if res.Status != "waiting" || len(res.PendingToolCalls) != 1 || res.PendingToolCalls[0].Reason != "approval" || len(res.Output) != 2 {
		t.Fatalf("exec gave %+v, want one that waits for an approval, with its output", res)
	}
	close(decided)
	res = c.wait(h, res.RunID)
	if want := `[{"v":1},{"to":"x"},"undefined"]`; res.Status != "completed" || string(res.Value) != want {
		t.Fatalf("wait gave %+v, want completed with %s", res, want)
	}
	var item struct {
		RunID, CallID string
		Item          supervisor.Item
	}
	if err := json.Unmarshal(c.heard(runOutput, 2), &item); err != nil || item.Item.Text() != `{"two":2}` || item.CallID != "call" || item.RunID == "" {
		t.Errorf("the second run/output is %+v", item)
	}
	var call callParams
	if err := json.Unmarshal(c.heard(toolCall, 1), &call); err != nil || call.ParentCallID != "call" || call.ToolID != "client:app:echo" || call.Scope.SessionID != "a" || call.CallID != item.RunID+":1" {
		t.Errorf("tool/call has %+v", call)
	}
	var kinds []string
	await(c, "the end of the run", func() (bool, bool) {
		kinds = nil
		for _, n := range c.notes {
			var e struct{ Event struct{ Kind string } }
			if n.method == runEvent && json.Unmarshal(n.params, &e) == nil {
				kinds = append(kinds, e.Event.Kind)
			}
		}
		return true, slices.Contains(kinds, "end")
	})
	if want := []string{"exec", "output", "output", "tool_call", "tool_result", "approval", "park", "approval", "tool_call", "tool_result", "resume", "tool_call", "end"}; kinds[0] != "exec" || kinds[len(kinds)-1] != "end" || !cmp.Equal(slices.Sorted(slices.Values(kinds)), slices.Sorted(slices.Values(want))) {
		t.Errorf("events (-want +got):\n%s", cmp.Diff(want, kinds))
	}
	var check checkResult
	c.call("surface/check", obj{"handle": h, "payload": obj{"tools": []obj{{"type": "function", "function": obj{"name": "exec"}}, {"type": "function", "function": obj{"name": "rm"}}}}}, &check)
	if check.OK || check.Code == "" || !strings.Contains(check.Error, `"rm"`) {
		t.Errorf("surface/check gave %+v, want one that names rm", check)
	}
	c.call("run/close", obj{"handle": h}, nil)
	if err := c.hangUp(); err != nil {
		t.Errorf("Serve gave %v, want nil: the client left", err)
	}
}

// SPEC 21: each error, with its code, what it names, and a connection that goes on.
func TestErrors(t *testing.T) {
	noLeaks(t)
	s := serve(t, Options{Supervisor: newSupervisor(t, nil)})
	s.srv.maxHandles = 4
	c := s.connect()
	fails := func(wait <-chan response, code int, text string) {
		t.Helper()
		r := c.got(wait)
		if r.Error == nil || r.Error.Code != code || !strings.Contains(r.Error.Message+string(r.Error.Data), text) {
			t.Errorf("got %s %+v, want error %d with %q", r.Result, r.Error, code, text)
		}
	}
	fails(c.lie("run/open", `{"scope":{}}`), -32001, "initialize")
	fails(c.lie("initialize", `{"protocolVersion":2}`), -32602, "version 1")
	fails(c.lie("initialize", `{"protocolVersion":1,"capabilities":{"hook":true}}`), -32602, "capabilities.hook is unknown; did you mean hooks?")
	c.initialize(nil)
	fails(c.start("initialize", obj{"protocolVersion": 1}), -32001, "twice")
	fails(c.lie("run/exce", `{}`), -32601, "did you mean run/exec?")
	fails(c.lie("run/exec", `{"handel":"h1"}`), -32602, "handel is unknown; did you mean handle?")
	fails(c.lie("run/exec", `[]`), -32602, "params")
	fails(c.start("run/exec", obj{"handle": "h1", "arguments": "{}"}), -32002, `"h1"`)
	fails(c.lie("run/open", `{"scope":{},"tools":[{"name":"x","source":"clint"}]}`), -32602, `tools[0].source is "clint"; did you mean client?`)
	fails(c.start("run/open", obj{"scope": obj{}, "config": obj{"timeoutMS": 5}}), -32004, "invalid_config")
	off := c.open(scopeA, obj{"config": false}, "t")
	fails(c.start("run/exec", obj{"handle": off, "arguments": "{}"}), -32003, "not enabled")
	fails(c.start("run/wait", obj{"handle": off, "arguments": obj{}}), -32003, "not enabled")
	var ok checkResult
	if c.call("surface/check", obj{"handle": off, "payload": 1}, &ok); !ok.OK {
		t.Error("the guard applies though code mode is off")
	}
	many := make([]obj, 50_001)
	for i := range many {
		many[i] = obj{"name": "t", "source": "client"}
	}
	fails(c.lie("run/open", mustJSON(obj{"scope": obj{}, "tools": many})), -32602, "at most 50000")
	// What the catalog does not take is what the model would be shown nothing of.
	h := c.open(scopeA, nil, "t")
	// The model's mistakes are results.
	if res := c.result(c.start("run/exec", obj{"handle": h, "arguments": `{"cod": 1`})); res.Code != "invalid_input" || res.Phase != "input" {
		t.Errorf("broken arguments gave %+v", res)
	}
	if res := c.result(c.start("run/wait", obj{"handle": h, "arguments": obj{}})); res.Code != "invalid_input" {
		t.Errorf("a wait without runId gave %+v", res)
	}
	c.open(scopeA, nil, "t")
	c.open(scopeA, nil, "t")
	fails(c.start("run/open", obj{"scope": scopeA, "tools": []obj{{"name": "t", "source": "client"}}}), -32000, "run/close")
	c.call("run/close", obj{"handle": h}, nil)
	fails(c.start("run/close", obj{"handle": h}), -32002, h)
	h = c.open(scopeA, nil, "t")
	if res := c.exec(h, "1 + 1"); string(res.Value) != "2" {
		t.Errorf("after all that, exec gave %+v", res)
	}
}

func mustJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// SPEC 1.3, 21: code mode that is on and cannot run.
func TestUnavailable(t *testing.T) {
	noLeaks(t)
	c := serve(t, Options{Supervisor: newSupervisor(t, func(o *supervisor.Options) { o.Worker = "/nowhere/qjs-worker" })}).connect()
	c.initialize(nil)
	if res := c.exec(c.open(scopeA, nil, "t"), "1"); res.Code != "runtime_unavailable" {
		t.Errorf("without a worker exec gave %+v", res)
	}
}

// SPEC 21: lines that are no messages. Each has an answer, and the connection goes on or ends.
func TestLines(t *testing.T) {
	for _, test := range []struct {
		name, line string
		code       int
		id         string
	}{
		{"no JSON", `{"jsonrpc":`, -32700, "null"},
		{"NaN", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":NaN}}`, -32700, "null"},
		{"no UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700, "null"},
		{"deep", `{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_001), -32700, "null"},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, -32600, "null"},
		{"an empty batch", `[]`, -32600, "null"},
		{"a number", `7`, -32600, "null"},
		{"an empty object", `{}`, -32600, "null"},
		{"no version", `{"id":1,"method":"initialize"}`, -32600, "1"},
		{"old version", `{"jsonrpc":"1.0","id":1,"method":"initialize"}`, -32600, "1"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"initialize"}`, -32600, "null"},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"initialize"}`, -32600, "null"},
		{"long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"initialize"}`, -32600, "null"},
		{"method number", `{"jsonrpc":"2.0","id":1,"method":1}`, -32600, "1"},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, -32600, "1"},
		{"array params", `{"jsonrpc":"2.0","id":"x","method":"initialize","params":[]}`, -32602, `"x"`},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}`, -32602, "1"},
		{"both", `{"jsonrpc":"2.0","id":1,"method":"initialize","result":1}`, -32600, "1"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}}`, -32600, "null"},
		{"nothing", `{"jsonrpc":"2.0","id":1}`, -32600, "null"},
		{"extra", `{"jsonrpc":"2.0","id":1,"method":"initialize","extra":1}`, -32600, "1"},
		{"case", `{"jsonrpc":"2.0","ID":1,"method":"initialize"}`, -32600, "null"},
		{"answer to nothing", `{"jsonrpc":"2.0","id":99,"result":1}`, -32600, "null"},
		{"answer to a name", `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}`, -32600, "null"},
		{"rpc.", `{"jsonrpc":"2.0","id":1,"method":"rpc.serverInfo"}`, -32601, "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			noLeaks(t)
			c := serve(t, Options{Supervisor: fakeRunner{}}).connect()
			_ = c.send("\r\n  \n" + test.line + "\r")
			r := await(c, "the answer", func() (response, bool) {
				if len(c.orphans) == 0 {
					return response{}, false
				}
				return c.orphans[0], true
			})
			if r.Error == nil || r.Error.Code != test.code || string(r.ID) != test.id {
				t.Errorf("got id %s, %+v; want id %s, error %d", r.ID, r.Error, test.id, test.code)
			}
			c.next = 1000
			c.initialize(nil) // it goes on
		})
	}
}

// SPEC 21: a line without an end, and one that is too long, end the connection with an answer.
func TestLinesThatEndIt(t *testing.T) {
	for name, test := range map[string]struct {
		send func(*client)
		want error
	}{
		"too long": {func(c *client) {
			chunk := strings.Repeat("x", 1<<20)
			for range 65 {
				if _, err := c.conn.Write([]byte(chunk)); err != nil {
					break
				}
			}
		}, errLineTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			c := serve(t, Options{Supervisor: fakeRunner{}}).connect()
			test.send(c)
			if err := c.ended(); !errors.Is(err, test.want) {
				t.Errorf("Serve gave %v, want %v", err, test.want)
			}
			<-c.closed
			if len(c.orphans) != 1 || c.orphans[0].Error.Code != -32700 {
				t.Errorf("answered %+v, want one error -32700", c.orphans)
			}
		})
	}
	t.Run("half a line", func(t *testing.T) {
		noLeaks(t)
		srv := serve(t, Options{Supervisor: fakeRunner{}}).srv
		out := new(lockedBuffer)
		if err := srv.Serve(t.Context(), Stdio(strings.NewReader(`{"jsonrpc":"2.0"`), out)); !errors.Is(err, errHalfLine) {
			t.Errorf("Serve gave %v, want %v", err, errHalfLine)
		}
		if !strings.Contains(out.String(), "-32700") {
			t.Errorf("answered %q, want error -32700", out.String())
		}
	})
	t.Run("half a line, and nothing more", func(t *testing.T) { // a slow client is no liar
		noLeaks(t)
		c := serve(t, Options{Supervisor: fakeRunner{}}).connect()
		c.write.Lock()
		c.conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize",`))
		c.write.Unlock()
		c.next, c.sent["1"] = 1, "initialize"
		wait := make(chan response, 1)
		c.mu.Lock()
		c.waiting["1"] = wait
		c.mu.Unlock()
		_ = c.send(`"params":{"protocolVersion":1}}`)
		if r := c.got(wait); r.Error != nil {
			t.Errorf("a line in two parts: %+v", r.Error)
		}
		_, _ = c.conn.Write([]byte(`{"half`))
		if err := c.hangUp(); !errors.Is(err, errHalfLine) {
			t.Errorf("Serve gave %v, want %v", err, errHalfLine)
		}
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// fakeRunner runs nothing: a cell ends at once, with a value, or as its code says.
type fakeRunner struct {
	exec func(context.Context, supervisor.Program) *supervisor.Result
}

func (f fakeRunner) Exec(ctx context.Context, p supervisor.Program) *supervisor.Result {
	if f.exec != nil {
		return f.exec(ctx, p)
	}
	return &supervisor.Result{Status: supervisor.Completed, Value: json.RawMessage("1"), Telemetry: supervisor.Refuse("", "").Telemetry}
}

func (fakeRunner) Wait(context.Context, supervisor.WaitRequest) *supervisor.Result {
	return supervisor.Refuse(supervisor.InvalidInput, "there is no run")
}
func (fakeRunner) Abort(context.Context, string, supervisor.Scope) error  { return supervisor.ErrNoRun }
func (fakeRunner) Detach(context.Context, string, supervisor.Scope) error { return supervisor.ErrNoRun }
func (fakeRunner) Runs() ([]supervisor.RunInfo, error)                    { return nil, nil }
func (fakeRunner) Inspect(string) (*supervisor.RunDetail, error)          { return nil, supervisor.ErrNoRun }

// A bug of ours costs one request.
func TestPanic(t *testing.T) {
	noLeaks(t)
	c := serve(t, Options{Supervisor: fakeRunner{exec: func(context.Context, supervisor.Program) *supervisor.Result { panic("a bug") }}}).connect()
	c.initialize(nil)
	h := c.open(scopeA, nil, "t")
	if r := c.got(c.start("run/exec", obj{"handle": h, "arguments": obj{"code": "1"}})); r.Error == nil || r.Error.Code != -32603 {
		t.Errorf("got %+v, want error -32603", r)
	}
	c.call("run/close", obj{"handle": h}, nil)
}

// SPEC 21, 14.2, 14.5: a client that vanishes ends its runs, wherever they are; those that are
// parked in a state directory stay.
func TestVanish(t *testing.T) {
	for _, test := range []struct {
		name    string
		code    string
		at      string // the message at which it vanishes
		parked  bool
		durable bool
		left    bool
	}{
		{name: "while the guest computes", code: "text('x'); for (;;);", at: runOutput},
		{name: "in tool/call", code: "await tools.t()", at: toolCall},
		{name: "in the hook", code: "await tools.t()", at: hookBefore},
		{name: "in tool/approve", code: "await tools.ask()", at: toolApprove, parked: true},
		{name: "in tool/approve, durable", code: "await tools.ask()", at: toolApprove, parked: true, durable: true, left: true},
		{name: "while parked", code: "await yield_control()", parked: true},
		{name: "while parked, durable", code: "await yield_control()", parked: true, durable: true, left: true},
		{name: "in the first leg, durable", code: "await tools.t()", at: toolCall, durable: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			noLeaks(t)
			sup := newSupervisor(t, func(o *supervisor.Options) {
				if test.durable {
					o.StateDir = t.TempDir() + "/state"
				}
			})
			c := serve(t, Options{Supervisor: sup, Durable: test.durable}).connect()
			c.answerTo[hookBefore] = func(json.RawMessage) (any, error) { return obj{}, nil }
			if test.at == hookBefore {
				c.answerTo[hookBefore] = silent
			}
			c.initialize(obj{"hooks": true, "approvals": true, "output": true})
			h := c.open(scopeA, nil, "t", "ask!approve")
			wait := c.start("run/exec", obj{"handle": h, "arguments": obj{"code": test.code}})
			if test.at != "" {
				c.heard(test.at, 1)
			}
			if test.parked {
				if res := c.result(wait); res.Status != "waiting" {
					t.Fatalf("exec gave %+v, want waiting", res)
				}
			}
			if err := c.hangUp(); err != nil {
				t.Errorf("Serve gave %v, want nil", err)
			}
			runs, err := sup.Runs()
			if err != nil {
				t.Fatal(err)
			}
			left := 0
			for _, r := range runs {
				if !r.State.Terminal() {
					left++
				}
			}
			if want := map[bool]int{true: 1}[test.left]; left != want {
				t.Errorf("%d runs are left, want %d: %+v", left, want, runs)
			}
		})
	}
}

// SPEC 14.5: who comes back with the same scope goes on, and is asked again.
func TestApprovalIsAskedAgain(t *testing.T) {
	noLeaks(t)
	s := serve(t, Options{Supervisor: newSupervisor(t, func(o *supervisor.Options) { o.StateDir = t.TempDir() + "/state" }), Durable: true})
	first := s.connect()
	first.initialize(obj{"approvals": true})
	res := first.exec(first.open(scopeA, nil, "ask!approve"), "await tools.ask({n: 1})")
	if res.Status != "waiting" {
		t.Fatalf("exec gave %+v, want waiting", res)
	}
	if err := first.hangUp(); err != nil {
		t.Fatal(err)
	}

	stranger := s.connect()
	stranger.initialize(obj{"approvals": true})
	if got := stranger.wait(stranger.open(scopeB, nil, "ask!approve"), res.RunID); got.Code != "invalid_input" {
		t.Fatalf("a stranger's wait gave %+v", got)
	}

	second := s.connect()
	second.answerTo[toolApprove] = func(json.RawMessage) (any, error) { return obj{"approved": true}, nil }
	second.answerTo[toolCall] = echo
	second.initialize(obj{"approvals": true})
	h := second.open(scopeA, nil, "ask!approve")
	got := second.wait(h, res.RunID)
	for got.Status == "waiting" {
		got = second.wait(h, res.RunID)
	}
	if got.Status != "completed" || string(got.Value) != `{"n":1}` {
		t.Errorf("the second client's wait gave %+v", got)
	}
	if again := second.wait(h, res.RunID); string(again.Value) != `{"n":1}` { // SPEC 12.5
		t.Errorf("asked again, wait gave %+v", again)
	}
}

// SPEC 12.4: the handles of two sessions cannot touch each other's runs, and cannot tell them from
// none.
func TestScopes(t *testing.T) {
	noLeaks(t)
	s := serve(t, Options{Supervisor: newSupervisor(t, nil)})
	c, other := s.connect(), s.connect()
	c.initialize(nil)
	other.initialize(nil)
	a, b, nobody := c.open(scopeA, nil, "t"), c.open(scopeB, nil, "t"), c.open(obj{}, nil, "t")
	run := c.exec(a, "await yield_control(); 7").RunID
	private := c.exec(nobody, "await yield_control(); 8").RunID
	const unknown = "00000000000000000000000000000000"
	for _, who := range []struct {
		*client
		handle string
	}{{c, b}, {c, nobody}, {other, other.open(scopeB, nil, "t")}, {other, other.open(obj{}, nil, "t")}} {
		for _, id := range []string{run, private} {
			if who.handle == nobody && id == private {
				continue
			}
			foreign := who.got(who.start("run/wait", obj{"handle": who.handle, "arguments": obj{"runId": id}}))
			none := who.got(who.start("run/wait", obj{"handle": who.handle, "arguments": obj{"runId": unknown}}))
			if string(foreign.Result) != string(none.Result) {
				t.Errorf("foreign and unknown differ:\n%s\n%s", foreign.Result, none.Result)
			}
			foreign = who.got(who.start("run/abort", obj{"handle": who.handle, "runId": id}))
			none = who.got(who.start("run/abort", obj{"handle": who.handle, "runId": unknown}))
			if string(foreign.Result) != `{"aborted":0}` || string(none.Result) != `{"aborted":0}` {
				t.Errorf("aborting foreign and unknown gave %s and %s", foreign.Result, none.Result)
			}
		}
		if who.handle != nobody {
			if r := who.got(who.start("run/abort", obj{"handle": who.handle})); string(r.Result) != `{"aborted":0}` {
				t.Errorf("aborting all of another handle's gave %s", r.Result)
			}
			who.call("run/close", obj{"handle": who.handle}, nil)
		}
	}
	if r := other.got(other.start("run/close", obj{"handle": a})); r.Error == nil || r.Error.Code != -32002 {
		t.Errorf("a handle of another connection: %+v", r)
	}
	if res := c.wait(a, run); string(res.Value) != "7" {
		t.Errorf("the owner's wait gave %+v", res)
	}
	if res := c.wait(nobody, private); string(res.Value) != "8" {
		t.Errorf("the wait of the handle without a scope gave %+v", res)
	}
}

// SPEC 14.2: cancel, abort and close, of runs that are at work and of parked ones.
func TestEnds(t *testing.T) {
	noLeaks(t)
	c := serve(t, Options{Supervisor: newSupervisor(t, func(o *supervisor.Options) { o.MaxWorkers = 4 })}).connect()
	c.initialize(nil)
	h := c.open(scopeA, nil, "t")
	aborted := func(wait <-chan response) {
		t.Helper()
		if res := c.result(wait); res.Code != "aborted" {
			t.Errorf("got %+v, want aborted", res)
		}
	}
	exec := func() <-chan response {
		return c.start("run/exec", obj{"handle": h, "arguments": obj{"code": "await tools.t()"}})
	}
	// A request is cancelled, though it may not have begun.
	wait := exec()
	c.tell("$/cancelRequest", obj{"id": c.next})
	aborted(wait)
	// At work: tool/cancel says that the answer is not wanted.
	wait = exec()
	call := c.heard(toolCall, 1)
	c.tell("$/cancelRequest", obj{"id": c.next})
	aborted(wait)
	var p, cancelled struct{ CallID, Method, RunID string }
	_ = json.Unmarshal(call, &p)
	if _ = json.Unmarshal(c.heard(toolCancel, 1), &cancelled); cancelled.CallID != p.CallID || cancelled.Method != toolCall {
		t.Errorf("tool/cancel has %+v, want that of %+v", cancelled, p)
	}
	// A wait is given up, and the run goes on.
	run := c.exec(h, "await new Promise(r => setTimeout(r, 1)); await yield_control(); await tools.t(); 5").RunID
	var n struct{ Aborted int }
	wait = c.start("run/wait", obj{"handle": h, "arguments": obj{"runId": run}})
	c.heard(toolCall, 2)
	c.tell("$/cancelRequest", obj{"id": c.next})
	aborted(wait)
	if c.call("run/abort", obj{"handle": h, "runId": run}, &n); n.Aborted != 1 {
		t.Errorf("run/abort of a run whose wait was given up: %+v, want 1", n)
	}
	if c.call("run/abort", obj{"handle": h, "runId": run}, &n); n.Aborted != 0 {
		t.Errorf("run/abort of a run that is over: %+v, want 0", n)
	}
	// All of the handle's: one parked, two at work, sent one after the other without waiting.
	c.exec(h, "await yield_control()")
	one, two := exec(), exec()
	all := c.start("run/abort", obj{"handle": h})
	aborted(one)
	aborted(two)
	if r := c.got(all); string(r.Result) != `{"aborted":3}` {
		t.Errorf("run/abort of all gave %s %+v, want 3", r.Result, r.Error)
	}
	// Close, in the same way.
	one = exec()
	closing := c.start("run/close", obj{"handle": h})
	late := exec()
	aborted(one)
	if r := c.got(closing); r.Error != nil {
		t.Errorf("run/close: %+v", r.Error)
	}
	if r := c.got(late); r.Error == nil || r.Error.Code != -32002 {
		t.Errorf("an exec after run/close gave %+v", r)
	}
}

// SPEC 2.7, 10.1: hooks fail closed.
func TestHooks(t *testing.T) {
	noLeaks(t)
	c := serve(t, Options{Supervisor: newSupervisor(t, nil)}).connect()
	var verdict any
	c.answerTo[hookBefore] = func(params json.RawMessage) (any, error) {
		var p struct {
			Event struct{ ToolKind, SessionID string }
		}
		if _ = json.Unmarshal(params, &p); p.Event.ToolKind != "" || p.Event.SessionID != "a" {
			return obj{}, nil
		}
		if err, ok := verdict.(error); ok {
			return nil, err
		}
		return verdict, nil
	}
	c.answerTo[toolCall] = echo
	c.answerTo[toolApprove] = func(json.RawMessage) (any, error) { return obj{"approved": false, "reason": "not today"}, nil }
	c.initialize(obj{"hooks": true, "approvals": true})
	h := c.open(scopeA, nil, "t")
	const code = "try { return await tools.t({v: 1}) } catch (e) { return e.message }"
	for _, test := range []struct {
		verdict any
		want    string
	}{
		{obj{}, `{"v":1}`},
		{obj{"params": obj{"v": 2}}, `{"v":2}`},
		{obj{"block": true, "reason": "because"}, "because"},
		{obj{"approve": true}, "not today"},
		{errors.New("the hook is down"), "the hook is down"},
	} {
		verdict = test.verdict
		res := c.exec(h, code)
		for res.Status == "waiting" {
			res = c.wait(h, res.RunID)
		}
		if !strings.Contains(string(res.Value), test.want) {
			t.Errorf("%v gave %+v, want %s", test.verdict, res, test.want)
		}
	}
}

// SPEC 10.1, 10.5, 10.6: what clients answer, and tell while a call is at work; lies included.
func TestAnswers(t *testing.T) {
	noLeaks(t)
	c := serve(t, Options{Supervisor: newSupervisor(t, nil)}).connect()
	c.initialize(obj{"events": "content"})
	h := c.open(scopeA, obj{"config": obj{"enabled": true, "timeoutMs": 60_000}}, "t")
	const code = "try { json(await tools.t()) } catch (e) { json([e.message, e.code, e.started]) }"
	n := 0
	for _, test := range []struct{ name, reply, want string }{
		{"value", `"result":{"value":{"a":[1]}}`, `{"a":[1]}`},
		{"error", `"result":{"error":{"message":"m","code":"c","started":"no"}}`, `["m","c",false]`},
		{"rejected", `"error":{"code":-1,"message":"broken"}`, `["broken","tool_failed","unknown"]`},
		{"no answer", `"result":17`, "no answer"},
		{"a lie", `"result":{"value":1,"error":{"message":"m"}}`, "one of value and error"},
		{"no error", `"error":17`, "unknown"},
		{"surrogate", `"result":{"value":"\ud800"}`, `"\ud800"`},
		{"huge", `"result":{"value":"` + strings.Repeat("x", 17<<20) + `"}`, "more than a cell can take"},
		{"deep", `"result":{"value":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, "t"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n++
			wait := c.start("run/exec", obj{"handle": h, "arguments": obj{"code": code}})
			var p struct{ CallID string }
			_ = json.Unmarshal(c.heard(toolCall, n), &p)
			id := await(c, "the id", func() (string, bool) {
				for id := range c.asked {
					delete(c.asked, id)
					return id, true
				}
				return "", false
			})
			c.tell("tool/update", obj{"callId": p.CallID, "value": obj{"done": 0.5}})
			_ = c.send(`{"jsonrpc":"2.0","id":99999,"result":{"value":"nobody asked"}}`)
			_ = c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, test.reply))
			_ = c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"value":"twice"}}`, id)) // dropped
			res := c.result(wait)
			if res.Status != "completed" || len(res.Output) != 1 || !strings.Contains(res.Output[0].Text(), test.want) {
				t.Errorf("got %.300s, want %s", mustJSON(res), test.want)
			}
		})
	}
	c.heard(runEvent, 1)
	updates := await(c, "updates", func() (int, bool) {
		found := 0
		for _, m := range c.notes {
			if m.method == runEvent && strings.Contains(string(m.params), `"update"`) && strings.Contains(string(m.params), `{"done":0.5}`) {
				found++
			}
		}
		return found, true
	})
	if updates != n {
		t.Errorf("%d updates came, want %d", updates, n)
	}
	if len(c.orphans) != n {
		t.Errorf("%d answers to nothing were refused, want %d: those that came twice are dropped", len(c.orphans), n)
	}
	// tool/park: the run is parked at once, and the call goes on.
	wait := c.start("run/exec", obj{"handle": h, "arguments": obj{"code": "await tools.t()"}})
	var p struct{ CallID string }
	_ = json.Unmarshal(c.heard(toolCall, n+1), &p)
	c.tell("tool/park", obj{"callId": "nobody", "reason": "x"})
	c.tell("tool/park", obj{"callId": p.CallID, "reason": "a long job"})
	res := c.result(wait)
	if res.Status != "waiting" || res.PendingToolCalls[0].Reason != "a long job" {
		t.Fatalf("after tool/park exec gave %+v", res)
	}
	id := await(c, "the id", func() (id string, ok bool) {
		for id := range c.asked {
			return id, true
		}
		return "", false
	})
	_ = c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"value":9}}`, id))
	if res = c.wait(h, res.RunID); string(res.Value) != "9" {
		t.Errorf("wait gave %+v", res)
	}
}

// SPEC 21: too many requests are refused, and who does not read what it is answered is sent
// away.
func TestFloods(t *testing.T) {
	t.Run("requests", func(t *testing.T) {
		noLeaks(t)
		release := make(chan struct{})
		s := serve(t, Options{Supervisor: fakeRunner{exec: func(ctx context.Context, p supervisor.Program) *supervisor.Result {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return fakeRunner{}.Exec(ctx, p)
		}}})
		c := s.connect()
		c.initialize(nil)
		h := c.open(scopeA, nil, "t")
		var waits []<-chan response
		for range 2 * maxRequests {
			waits = append(waits, c.start("run/exec", obj{"handle": h, "arguments": obj{"code": "1"}}))
		}
		busy := 0
		for _, wait := range waits[maxRequests:] {
			if r := c.got(wait); r.Error != nil && r.Error.Code == -32000 {
				busy++
			}
		}
		if busy != maxRequests {
			t.Errorf("%d of %d requests too many were refused", busy, maxRequests)
		}
		close(release)
		for _, wait := range waits[:maxRequests] {
			c.result(wait)
		}
		c.exec(h, "1")
	})
	t.Run("unread refusals", func(t *testing.T) {
		noLeaks(t)
		c := serve(t, Options{Supervisor: fakeRunner{}}).dial()
		var err error
		for range 10 * maxRequests {
			if err = c.send(`{}`); err != nil {
				break
			}
		}
		if err == nil {
			t.Error("the connection is still open")
		}
		if err := c.hangUp(); err != errFlood {
			t.Errorf("Serve gave %v, want %v", err, errFlood)
		}
	})
	t.Run("notifications", func(t *testing.T) {
		noLeaks(t)
		c := serve(t, Options{Supervisor: fakeRunner{}}).connect()
		c.initialize(nil)
		before := runtime.NumGoroutine()
		for i := range 50_000 {
			c.send([]string{`{"jsonrpc":"2.0","method":"tool/park","params":{"callId":"x"}}`, `{"jsonrpc":"2.0","method":"nonsense"}`, `{"jsonrpc":"2.0","method":"tool/update","params":[]}`}[i%2])
		}
		if n := runtime.NumGoroutine(); n > before+20 {
			t.Errorf("%d goroutines, %d before the flood", n, before)
		}
		c.exec(c.open(scopeA, nil, "t"), "1")
	})
	t.Run("never reads", func(t *testing.T) {
		noLeaks(t)
		s := serve(t, Options{Supervisor: fakeRunner{}, WriteTimeout: 50 * time.Millisecond})
		c := s.dial()
		_ = c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
		if err := c.ended(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Serve gave %v, want a deadline", err)
		}
		c.conn.Close()
	})
}

// SPEC 21, 13.2: a client that stops reading holds neither workers nor the runs of others.
func TestClientThatStopsReading(t *testing.T) {
	noLeaks(t)
	sup := newSupervisor(t, func(o *supervisor.Options) { o.MaxWorkers = 1; o.Pool = -1 })
	s := serve(t, Options{Supervisor: sup, WriteTimeout: 2 * time.Second})
	slow := s.dial()
	steps := make(chan struct{})
	go func() { // reads the first two answers
		defer close(steps)
		lines := newLineReader(slow.conn)
		for range 2 {
			_, _ = lines.next()
		}
	}()
	_ = slow.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"capabilities":{"output":true}}}`)
	_ = slow.send(`{"jsonrpc":"2.0","id":2,"method":"run/open","params":{"scope":{},"config":{"enabled":true,"maxOutputBytes":10485760},"tools":[{"name":"t","source":"client"}]}}`)
	<-steps
	_ = slow.send(`{"jsonrpc":"2.0","id":3,"method":"run/exec","params":{"handle":"h1","arguments":{"code":"for (let i = 0; i < 400; i++) text('x'.repeat(20000)); 1"}}}`)
	c := s.connect()
	c.initialize(nil)
	if res := c.exec(c.open(scopeA, nil, "t"), "'mine'"); string(res.Value) != `"mine"` {
		t.Errorf("beside a client that does not read, exec gave %+v", res)
	}
	if err := slow.ended(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Serve gave %v, want a deadline", err)
	}
	slow.conn.Close()
}

// The third must hold of issue 6: 200 runs at once over one connection are all answered, in a
// fair order, in bounded memory, and leave no goroutine.
func TestManyRuns(t *testing.T) {
	noLeaks(t)
	const runs, workers = manyRuns, 4
	sup := newSupervisor(t, func(o *supervisor.Options) { o.MaxWorkers = workers })
	c := serve(t, Options{Supervisor: sup}).connect()
	c.answerTo[toolCall] = echo
	c.initialize(obj{"output": true})
	h := c.open(scopeA, obj{"config": obj{"enabled": true, "timeoutMs": 60_000, "maxOutputBytes": 10 << 20}}, "echo")
	c.exec(h, "1") // what is made once is made
	runtime.GC()
	runtime.GC() // what pools hold survives one
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	// The first one floods; it must not be in the way of the others.
	flood := c.start("run/exec", obj{"handle": h, "callId": "flood", "arguments": obj{"code": "for (let i = 0; i < 300; i++) text('x'.repeat(20000)); 'flood'"}})
	var mu sync.Mutex
	var order []int
	var done sync.WaitGroup
	for i := range runs {
		wait := c.start("run/exec", obj{"handle": h, "callId": fmt.Sprint(i), "arguments": obj{"code": fmt.Sprintf("text('began'); (await tools.echo({i: %d})).i", i)}})
		done.Go(func() {
			res := c.result(wait)
			if string(res.Value) != fmt.Sprint(i) {
				t.Errorf("run %d gave %+v", i, res)
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
		})
	}
	done.Wait()
	if res := c.result(flood); string(res.Value) != `"flood"` {
		t.Errorf("the flood gave %.200s", mustJSON(res))
	}
	var began []int
	c.mu.Lock()
	for _, n := range c.notes {
		var p struct {
			CallID string
			Item   supervisor.Item
		}
		i := 0
		if n.method == runOutput && json.Unmarshal(n.params, &p) == nil {
			if _, err := fmt.Sscan(p.CallID, &i); err == nil {
				began = append(began, i)
			}
		}
	}
	c.notes = nil
	c.mu.Unlock()
	// Workers start side by side, so neighbours may change places; nobody is overtaken by many.
	for place, i := range began {
		if d := place - i; d > 4*workers || d < -4*workers {
			t.Errorf("run %d began at place %d", i, place)
		}
	}
	if len(began) != runs {
		t.Errorf("%d runs said that they began, want %d", len(began), runs)
	}
	c.call("run/close", obj{"handle": h}, nil)
	runtime.GC()
	runtime.GC() // what pools hold survives one
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("the heap has grown by %d bytes over %d runs", grown, runs)
	} else {
		t.Logf("the heap has grown by %d KiB, %d goroutines", grown>>10, runtime.NumGoroutine())
	}
}

// Many clients come and go while the server ends (SPEC 14.2).
func TestServerEnds(t *testing.T) {
	noLeaks(t)
	sup := newSupervisor(t, func(o *supervisor.Options) { o.MaxWorkers = 6 })
	srv := serve(t, Options{Supervisor: sup}).srv
	path := t.TempDir() + "/s"
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.Listen(ctx, l) }()
	s := &served{t, srv, readDocument(t)}
	var waits []<-chan response
	var clients []*client
	for range 5 {
		c := s.dialUnix(path)
		c.initialize(nil)
		h := c.open(scopeA, nil, "t")
		waits = append(waits, c.start("run/exec", obj{"handle": h, "arguments": obj{"code": "await tools.t()"}}))
		c.heard(toolCall, 1)
		clients = append(clients, c)
	}
	why := errors.New("the end of the test")
	stop(why)
	for i, c := range clients {
		if res := c.result(waits[i]); res.Code != "aborted" {
			t.Errorf("client %d got %+v, want aborted", i, res)
		}
		<-c.closed
		c.conn.Close()
	}
	if err := <-ended; err != why {
		t.Errorf("Listen gave %v, want %v", err, why)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
}
