package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// guarded is a catalog in which echo takes an object with a number v, and what is called like
// one of approve needs an approval.
func guarded(t *testing.T, approve ...string) *catalog.Catalog {
	t.Helper()
	entries := catalog.Policy{Approve: approve}.Apply([]catalog.Entry{
		{Name: "echo", Source: catalog.Client, Parameters: json.RawMessage(`{"type":"object","properties":{"v":{"type":"number"},"w":{"default":1}}}`)},
		{Name: "echo", Source: catalog.MCP, SourceName: "shelf"},
		{Name: "list_events", Source: catalog.Plugin, SourceName: "cal"},
	})
	c, _, err := catalog.Build(entries, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trail is a trajectory as one word for each event of a nested call.
func trail(m *trajectory.Memory) (words []string) {
	events := m.Events()
	for _, e := range events {
		if e.CallID != "" {
			words = append(words, strings.TrimSuffix(string(e.Kind)+" "+e.Status, " "))
		}
	}
	return words
}

// SPEC 10.1: the hook sees each nested call with all that a gateway must know of it, and what it
// says is done. Nothing is started that it did not let through.
// Validation 12: nested calls keep approvals and hooks
func TestHookOfCalls(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict surface.Verdict
		err     error
		panics  bool
		value   string // of the cell: what became of the call
		ran     string // what the executor got
		trail   []string
	}{
		{name: "lets it through", value: `["done: {\"v\":1,\"w\":1}"]`, ran: `{"v":1,"w":1}`, trail: []string{"tool_call", "tool_result done"}},
		{name: "rewrites it", verdict: surface.Verdict{Params: json.RawMessage(`{"v":2}`)},
			value: `["done: {\"v\":2,\"w\":1}"]`, ran: `{"v":2,"w":1}`, trail: []string{"hook rewritten", "tool_call", "tool_result done"}},
		{name: "rewrites it to what the tool does not take", verdict: surface.Verdict{Params: json.RawMessage(`{"v":"two"}`)},
			value: `["invalid_input: the before-tool hook gave tool`, trail: []string{"hook rewritten", "tool_result failed"}},
		{name: "rewrites it to nonsense", verdict: surface.Verdict{Params: json.RawMessage(`{`)},
			value: `["invalid_input: the before-tool hook gave tool`, trail: []string{"hook rewritten", "tool_result failed"}},
		{name: "blocks it", verdict: surface.Verdict{Block: true, Reason: "not on \x1b[31mSunday"},
			value: `["blocked: the before-tool hook refused tool \"client:app:echo\": not on  [31mSunday; the tool was not started`, trail: []string{"hook blocked", "tool_result failed"}},
		{name: "blocks it, whatever else it says", verdict: surface.Verdict{Block: true, Params: json.RawMessage(`{"v":2}`), Approve: true},
			value: `["blocked: `, trail: []string{"hook blocked", "tool_result failed"}},
		{name: "fails", err: errors.New("no database"), value: `["blocked: the before-tool hook failed for tool`, trail: []string{"hook blocked", "tool_result failed"}},
		{name: "panics", panics: true, value: `["tool_failed: tool \"client:app:echo\" failed inside the gateway`, trail: []string{"tool_result failed"}},
		{name: "wants an approval that nobody gives", verdict: surface.Verdict{Approve: true, Reason: "money"},
			value: `["not_approved: tool \"client:app:echo\" needs approval: nobody can be asked; the tool was not started`, trail: []string{"hook approval", "approval refused", "tool_result failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen []surface.HookEvent
			var ran []string
			events := trajectory.NewMemory(0, 0)
			res := fake(t, "forges").Exec(t.Context(), Program{
				Code: `[["call","echo","{\"v\":1}"]]`, Catalog: guarded(t), ParentCallID: "exec-1", Scope: Scope{AgentID: "a", Sender: "me"},
				Trajectory: trajectory.New(events, trajectory.Policy{}),
				Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
					ran = append(ran, string(call.Input))
					return call.Input, nil
				}),
				Hooks: Hooks{BeforeTool: func(_ context.Context, e surface.HookEvent) (surface.Verdict, error) {
					if e.ToolKind == surface.ToolKind {
						return surface.Verdict{}, nil
					}
					if seen = append(seen, e); c.panics {
						panic("a fault of the gateway's")
					}
					return c.verdict, c.err
				}},
			})
			if !strings.HasPrefix(string(res.Value), strings.TrimSuffix(c.value, `"]`)) {
				t.Errorf("got %s", res.JSON())
			}
			if got := strings.Join(ran, " "); got != c.ran {
				t.Errorf("the executor got %q, want %q", got, c.ran)
			}
			want := []surface.HookEvent{{
				ToolName: "echo", ToolCallID: res.RunID + ":1", Params: json.RawMessage(`{"v":1,"w":1}`), RunID: res.RunID, ParentCallID: "exec-1",
				ToolID: "client:app:echo", Source: catalog.Client, Identity: surface.Identity{AgentID: "a", Sender: "me"},
			}}
			if d := cmp.Diff(want, seen); d != "" {
				t.Errorf("the hook saw (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.trail, trail(events)); d != "" {
				t.Errorf("the trajectory has (-want +got):\n%s", d)
			}
			if started := res.Telemetry.Calls[0].State == Done; started != (c.ran != "") {
				t.Errorf("telemetry says %+v", res.Telemetry.Calls)
			}
		})
	}
}

// SPEC 2.7: the hook sees the exec before anything of it runs, and decides about it.
func TestHookOfExec(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict surface.Verdict
		err     error
		panics  bool
		approve func(context.Context, *Approval) error
		code    Code
		phase   Phase
		text    string // of the error
		value   string // what the worker was given as source
	}{
		{name: "lets it through", value: `["invalid_input: `},
		{name: "rewrites it", verdict: surface.Verdict{Params: json.RawMessage(`{"code":"[]"}`)}, value: `[]`},
		{name: "rewrites the alias", verdict: surface.Verdict{Params: json.RawMessage(`{"command":"[]"}`)}, value: `[]`},
		{name: "rewrites both, differently", verdict: surface.Verdict{Params: json.RawMessage(`{"code":"[]","command":"[ ]"}`)}, code: InvalidInput, phase: PhaseInput, text: "differently"},
		{name: "blanks it", verdict: surface.Verdict{Params: json.RawMessage(`{"command":""}`)}, code: InvalidInput, phase: PhaseInput, text: "blanked"},
		{name: "rewrites the language", verdict: surface.Verdict{Params: json.RawMessage(`{"language":"cobol"}`)}, code: UnsupportedLanguage, phase: PhaseInput, text: "cobol"},
		{name: "says nonsense", verdict: surface.Verdict{Params: json.RawMessage(`[`)}, code: InvalidInput, phase: PhaseInput, text: "hook"},
		{name: "blocks it", verdict: surface.Verdict{Block: true, Reason: "not now"}, code: InvalidInput, phase: PhaseInput, text: "refused this exec, so it was not run: not now"},
		{name: "fails", err: errors.New("no database"), code: RuntimeUnavailable, phase: PhaseHost, text: "no database"},
		{name: "panics", panics: true, code: RuntimeUnavailable, phase: PhaseHost, text: "so the cell was not run"},
		{name: "wants an approval that nobody gives", verdict: surface.Verdict{Approve: true}, code: InvalidInput, phase: PhaseInput, text: "nobody can be asked"},
		{name: "wants an approval, is refused", verdict: surface.Verdict{Approve: true}, code: InvalidInput, phase: PhaseInput, text: "too late at night",
			approve: func(context.Context, *Approval) error { return errors.New("too late at night") }},
		{name: "wants an approval, gets it for what it rewrote", verdict: surface.Verdict{Approve: true, Reason: "r", Params: json.RawMessage(`{"code":"[]"}`)}, value: `[]`,
			approve: func(_ context.Context, a *Approval) error {
				a.Hold("has no effect here")
				if got := string(a.Event.Params); got != `{"code":"[]","command":"[]"}` || a.Reason != "r" {
					return fmt.Errorf("asked about %s, %s", got, a.Reason)
				}
				return nil
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen []surface.HookEvent
			const code = `[["search","x","garbage"]]`
			res := fake(t, "forges").Exec(t.Context(), Program{
				Command: code, Catalog: guarded(t), ParentCallID: "exec-1", Scope: Scope{SessionID: "s"},
				Hooks: Hooks{Approve: c.approve, BeforeTool: func(_ context.Context, e surface.HookEvent) (surface.Verdict, error) {
					if seen = append(seen, e); c.panics {
						panic("a fault of the gateway's")
					}
					return c.verdict, c.err
				}},
			})
			if c.code != "" {
				want(t, res, c.code, c.phase, c.text)
			} else if res.Status != Completed || !strings.HasPrefix(string(res.Value), c.value) {
				t.Errorf("got %s", res.JSON())
			}
			params, err := json.Marshal(map[string]string{"code": code, "command": code})
			if err != nil {
				t.Fatal(err)
			}
			event := surface.HookEvent{
				ToolName: "exec", ToolKind: "code_mode_exec", ToolCallID: "exec-1", ToolInputKind: "javascript", RunID: res.RunID,
				Params: params, Identity: surface.Identity{SessionID: "s"},
			}
			if d := cmp.Diff([]surface.HookEvent{event}, seen); d != "" {
				t.Errorf("the hook saw (-want +got):\n%s", d)
			}
		})
	}
}

// SPEC 14.2: a hook that never answers ends with who called, and with the supervisor.
func TestHookHangs(t *testing.T) {
	for _, closes := range []bool{true, false} {
		s := fake(t, "ok")
		ctx, cancel := context.WithCancel(t.Context())
		arrived := make(chan struct{})
		done := make(chan *Result, 1)
		go func() {
			done <- s.Exec(ctx, Program{Code: "1", Hooks: Hooks{BeforeTool: func(ctx context.Context, _ surface.HookEvent) (surface.Verdict, error) {
				close(arrived)
				<-ctx.Done()
				return surface.Verdict{}, nil // it lets it through, and it is too late
			}}})
		}()
		if <-arrived; closes {
			s.Close()
		} else {
			cancel()
		}
		want(t, <-done, Aborted, PhaseHost, "before its cell ran")
		cancel()
	}
}

// SPEC 10.1, 6.5: a tool that needs approval needs it whichever way it is named, once for each
// call, and is not started without.
// Validation 12: nested calls keep approvals and hooks
func TestApprovalByAnyName(t *testing.T) {
	ways := [][3]string{
		{"call", "client:app:echo", `{}`}, {"call", "mcp:shelf:echo", `{}`}, {"mcp", "shelf.echo", `{}`},
		{"namespace", "calendar\x1flist", `[]`}, {"call", "list_events", `{}`}, {"call", "plugin:cal:list_events", `{}`},
	}
	source, err := json.Marshal(ways)
	if err != nil {
		t.Fatal(err)
	}
	for _, patterns := range [][]string{{"*"}, {"echo", "list_events"}, {"client:app:echo", "MCP.shelf", "plugin:cal:*"}, {"tools.echo", "MCP.shelf.echo", "tools.list_events"}} {
		for _, granted := range []bool{true, false} {
			t.Run(fmt.Sprint(patterns, granted), func(t *testing.T) {
				var mu sync.Mutex
				var asked, ran []string
				events := trajectory.NewMemory(0, 0)
				res := fake(t, "forges").Exec(t.Context(), Program{
					Code: string(source), Catalog: guarded(t, patterns...), Namespaces: calendar(t, plainScope), Trajectory: trajectory.New(events, trajectory.Policy{}),
					Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
						mu.Lock()
						defer mu.Unlock()
						ran = append(ran, call.ID)
						return nil, nil
					}),
					Hooks: Hooks{Approve: func(_ context.Context, a *Approval) error {
						mu.Lock()
						defer mu.Unlock()
						asked = append(asked, a.Event.ToolCallID)
						if !granted {
							return errors.New("no")
						}
						return nil
					}},
				})
				var answers []string
				if err := json.Unmarshal(res.Value, &answers); err != nil {
					t.Fatalf("%s", res.JSON())
				}
				var called []string // of those that exist by that name
				for i, a := range answers {
					if strings.HasPrefix(a, "unknown_tool") {
						continue
					}
					called = append(called, fmt.Sprintf("%s:%d", res.RunID, i+1))
					if refused := strings.HasPrefix(a, "not_approved: "); refused == granted {
						t.Errorf("%q: %s", ways[i], a)
					}
				}
				slices.Sort(asked)
				slices.Sort(ran)
				if d := cmp.Diff(called, asked); d != "" || len(called) < 5 {
					t.Errorf("of %d calls were asked for (-want +got):\n%s", len(called), d)
				}
				if !granted {
					called = nil
				}
				if d := cmp.Diff(called, ran); d != "" {
					t.Errorf("ran (-want +got):\n%s", d)
				}
				statuses := trail(events)
				count := func(word string) (n int) {
					for _, s := range statuses {
						if s == word {
							n++
						}
					}
					return n
				}
				if count("approval asked") != len(asked) || count("approval granted") != len(ran) || count("tool_call") != len(ran) || count("approval refused")+count("approval granted") != len(asked) {
					t.Errorf("the trajectory has %q", statuses)
				}
			})
		}
	}
}

// SPEC 10.5, 14.5: an approval parks the run, costs none of its time, and is asked for again by a
// supervisor that comes later. The tool is started once.
// Validation 12: nested calls keep approvals and hooks
func TestApprovalParks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := fakeIn(t, "park-call", dir)
	asked := make(chan *Approval, 1)
	never := func(ctx context.Context, a *Approval) error {
		a.Hold("approval")
		asked <- a
		<-ctx.Done()
		return context.Cause(ctx)
	}
	executor := func(context.Context, *Call) (json.RawMessage, error) {
		t.Error("the tool was started without an approval")
		return nil, nil
	}
	res := parked(t, first, Program{Catalog: guarded(t, "echo"), Executor: ExecutorFunc(executor), Hooks: Hooks{Approve: never}})
	<-asked
	if p := res.PendingToolCalls; len(p) != 1 || p[0].State != NotStarted || p[0].Reason != "approval" {
		t.Errorf("pending: %+v", p)
	}
	first.Close()

	second := fakeIn(t, "park-call", dir)
	var ran []string
	end := second.Wait(t.Context(), WaitRequest{
		RunID: res.RunID, Hooks: Hooks{Approve: func(_ context.Context, a *Approval) error {
			a.Hold("approval")
			asked <- a
			return nil
		}},
		Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
			ran = append(ran, call.ID)
			return json.RawMessage(`"granted"`), nil
		}),
	})
	if again := <-asked; again.Event.ToolCallID != res.RunID+":1" || string(again.Event.Params) != `{"v":1,"w":1}` {
		t.Errorf("asked again about %+v", again.Event)
	}
	if end.Status != Completed || string(end.Value) != `"granted"` || len(ran) != 1 {
		t.Errorf("ran %q, got %s", ran, end.JSON())
	}
}

// SPEC 14.5, 21: a run that is detached waits in the state directory, for this process too, and
// who goes on with it brings his own executor and hooks. One that no directory has ends.
func TestDetach(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "state")} {
		s := fakeIn(t, "park-call", dir)
		owner := Scope{SessionID: "s"}
		h := newHeld(func(c *Call) { c.Hold("approval") })
		res := parked(t, s, Program{Catalog: guarded(t), Executor: h, Scope: owner})
		<-h.arrived
		for _, other := range []Scope{{}, {SessionID: "t"}} {
			if err := s.Detach(t.Context(), res.RunID, other); !errors.Is(err, ErrNoRun) {
				t.Errorf("a stranger: %v", err)
			}
		}
		if err := s.Detach(t.Context(), res.RunID, owner); err != nil {
			t.Fatal(err)
		}
		if err := s.Detach(t.Context(), res.RunID, owner); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if err := s.Detach(t.Context(), "nothing", owner); !errors.Is(err, ErrNoRun) {
			t.Errorf("an unknown run: %v", err)
		}
		next := newHeld(nil)
		next.release <- json.RawMessage(`"later"`)
		end := s.Wait(t.Context(), WaitRequest{RunID: res.RunID, Scope: owner, Executor: next})
		if dir == "" {
			want(t, end, Aborted, PhaseHost, "let go of it")
			continue
		}
		if end.Status != Completed || string(end.Value) != `"later"` || len(next.arrived) != 1 {
			t.Errorf("got %s", end.JSON())
		}
		s.Close()
	}
}

// SPEC 14.5: a detached run is another process's for the taking, at once.
func TestDetachedIsNobodys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first, second := fakeIn(t, "park-call", dir), fakeIn(t, "park-call", dir)
	h := newHeld(func(c *Call) { c.Hold("approval") })
	res := parked(t, first, Program{Catalog: guarded(t), Executor: h})
	want(t, wait(second, res.RunID), InvalidInput, PhaseInput, "is held by")
	if err := first.Detach(t.Context(), res.RunID, Scope{}); err != nil {
		t.Fatal(err)
	}
	next := newHeld(nil)
	next.release <- json.RawMessage(`1`)
	if end := second.Wait(t.Context(), WaitRequest{RunID: res.RunID, Executor: next}); end.Status != Completed {
		t.Errorf("got %s", end.JSON())
	}
	first.Close()
}

// SPEC 10.6: what an executor tells reaches the embedder and the trajectory, in order, within
// bounds, and never the cell.
func TestUpdates(t *testing.T) {
	var got []Update
	events := trajectory.NewMemory(0, 0)
	policy := trajectory.Policy{Update: trajectory.KeepContent}
	var late *Call
	res := fake(t, "forges").Exec(t.Context(), Program{
		Code: `[["call","client:app:echo","{}"]]`, Catalog: guarded(t), Update: func(u Update) { got = append(got, u) },
		Trajectory: trajectory.New(events, policy),
		Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
			late = call
			for _, v := range []string{`{"done":1}`, `not JSON`, `"` + strings.Repeat("x", MaxUpdateBytes) + `"`, "", "\"\xff\"", `"half"`} {
				call.Update(json.RawMessage(v))
			}
			return json.RawMessage(`"result"`), nil
		}),
	})
	late.Update(json.RawMessage(`"too late"`))
	want := []Update{{res.RunID, res.RunID + ":1", "client:app:echo", json.RawMessage(`{"done":1}`)}, {res.RunID, res.RunID + ":1", "client:app:echo", json.RawMessage(`"half"`)}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"tool_call", "update", "update", "tool_result done"}, trail(events)); d != "" {
		t.Errorf("the trajectory has (-want +got):\n%s", d)
	}
	if string(res.Value) != `["done: \"result\""]` || len(res.Output) > 0 {
		t.Errorf("got %s", res.JSON())
	}
}

// SPEC 10.1, 14.5: a run that began with a hook makes no call for somebody who has none: what the
// hook wanted a person to decide must not happen because another process goes on with it.
func TestHookedRunNeedsHooks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := fakeIn(t, "park-call", dir)
	asks := func(context.Context, surface.HookEvent) (surface.Verdict, error) {
		return surface.Verdict{Approve: true}, nil
	}
	asked := make(chan struct{}, 1)
	res := parked(t, first, Program{Catalog: guarded(t), Executor: newHeld(nil), Hooks: Hooks{
		BeforeTool: func(ctx context.Context, e surface.HookEvent) (surface.Verdict, error) {
			if e.ToolKind != "" {
				return surface.Verdict{}, nil
			}
			return asks(ctx, e)
		},
		Approve: func(ctx context.Context, a *Approval) error {
			a.Hold("approval")
			asked <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		},
	}})
	<-asked
	first.Close()

	second := fakeIn(t, "park-call", dir)
	executor := newHeld(nil)
	executor.release <- json.RawMessage(`1`)
	end := second.Wait(t.Context(), WaitRequest{RunID: res.RunID, Executor: executor})
	if len(executor.arrived) > 0 || len(end.Telemetry.Calls) != 1 || end.Telemetry.Calls[0].State == Done {
		t.Errorf("the tool was started: %s", end.JSON())
	}
}

// SPEC 14.5: a Hold that comes after the answer does not make a tool at work look as if it had not
// been started; a hook and an approver get input of their own, which they cannot change unseen.
func TestLateHold(t *testing.T) {
	var late *Approval
	spoil := func(b json.RawMessage) {
		for i := range b {
			b[i] = 'x'
		}
	}
	res := fake(t, "forges").Exec(t.Context(), Program{
		Code: `[["call","client:app:echo","{\"v\":1}"]]`, Catalog: guarded(t, "echo"),
		Hooks: Hooks{
			BeforeTool: func(_ context.Context, e surface.HookEvent) (surface.Verdict, error) {
				if e.ToolKind == "" {
					spoil(e.Params)
				}
				return surface.Verdict{}, nil
			},
			Approve: func(_ context.Context, a *Approval) error {
				spoil(a.Event.Params)
				late = a
				return nil
			},
		},
		Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
			late.Hold("too late")
			if _, held, _ := call.call.wait(); held || !call.call.started.Load() {
				t.Error("the tool is at work, and counts as not started")
			}
			return call.Input, nil
		}),
	})
	if string(res.Value) != `["done: {\"v\":1,\"w\":1}"]` {
		t.Errorf("got %s", res.JSON())
	}
}

// SPEC 10.6: an update is what it was when it was told, and one of a call that has ended is none.
func TestUpdatesOfTheMoment(t *testing.T) {
	var got []string
	fake(t, "forges").Exec(t.Context(), Program{
		Code: `[["call","client:app:echo","{}"]]`, Catalog: guarded(t), Update: func(u Update) { got = append(got, string(u.Value)) },
		Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
			buffer := []byte(`1`)
			call.Update(buffer)
			buffer[0] = '2'
			call.call.ended.Store(true)
			call.Update(json.RawMessage(`3`))
			return nil, nil
		}),
	})
	if d := cmp.Diff([]string{"1"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// SPEC 14.5: what fails because the supervisor is closed, or the run detached, while it is being
// resumed is not the run's end.
func TestCutOffWhileResuming(t *testing.T) {
	for _, cause := range []error{errClosed, errDetached} {
		r := newRun(fake(t, "ok"), Program{}, newID())
		r.parked = true
		r.journal.Store(true)
		r.abort(cause)
		for name, e := range map[string]*end{"unrestored": r.unrestored(cause), "unable": r.unable(nil, hostf(InternalError, "the store failed"))} {
			if e == nil || e.fail == nil || !r.leaves(e.fail) {
				t.Errorf("%v, %s: got %+v", cause, name, e)
			}
		}
	}
}

// SPEC 14.5: a result that the log has is not written there a second time by who adopts the run,
// and then given to the cell twice.
func TestAdoptedTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := fakeIn(t, "park-call", dir)
	h := newHeld(func(c *Call) { c.Park("long") })
	res := parked(t, first, Program{Catalog: guarded(t), Executor: h})
	<-h.arrived
	h.release <- json.RawMessage(`"once"`)
	results := func(s *Supervisor) (n int) {
		saved, err := s.store.Load(res.RunID)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range saved.Log {
			if strings.Contains(string(raw), `"Kind":"`+logResult+`"`) {
				n++
			}
		}
		return n
	}
	for results(first) == 0 { // the test's timeout ends it
		runtime.Gosched()
	}
	first.Close()

	second := fakeIn(t, "park-call", dir)
	second.worker.path = filepath.Join(dir, "no-worker")
	want(t, wait(second, res.RunID), RuntimeUnavailable, PhaseHost, "still parked")
	second.Close()

	third := fakeIn(t, "park-call", dir)
	if n := results(third); n != 1 {
		t.Errorf("the log has %d results of one call", n)
	}
	if end := wait(third, res.RunID); end.Status != Completed || string(end.Value) != `"once"` || len(end.Telemetry.Calls) != 1 {
		t.Errorf("got %s", end.JSON())
	}
}
