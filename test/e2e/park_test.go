package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

// gen writes random programs: calls of the tool t, each with a number of its own, and
// everything that can be done with promises.
type gen struct {
	*rand.Rand
	calls int
}

func (g *gen) expr(depth int) string {
	if depth == 0 || g.IntN(4) == 0 {
		g.calls++
		if g.IntN(6) == 0 {
			return fmt.Sprintf("call(%d, true).catch(e => e.message)", g.calls)
		}
		return fmt.Sprintf("call(%d)", g.calls)
	}
	many := func() string {
		var list []string
		for range 2 + g.IntN(3) {
			list = append(list, g.expr(depth-1))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	switch g.IntN(7) {
	case 0:
		return "Promise.all(" + many() + ")"
	case 1:
		return "Promise.race(" + many() + ")"
	case 2:
		return "Promise.any(" + many() + ")"
	case 3:
		return "Promise.allSettled(" + many() + ")"
	case 4:
		return fmt.Sprintf("(async () => { const a = await %s; text(a); const b = await %s; return [a, b]; })()", g.expr(depth-1), g.expr(depth-1))
	case 5:
		return fmt.Sprintf("(async () => { const out = []; for (const i of [0, 1]) out.push(await %s, i); return out; })()", g.expr(depth-1))
	default:
		return fmt.Sprintf("%s.then(async v => { json({v}); await null; try { return await %s } finally { text('finally') } })", g.expr(depth-1), g.expr(depth-1))
	}
}

const parkPrelude = `
const seen = [];
const call = async (k, fails) => {
	seen.push(k);
	try { return await tools.t({k, n: seen.length, fails: !!fails}) } finally { text("took " + k + "/" + seen.length) }
};
`

// clerk is the tool t. A call ends when the test says so, with its number or an error.
type clerk struct {
	park  bool
	mu    sync.Mutex
	calls map[string]chan struct{} // by id
	input []string                 // in the order in which they were made
}

func (c *clerk) Start(call *supervisor.Call) func(context.Context) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input = append(c.input, string(call.Input))
	if c.park {
		call.Park("")
	}
	end := c.end(call.ID)
	return func(ctx context.Context) (json.RawMessage, error) {
		select {
		case <-end:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		var in struct {
			K     int
			Fails bool
		}
		if err := json.Unmarshal(call.Input, &in); err != nil {
			return nil, err
		}
		if in.Fails {
			return nil, fmt.Errorf("no %d", in.K)
		}
		return fmt.Appendf(nil, "%d", in.K), nil
	}
}

func (c *clerk) Call(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
	return c.Start(call)(ctx)
}

// end is the channel whose closing ends a call. The caller holds mu.
func (c *clerk) end(id string) chan struct{} {
	if c.calls[id] == nil {
		c.calls[id] = make(chan struct{})
	}
	return c.calls[id]
}

func (c *clerk) let(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.end(id))
}

// outcome is what two ways through a program must have in common.
type outcome struct {
	Status supervisor.Status
	Value  string
	Error  string
	Output []string
	Calls  []string
	States []supervisor.CallState
}

func outcomeOf(res *supervisor.Result, items []supervisor.Item, c *clerk) outcome {
	o := outcome{Status: res.Status, Value: string(res.Value), Error: res.Error, Calls: c.input}
	for _, i := range items {
		o.Output = append(o.Output, i.Text())
	}
	for _, call := range res.Telemetry.Calls {
		o.States = append(o.States, call.State)
	}
	return o
}

// Issue 3: for random programs with random tool delays, running straight through and
// being parked at every possible point give the same value, output and calls.
// Validation 20: wait resumes a snapshot and gives the final value
func TestParkedAnywhereIsTheSame(t *testing.T) {
	s := embed(t, supervisor.Options{})
	cat := tools(t, "t")
	lim := limitsWith(func(l *limits.Limits) { l.Timeout = 30 * time.Second; l.PendingToolCalls = 128 })
	parks := 0
	for seed := range uint64(25) {
		g := &gen{Rand: rand.New(rand.NewPCG(seed, 1))}
		code := parkPrelude + "return await " + g.expr(3)
		program := func(c *clerk) supervisor.Program {
			return supervisor.Program{Code: code, Catalog: cat, Executor: c, Limits: lim}
		}

		// Parked whenever it waits. The order in which its calls end is drawn here.
		c := &clerk{park: true, calls: map[string]chan struct{}{}}
		res := s.Exec(t.Context(), program(c))
		items := res.Output
		var order []string // numbers of the calls
		for res.Status == supervisor.Waiting {
			if len(res.PendingToolCalls) == 0 {
				t.Fatalf("seed %d: it waits for nothing: %s\n%s", seed, res.JSON(), code)
			}
			parks++
			next := res.PendingToolCalls[g.IntN(len(res.PendingToolCalls))]
			_, number, _ := strings.Cut(next.ID, ":")
			order = append(order, number)
			c.let(next.ID)
			res = s.Wait(t.Context(), supervisor.WaitRequest{RunID: res.RunID})
			items = append(items, res.Output...)
		}
		parked := outcomeOf(res, items, c)

		// Straight through: the next call ends when the guest has taken the one before.
		took := make(chan struct{}, 1000)
		d := &clerk{calls: map[string]chan struct{}{}}
		p := program(d)
		p.Output = func(i supervisor.Item) {
			if strings.HasPrefix(i.Text(), "took ") {
				took <- struct{}{}
			}
		}
		var id string
		named := make(chan struct{})
		var once sync.Once
		p.Executor = naming{d, func(call *supervisor.Call) { once.Do(func() { id = call.RunID; close(named) }) }}
		done := make(chan *supervisor.Result)
		go func() { done <- s.Exec(t.Context(), p) }()
		if len(order) > 0 {
			<-named
		}
		for i, number := range order {
			d.let(id + ":" + number)
			if i < len(order)-1 {
				<-took
			}
		}
		res = <-done
		if diff := cmp.Diff(outcomeOf(res, res.Output, d), parked); diff != "" {
			t.Errorf("seed %d (-straight through +parked):\n%s\n%s", seed, diff, code)
		}
	}
	if parks < 100 {
		t.Errorf("only %d suspensions: the programs are too simple", parks)
	}
}

// naming tells of each call that begins.
type naming struct {
	*clerk
	tell func(*supervisor.Call)
}

func (n naming) Start(call *supervisor.Call) func(context.Context) (json.RawMessage, error) {
	n.tell(call)
	return n.clerk.Start(call)
}

// Issue 3, R08: 64 parked runs cost under 10 MB together; when their owners end, the 65th
// parks fine.
func TestManyParkedRuns(t *testing.T) {
	s := embed(t, supervisor.Options{MaxWorkers: 4})
	cat := tools(t, "ask")
	hold := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
		call.Hold("a person")
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	park := func(session string) *supervisor.Result {
		return s.Exec(t.Context(), supervisor.Program{
			Code: `const answer = await tools.ask({question: "May I?"}); return answer`, Catalog: cat, Executor: hold,
			Scope: supervisor.Scope{AgentID: "a", SessionID: session},
		})
	}
	if res := park("first"); res.Status != supervisor.Waiting { // what is made once is not theirs
		t.Fatalf("got %s", res.JSON())
	}
	before := heap()
	for i := range 63 {
		if res := park(fmt.Sprint("session-", i%2)); res.Status != supervisor.Waiting {
			t.Fatalf("run %d: %s", i, res.JSON())
		}
	}
	grown := heap() - before
	t.Logf("63 parked runs: %d bytes", grown)
	if grown > 10<<20 {
		t.Errorf("63 parked runs take %d bytes", grown)
	}
	res := park("one-too-many")
	if res.Code != supervisor.SnapshotLimitExceeded || !strings.Contains(res.Error, "first") {
		t.Errorf("the 65th: %s", res.JSON())
	}
	for i, want := range []int{32, 31} {
		n, err := s.AbortScope(t.Context(), supervisor.Scope{SessionID: fmt.Sprint("session-", i)})
		if n != want || err != nil {
			t.Errorf("AbortScope: %d, %v", n, err)
		}
	}
	if res := park("welcome"); res.Status != supervisor.Waiting {
		t.Errorf("after the abort: %s", res.JSON())
	}
}

// heap is what the process has in use of its heap and stacks.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// SPEC 10.5, R61: the time that a person takes is nobody's timeout. R62: any number of
// approvals in one run.
// Validation 12: nested calls keep approvals and hooks
func TestApprovals(t *testing.T) {
	s := embed(t, supervisor.Options{})
	asked, answers := make(chan *supervisor.Call, 8), make(chan string, 8)
	executor := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
		call.Hold("approval")
		asked <- call
		select {
		case a := <-answers:
			if err := call.Release(); err != nil {
				return nil, err
			}
			if a == "no" {
				return nil, &supervisor.ToolError{Message: "refused", Started: "no"}
			}
			return fmt.Appendf(nil, "%q", a), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	res := s.Exec(t.Context(), supervisor.Program{
		Code:    `const got = []; for (let i = 0; i < 4; i++) { try { got.push(await tools.ask({i})) } catch (e) { got.push(e.message + " " + e.started) } } return got`,
		Catalog: tools(t, "ask"), Executor: executor,
	})
	for i := range 4 {
		call := <-asked
		if res.Status != supervisor.Waiting || len(res.PendingToolCalls) != 1 || res.PendingToolCalls[0].ID != call.ID || res.PendingToolCalls[0].Reason != "approval" {
			t.Fatalf("question %d: %s", i, res.JSON())
		}
		noWorkers(t, 0)
		answers <- []string{"yes", "no", "maybe", "yes"}[i]
		res = s.Wait(t.Context(), supervisor.WaitRequest{RunID: res.RunID})
	}
	completed(t, res, `["yes","refused false","maybe","yes"]`)
}

// SPEC 14.2: an abort in each phase of a run's life ends it, its worker and its calls.
func TestAbortAnywhere(t *testing.T) {
	for _, phase := range []string{"in the guest", "in a call", "parked", "in a wait", "resumed"} {
		t.Run(phase, func(t *testing.T) {
			s := embed(t, supervisor.Options{})
			cut := make(chan error, 1)
			at, looping := make(chan *supervisor.Call, 1), make(chan struct{}, 1)
			park := phase != "in a call" && phase != "in the guest"
			executor := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
				if park {
					call.Park("")
				}
				at <- call
				if phase == "resumed" {
					return json.RawMessage("1"), nil
				}
				<-ctx.Done()
				cut <- context.Cause(ctx)
				return nil, context.Cause(ctx)
			})
			code := `await tools.slow({}); text("looping"); for(;;);`
			if phase == "in the guest" {
				code = `text("looping"); for(;;);`
			}
			scope := supervisor.Scope{SessionID: "s"}
			done := make(chan *supervisor.Result, 2)
			go func() {
				res := s.Exec(t.Context(), supervisor.Program{
					Code: code, Catalog: tools(t, "slow"), Executor: executor, Scope: scope,
					Output: func(supervisor.Item) { looping <- struct{}{} },
				})
				for res.Status == supervisor.Waiting && phase != "parked" {
					res = s.Wait(t.Context(), supervisor.WaitRequest{RunID: res.RunID, Scope: scope})
				}
				done <- res
			}()
			switch phase {
			case "in the guest":
				<-looping
			case "resumed":
				<-at
				<-looping
			case "parked":
				<-at
				done <- <-done
			default:
				<-at
			}
			n, err := s.AbortScope(t.Context(), scope)
			if n != 1 || err != nil {
				t.Errorf("AbortScope: %d, %v", n, err)
			}
			noWorkers(t, 0)
			res := <-done
			if phase == "parked" {
				res = s.Wait(t.Context(), supervisor.WaitRequest{RunID: res.RunID, Scope: scope})
			}
			if res.Code != supervisor.Aborted || res.Phase != supervisor.PhaseHost {
				t.Errorf("got %s", res.JSON())
			}
			if phase != "in the guest" && phase != "resumed" {
				if err := <-cut; err == nil {
					t.Error("the nested call's context has no cause")
				}
			}
			if runs, err := s.Runs(); err != nil || slices.ContainsFunc(runs, func(r supervisor.RunInfo) bool { return !r.State.Terminal() }) {
				t.Errorf("left: %+v, %v", runs, err)
			}
		})
	}
}

// SPEC 12.6, R30: calls go on while nobody waits, one after the other if they have to.
func TestCallsGoOnWhileParked(t *testing.T) {
	s := embed(t, supervisor.Options{})
	release, ended := make(chan struct{}), make(chan string, 8)
	executor := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
		call.Park("")
		select {
		case <-release:
			ended <- string(call.Input)
			return call.Input, nil
		case <-ctx.Done():
			return nil, errors.New("cut off")
		}
	})
	// One at a time: the others are queued when it parks, and begin while it is parked.
	res := s.Exec(t.Context(), supervisor.Program{
		Code: `(await Promise.all([1, 2, 3, 4].map(k => tools.t({k})))).map(r => r.k)`, Catalog: tools(t, "t"), Executor: executor,
		Limits: limitsWith(func(l *limits.Limits) { l.PendingToolCalls = 1 }),
	})
	if res.Status != supervisor.Waiting || len(res.PendingToolCalls) != 4 || res.PendingToolCalls[3].State != supervisor.NotStarted {
		t.Fatalf("got %s", res.JSON())
	}
	close(release)
	for k := 1; k <= 4; k++ {
		if got := <-ended; got != fmt.Sprintf(`{"k":%d}`, k) {
			t.Errorf("call %d: %s", k, got)
		}
	}
	completed(t, s.Wait(t.Context(), supervisor.WaitRequest{RunID: res.RunID}), "[1,2,3,4]")
}
