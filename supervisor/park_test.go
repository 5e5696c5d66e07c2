package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/snapshot"
)

// parked runs a cell that must come to wait.
func parked(t *testing.T, s *Supervisor, p Program) *Result {
	t.Helper()
	if p.Code == "" {
		p.Code = "1"
	}
	res := s.Exec(context.Background(), p)
	if res.Status != Waiting || res.RunID == "" {
		t.Fatalf("want a run that waits, got %s", res.JSON())
	}
	if kids := children(t); len(kids) > 0 {
		t.Errorf("the run is parked and its worker lives: %v", kids)
	}
	return res
}

func wait(s *Supervisor, id string) *Result {
	return s.Wait(context.Background(), WaitRequest{RunID: id})
}

// want fails the test unless res failed like this.
func want(t *testing.T, res *Result, code Code, phase Phase, text string) {
	t.Helper()
	if res.Status != Failed || res.Code != code || res.Phase != phase || !strings.Contains(res.Error, text) {
		t.Errorf("want %s, %s, %q, got %s", code, phase, text, res.JSON())
	}
}

// SPEC 9.3, 12.1, 12.3, 12.5: a run that yields waits, goes on, and gives its end again.
// Validation 20: wait resumes a snapshot and gives the final value
func TestYieldAndWait(t *testing.T) {
	s := fake(t, "park")
	res := parked(t, s, Program{})
	if res.Reason != ReasonYield || res.Note != "resting" || len(res.Output) != 1 || res.Output[0].Text() != "a" {
		t.Errorf("got %s", res.JSON())
	}
	if c := res.Telemetry.Snapshot; c.Created != 1 || c.Bytes == 0 || c.Restored != 0 {
		t.Errorf("got %+v", c)
	}
	var shown map[string]any
	if err := json.Unmarshal(res.JSON(), &shown); err != nil || shown["runId"] != res.RunID || shown["status"] != "waiting" {
		t.Errorf("%v in %s", err, res.JSON())
	}
	end := wait(s, res.RunID)
	if end.Status != Completed || string(end.Value) != "3" || len(end.Output) != 1 || end.Output[0].Text() != "b" || end.RunID != res.RunID {
		t.Errorf("got %s", end.JSON())
	}
	if c := end.Telemetry.Counts; c.Exec != 1 || c.Wait != 1 {
		t.Errorf("got counts %+v", c)
	}
	again := wait(s, res.RunID)
	if d := cmp.Diff(string(end.JSON()), string(again.JSON())); d != "" {
		t.Errorf("the second time (-first +second):\n%s", d)
	}
	want(t, s.Wait(context.Background(), WaitRequest{RunID: res.RunID + "0"}), InvalidInput, PhaseInput, "no run")
}

// SPEC 12.1: a yield parks again and again; the id stays.
func TestManySuspensions(t *testing.T) {
	s := fake(t, "park-for-ever")
	res := parked(t, s, Program{})
	for i := range 10 {
		next := wait(s, res.RunID)
		if next.Status != Waiting || next.RunID != res.RunID || next.Telemetry.Counts.Wait != i+1 || next.Telemetry.Snapshot.Created != i+2 {
			t.Fatalf("wait %d: got %s", i, next.JSON())
		}
	}
	if runs, err := s.Runs(); err != nil || len(runs) != 1 || runs[0].State != snapshot.Waiting {
		t.Errorf("got %+v, %v", runs, err)
	}
	if err := s.Abort(context.Background(), res.RunID, Scope{}); err != nil {
		t.Fatal(err)
	}
	want(t, wait(s, res.RunID), Aborted, PhaseHost, "its owner or an operator ended it")
	if err := s.Abort(context.Background(), res.RunID, Scope{}); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// held is an executor whose calls say what the test tells them to, and end when it lets
// them.
type held struct {
	pause   func(*Call)
	arrived chan *Call
	release chan json.RawMessage
}

func newHeld(pause func(*Call)) *held {
	return &held{pause, make(chan *Call, 16), make(chan json.RawMessage, 16)}
}

func (h *held) Call(ctx context.Context, c *Call) (json.RawMessage, error) {
	if h.pause != nil {
		h.pause(c)
	}
	h.arrived <- c
	select {
	case v := <-h.release:
		return v, c.Release()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// SPEC 10.5, 11.4, 12.1, 12.3, 12.6: a call that its executor parks parks the run at once; its
// result waits for the guest.
func TestParkedCall(t *testing.T) {
	for name, pause := range map[string]func(*Call){
		"park": func(c *Call) { c.Park("a long query") },
		"hold": func(c *Call) { c.Hold("a person") },
	} {
		t.Run(name, func(t *testing.T) {
			s := fake(t, "park-call")
			cat, _ := tools(t)
			h := newHeld(pause)
			l := limits.Default()
			l.Timeout = 30 * time.Second
			began := time.Now()
			res := parked(t, s, Program{Catalog: cat, Executor: h, Limits: l})
			if time.Since(began) > 10*time.Second {
				t.Error("it did not park at once")
			}
			state, reason := InFlight, "a long query"
			if name == "hold" {
				state, reason = NotStarted, "a person"
			}
			if d := cmp.Diff([]PendingCall{{res.RunID + ":1", "client:app:echo", state, reason}}, res.PendingToolCalls); res.Reason != ReasonPendingTools || d != "" {
				t.Errorf("got %s\n%s", res.JSON(), d)
			}
			<-h.arrived
			h.release <- json.RawMessage(`"later"`)
			end := wait(s, res.RunID)
			if end.Status != Completed || string(end.Value) != `"later"` || end.Telemetry.Calls[0].State != Done {
				t.Errorf("got %s", end.JSON())
			}
		})
	}
}

// SPEC 12.1, 12.3: a call that outlives the budget parks the run before it is over; a wait
// that nothing settles for answers in time, too.
func TestCallOutlivesTheBudget(t *testing.T) {
	s := fake(t, "park-call")
	cat, _ := tools(t)
	h := newHeld(nil)
	l := short()
	began := time.Now()
	res := parked(t, s, Program{Catalog: cat, Executor: h, Limits: l})
	if took := time.Since(began); took < l.Timeout/2 || took > l.Timeout+slack {
		t.Errorf("it answered after %v", took)
	}
	began = time.Now()
	still := wait(s, res.RunID)
	if took := time.Since(began); still.Status != Waiting || took < l.Timeout/2 || took > l.Timeout+slack {
		t.Errorf("after %v: %s", took, still.JSON())
	}
	if still.Telemetry.Snapshot.Restored != 0 {
		t.Errorf("a worker was started for nothing: %s", still.JSON())
	}
	h.release <- json.RawMessage(`7`)
	if end := wait(s, res.RunID); end.Status != Completed || string(end.Value) != "7" {
		t.Errorf("got %s", end.JSON())
	}
}

// SPEC 15.5: what a worker can do wrong when it is parked or resumed, and what it costs.
func TestParkingWorkerFailures(t *testing.T) {
	for _, c := range []struct {
		behaviour string
		code      Code
		phase     Phase
		text      string
	}{
		{"park-unasked", InternalError, PhaseHost, "park part event out of turn"},
		{"park-empty", InternalError, PhaseHost, "parked without a snapshot"},
		{"park-unrest", InternalError, PhaseHost, "park part event out of turn"},
		{"park-flood", InternalError, PhaseHost, "a snapshot of more than"},
		{"park-talk", InternalError, PhaseHost, "output event out of turn"},
		{"park-deaf", Timeout, PhaseLimit, "being parked"},
		{"park-dies", InternalError, PhaseHost, "exit code 7"},
		{"park-too-big", SnapshotLimitExceeded, PhaseLimit, "too big"},
		{"park-overflow", InternalError, PhaseHost, "parked without a snapshot"},
		{"idle-ahead", InternalError, PhaseHost, "idle after 1 tool results"},
		{"resume-talk", InternalError, PhaseHost, "output event out of turn"},
		{"resume-idle", InternalError, PhaseHost, "idle event out of turn"},
		{"resume-twice", InternalError, PhaseHost, "resumed out of turn"},
		{"resume-prepared", InternalError, PhaseHost, "prepared twice"},
		{"resume-fails", SnapshotRestoreFailed, PhaseHost, "it does not fit"},
		{"resume-dies", InternalError, PhaseHost, "exit code 7"},
		{"resume-deaf", Timeout, PhaseLimit, "timeoutMs"},
		{"resume-idles", InternalError, PhaseHost, "idle without anything having happened"},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			s := fake(t, c.behaviour)
			began := time.Now()
			l := short()
			res := s.Exec(context.Background(), Program{Code: "1", Limits: l})
			if strings.HasPrefix(c.behaviour, "resume") {
				if res.Status != Waiting {
					t.Fatalf("want a run that waits, got %s", res.JSON())
				}
				began = time.Now()
				id := res.RunID
				res = wait(s, id)
				if again := wait(s, id); again.Code != c.code || again.Error != res.Error {
					t.Errorf("asked again: %s", again.JSON())
				}
			}
			want(t, res, c.code, c.phase, c.text)
			if took := time.Since(began); took > l.Timeout+slack {
				t.Errorf("the answer took %v", took)
			}
			if kids := children(t); len(kids) > 0 {
				t.Errorf("processes are left: %v", kids)
			}
		})
	}
	// Not a failure: the guest's end was on its way.
	if res := fake(t, "park-done").Exec(context.Background(), Program{Code: "1"}); res.Status != Completed {
		t.Errorf("got %s", res.JSON())
	}
}

// SPEC 12.4, 14.2: whose run it is decides who may wait for it and who ends it.
// Validation 21: expired, aborted, foreign and unknown run ids fail
func TestScopes(t *testing.T) {
	owner := Scope{AgentID: "a", SessionID: "s", AgentRunID: "r", Sender: "someone"}
	s := fake(t, "park-for-ever")
	res := parked(t, s, Program{Scope: owner})
	for _, c := range []struct {
		name    string
		caller  Scope
		allowed bool
	}{
		{"nobody", Scope{}, false},
		{"another session", Scope{AgentID: "a", SessionID: "t", AgentRunID: "r"}, false},
		{"another agent", Scope{AgentID: "b", SessionID: "s", AgentRunID: "r"}, false},
		{"another agent run", Scope{AgentID: "a", SessionID: "s", AgentRunID: "q"}, false},
		{"a missing identity", Scope{AgentID: "a", SessionID: "s"}, false},
		{"the owner", owner, true},
		{"another sender, and a key that the owner had not", Scope{AgentID: "a", SessionID: "s", AgentRunID: "r", SessionKey: "k"}, true},
	} {
		got := s.Wait(context.Background(), WaitRequest{RunID: res.RunID, Scope: c.caller})
		if allowed := got.Status == Waiting; allowed != c.allowed {
			t.Errorf("%s: got %s", c.name, got.JSON())
		}
		unknown := s.Wait(context.Background(), WaitRequest{RunID: "proc_123", Scope: c.caller})
		if !c.allowed {
			if d := cmp.Diff(string(unknown.JSON()), string(got.JSON())); d != "" {
				t.Errorf("%s: foreign and unknown differ:\n%s", c.name, d)
			}
			if err := s.Abort(context.Background(), res.RunID, c.caller); !errors.Is(err, ErrNoRun) {
				t.Errorf("%s: Abort gave %v", c.name, err)
			}
		}
	}
	for _, c := range []struct {
		filter Scope
		n      int
	}{{Scope{}, 0}, {Scope{SessionID: "t"}, 0}, {Scope{SessionID: "s"}, 1}, {Scope{SessionID: "s"}, 0}} {
		if n, err := s.AbortScope(context.Background(), c.filter); n != c.n || err != nil {
			t.Errorf("AbortScope(%+v) gave %d, %v", c.filter, n, err)
		}
	}
	want(t, s.Wait(context.Background(), WaitRequest{RunID: res.RunID, Scope: owner}), Aborted, PhaseHost, "aborted")
}

// SPEC 13.5, 14.4: the bounds of what is parked, and who holds it.
// Validation 19: output and snapshot limits hold for completed and for parked runs
func TestBounds(t *testing.T) {
	s := fakeWith(t, "park-for-ever", Options{MaxParkedRuns: 3})
	var ids []string
	for range 3 {
		ids = append(ids, parked(t, s, Program{Scope: Scope{SessionID: "greedy"}}).RunID)
	}
	res := s.Exec(context.Background(), Program{Code: "1", Scope: Scope{SessionID: "greedy"}})
	want(t, res, SnapshotLimitExceeded, PhaseLimit, ids[0])
	if !strings.Contains(res.Error, "greedy") || !cmp.Equal(res.Telemetry.Limits, []string{"maxParkedRuns"}) {
		t.Errorf("got %s", res.JSON())
	}
	// A run that is parked keeps its place, openclaw P115314.
	if res := s.Wait(context.Background(), WaitRequest{RunID: ids[1], Scope: Scope{SessionID: "greedy"}}); res.Status != Waiting {
		t.Errorf("got %s", res.JSON())
	}
	if n, err := s.AbortScope(context.Background(), Scope{SessionID: "greedy"}); n != 3 || err != nil {
		t.Errorf("AbortScope gave %d, %v", n, err)
	}
	parked(t, s, Program{})
}

// SPEC 14.1, R07: a run expires by the clock; its slot and its bytes are free with it.
// Validation 21: expired, aborted, foreign and unknown run ids fail
func TestExpiry(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": filepath.Join(t.TempDir(), "state")} {
		t.Run(name, func(t *testing.T) {
			s := fakeIn(t, "park-call", dir)
			cat, _ := tools(t)
			h := newHeld(func(c *Call) { c.Park("") })
			l := limits.Default()
			l.SnapshotTTL = time.Second
			var cut sync.WaitGroup
			cut.Add(1)
			res := parked(t, s, Program{Catalog: cat, Limits: l, Executor: ExecutorFunc(func(ctx context.Context, c *Call) (json.RawMessage, error) {
				defer cut.Done()
				return h.Call(ctx, c)
			})})
			cut.Wait() // the nested call is cut off, without anybody having asked
			r := s.run(res.RunID)
			if r != nil {
				<-r.over
			}
			runs, err := s.Runs()
			if err != nil || len(runs) != 1 || runs[0].State != snapshot.Expired {
				t.Errorf("got %+v, %v", runs, err)
			}
			if dir != "" {
				if files, _ := filepath.Glob(filepath.Join(s.opts.StateDir, "images", "*")); len(files) > 0 {
					t.Errorf("files are left: %v", files)
				}
			}
			want(t, wait(s, res.RunID), SnapshotExpired, PhaseLimit, "expired")
		})
	}
}

// SPEC 12.4: while one wait goes on, another one is refused, and the first one is not
// disturbed. R16, R33: its text ends the loop.
func TestSecondWait(t *testing.T) {
	s := fake(t, "park-call")
	cat, _ := tools(t)
	h := newHeld(func(c *Call) { c.Park("") })
	res := parked(t, s, Program{Catalog: cat, Executor: h})
	<-h.arrived
	first := make(chan *Result)
	go func() { first <- wait(s, res.RunID) }()
	r := s.run(res.RunID)
	for !r.busy.Load() {
	}
	want(t, wait(s, res.RunID), InvalidInput, PhaseInput, "another wait")
	h.release <- json.RawMessage(`1`)
	if end := <-first; end.Status != Completed {
		t.Errorf("got %s", end.JSON())
	}
}

// A wait whose caller goes away ends, and the run does not; what was not taken is given to
// the next one (SPEC 9.3, 12.5).
func TestWaitIsGivenUp(t *testing.T) {
	s := fake(t, "park-call")
	cat, _ := tools(t)
	h := newHeld(func(c *Call) { c.Park("") })
	res := parked(t, s, Program{Catalog: cat, Executor: h})
	<-h.arrived
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan *Result)
	go func() { done <- s.Wait(ctx, WaitRequest{RunID: res.RunID}) }()
	r := s.run(res.RunID)
	for !r.busy.Load() {
	}
	cancel(errors.New("the client left"))
	want(t, <-done, Aborted, PhaseHost, "the client left")
	h.release <- json.RawMessage(`5`)
	for r.busy.Load() {
	}
	if end := wait(s, res.RunID); end.Status != Completed || string(end.Value) != "5" {
		t.Errorf("got %s", end.JSON())
	}
}

// An exec whose caller is gone must not leave a run that nobody knows (openclaw P109290).
func TestCancelledExecParksNothing(t *testing.T) {
	s := fake(t, "park-call")
	cat, _ := tools(t)
	ctx, cancel := context.WithCancel(context.Background())
	h := newHeld(func(c *Call) { c.Park(""); cancel() })
	res := s.Exec(ctx, Program{Code: "1", Catalog: cat, Executor: h})
	want(t, res, Aborted, PhaseHost, "")
	for len(s.all()) > 0 {
	}
	if runs, err := s.Runs(); err != nil || len(runs) > 0 && !runs[0].State.Terminal() {
		t.Errorf("got %+v, %v", runs, err)
	}
}

// SPEC 14.3, 14.5: what the durable store has is found by the supervisor that comes next,
// and nothing that was not to be read is in the files.
func TestDurable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := fakeIn(t, "park-call", dir)
	cat, _ := tools(t)
	h := newHeld(func(c *Call) { c.Hold("approval") })
	scope := Scope{AgentID: "a", SessionID: "s"}
	res := parked(t, first, Program{Catalog: cat, Executor: h, Scope: scope, ParentCallID: "exec-9"})
	<-h.arrived
	first.Close()

	second := fakeIn(t, "park-call", dir)
	if got, err := second.Inspect(res.RunID); err != nil || got.State != snapshot.Waiting || len(got.PendingToolCalls) != 1 || got.PendingToolCalls[0].Reason != "approval" {
		t.Errorf("got %+v, %v", got, err)
	}
	want(t, second.Wait(context.Background(), WaitRequest{RunID: res.RunID}), InvalidInput, PhaseInput, "no run")
	again := newHeld(func(c *Call) { c.Hold("approval") })
	again.release <- json.RawMessage(`"approved"`)
	end := second.Wait(context.Background(), WaitRequest{RunID: res.RunID, Scope: scope, Executor: again})
	if end.Status != Completed || string(end.Value) != `"approved"` || end.Telemetry.Counts.Exec != 1 || end.Telemetry.Counts.Wait != 1 {
		t.Errorf("got %s", end.JSON())
	}
	call := <-again.arrived
	if call.ParentCallID != "exec-9" || call.Scope != scope || call.ID != res.RunID+":1" || string(call.Input) != `{"v":1}` {
		t.Errorf("the call that was asked again: %+v", call)
	}
	second.Close()

	third := fakeIn(t, "park-call", dir)
	if got := third.Wait(context.Background(), WaitRequest{RunID: res.RunID, Scope: scope}); string(got.JSON()) != string(end.JSON()) {
		t.Errorf("given again: %s", got.JSON())
	}
}

// SPEC 14.5: what may have taken effect is not done again on its own.
func TestInterruptedCalls(t *testing.T) {
	for _, c := range []struct {
		name        string
		annotations catalog.Annotations
		hold        bool
		again       bool
	}{
		{"plain", catalog.Annotations{}, false, false},
		{"destructive", catalog.Annotations{Destructive: true}, false, false},
		{"read-only", catalog.Annotations{ReadOnly: true}, false, true},
		{"idempotent", catalog.Annotations{Idempotent: true}, false, true},
		{"waiting for approval", catalog.Annotations{}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			first := fakeIn(t, "park-call", dir)
			cat, _, err := catalog.Build([]catalog.Entry{{Name: "echo", Source: catalog.Client, Annotations: c.annotations}}, catalog.Options{})
			if err != nil {
				t.Fatal(err)
			}
			h := newHeld(func(call *Call) {
				if call.Park("long"); c.hold {
					call.Hold("approval")
				}
			})
			res := parked(t, first, Program{Catalog: cat, Executor: h})
			<-h.arrived
			first.Close()

			second := fakeIn(t, "park-call", dir)
			made := newHeld(nil)
			made.release <- json.RawMessage(`1`)
			end := second.Wait(context.Background(), WaitRequest{RunID: res.RunID, Executor: made})
			if again := len(made.arrived) == 1; again != c.again {
				t.Errorf("made again: %v", again)
			}
			state := Done
			if !c.again {
				state = CallFailed
			}
			// The fake takes a rejection for an empty value, which is no JSON.
			if c.again && end.Status != Completed || len(end.Telemetry.Calls) != 1 || end.Telemetry.Calls[0].State != state {
				t.Errorf("got %s", end.JSON())
			}
		})
	}
}

// SPEC 14.3: a snapshot of another engine, or with a flipped bit, never reaches a worker.
func TestDamagedSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := fakeIn(t, "park", dir)
	res := parked(t, s, Program{})
	files, _ := filepath.Glob(filepath.Join(dir, "images", "*.snap"))
	if len(files) != 1 {
		t.Fatalf("got files %v", files)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, wait(s, res.RunID), SnapshotRestoreFailed, PhaseHost, "damaged")
	want(t, wait(s, res.RunID), SnapshotRestoreFailed, PhaseHost, "damaged")
	if runs, err := s.Runs(); err != nil || len(runs) != 1 || runs[0].State != snapshot.Failed {
		t.Errorf("got %+v, %v", runs, err)
	}
}

// A store that fails costs the run that needed it, or only its wait.
func TestStoreFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := fakeIn(t, "park", dir)
	if err := os.RemoveAll(filepath.Join(dir, "images")); err != nil {
		t.Fatal(err)
	}
	res := s.Exec(context.Background(), Program{Code: "1"})
	want(t, res, InternalError, PhaseHost, "could not be parked")
	if len(res.Output) != 1 {
		t.Errorf("got %s", res.JSON())
	}
}

// SPEC 14.5: in a state directory, a call that must not be made twice begins only when a
// snapshot that knows of it is stored.
func TestCheckpoint(t *testing.T) {
	for _, c := range []struct {
		behaviour   string
		annotations catalog.Annotations
		created     int
		called      bool
	}{
		{"checkpoint", catalog.Annotations{}, 2, true},
		{"checkpoint-overflow", catalog.Annotations{}, 1, true},
		{"checkpoint-deaf", catalog.Annotations{}, 1, false},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			s := fakeIn(t, c.behaviour, dir)
			cat, _, err := catalog.Build([]catalog.Entry{{Name: "echo", Source: catalog.Client, Annotations: c.annotations}}, catalog.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var pending []PendingCall // as the store knew it when the call began
			called := false
			res := parked(t, s, Program{Catalog: cat, Limits: short(), Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
				called = true
				d, err := s.Inspect(call.RunID)
				if err != nil {
					return nil, err
				}
				pending = d.PendingToolCalls
				return call.Input, nil
			})})
			end := wait(s, res.RunID)
			if called != c.called || end.Telemetry.Snapshot.Created != c.created {
				t.Errorf("called %v: %s", called, end.JSON())
			}
			if !c.called {
				want(t, end, Timeout, PhaseLimit, "1 were not started")
				return
			}
			if end.Status != Completed || string(end.Value) != `{"v":1}` {
				t.Errorf("got %s", end.JSON())
			}
			if known := len(pending) == 1 && pending[0].State == InFlight; known != (c.created == 2) {
				t.Errorf("the store knew of %+v", pending)
			}
		})
	}
}

// SPEC 13.5: results that are kept count, too.
func TestKeptResultsAreBounded(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": filepath.Join(t.TempDir(), "state")} {
		t.Run(name, func(t *testing.T) {
			s := fakeWith(t, "park-call", Options{StateDir: dir, MaxParkedBytes: 1 << 20})
			cat, _ := tools(t)
			h := newHeld(func(c *Call) { c.Park("") })
			res := parked(t, s, Program{Catalog: cat, Executor: h})
			<-h.arrived
			h.release <- json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)
			end := wait(s, res.RunID)
			if len(end.Telemetry.Calls) != 1 || end.Telemetry.Calls[0].State != CallFailed || !cmp.Equal(end.Telemetry.Limits, []string{"maxParkedBytes"}) {
				t.Errorf("got %s", end.JSON())
			}
		})
	}
}

// An id is all that it takes to go on with a run that has no owner.
func TestHoldersKeepTheirIDs(t *testing.T) {
	s := fakeWith(t, "park-for-ever", Options{MaxParkedRuns: 1})
	id := parked(t, s, Program{}).RunID
	for _, c := range []struct {
		scope Scope
		shown bool
	}{{Scope{SessionID: "another"}, false}, {Scope{}, true}} {
		res := s.Exec(context.Background(), Program{Code: "1", Scope: c.scope})
		want(t, res, SnapshotLimitExceeded, PhaseLimit, "the oldest:")
		if strings.Contains(res.Error, id) != c.shown {
			t.Errorf("to %+v: %s", c.scope, res.Error)
		}
	}
}

// An executor that ends its goroutine is one that failed.
func TestExecutorExits(t *testing.T) {
	s := fake(t, "call")
	cat, _ := tools(t)
	res := s.Exec(context.Background(), Program{Code: "1", Catalog: cat, Limits: short(), Executor: ExecutorFunc(func(context.Context, *Call) (json.RawMessage, error) {
		runtime.Goexit()
		return nil, nil
	})})
	if len(res.Telemetry.Calls) != 1 || res.Telemetry.Calls[0].State != CallFailed {
		t.Errorf("got %s", res.JSON())
	}
}

// A wait that was over before it began touches nothing.
func TestWaitThatIsOver(t *testing.T) {
	s := fake(t, "park")
	res := parked(t, s, Program{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	want(t, s.Wait(ctx, WaitRequest{RunID: res.RunID}), Aborted, PhaseHost, "given up")
	if end := wait(s, res.RunID); end.Status != Completed || end.Telemetry.Counts.Wait != 1 {
		t.Errorf("got %s", end.JSON())
	}
}

// SPEC 14.1: what a process that is gone left behind expires by the clock of another one
// that shares the directory, and holds up nobody.
func TestOrphansExpire(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	other := fakeWith(t, "park-for-ever", Options{StateDir: dir, MaxParkedRuns: 1})
	first := fakeIn(t, "park-for-ever", dir)
	l := limits.Default()
	l.SnapshotTTL = time.Second
	id := parked(t, first, Program{Limits: l}).RunID
	first.Close()
	for {
		runs, err := other.Runs()
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) == 0 || runs[0].State == snapshot.Expired {
			break
		}
		if time.Since(runs[0].Expires) > 5*time.Second {
			t.Fatalf("it has not expired: %+v", runs)
		}
	}
	if res := other.Wait(context.Background(), WaitRequest{RunID: id}); res.Code != SnapshotExpired && res.Code != InvalidInput {
		t.Errorf("got %s", res.JSON())
	}
	parked(t, other, Program{})
	other.Close() // the checks at the end are made for each, one after the other
}
