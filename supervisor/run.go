package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/telemetry"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/workerproto"
	"go.opentelemetry.io/otel/trace"
)

// burial is how long a run that did not complete waits for its worker to be gone: its exit may
// say why.
const burial = 300 * time.Millisecond

// run is one cell's life, over all of its legs. Its goroutine is the only one to change
// it, unless a field says otherwise.
type run struct {
	s     *Supervisor
	p     Program
	id    string
	began time.Time         // of the exec
	span  trace.SpanContext // of the exec: the parent of all nested calls

	ctx   context.Context // of the run and its nested calls: ends with it, not with an exec or a wait
	abort context.CancelCauseFunc

	asks  chan *ask     // waits; each is answered
	busy  atomic.Bool   // somebody has an ask going on; whoever sets it may send one
	over  chan struct{} // closed when the run has its last result
	nudge chan struct{} // an executor parked a call, or let it go on
	begin chan *beginning
	calm  chan chan<- struct{} // who wants to know when no call is under way

	source  string // until the first leg has it
	scopes  scopes
	ledger  ledger
	wrong   atomic.Int32 // lookups that found nothing
	denied  atomic.Int32 // attempts on denied tools
	written chan uint64  // ids of results that the worker has taken
	gate    gate         // to the leg's worker
	budget  workerproto.Budget
	output  []Item   // since the last result that was taken
	emitter *emitter // nil if nobody listens
	cell    *CellInfo
	limits  []string
	omitted uint64
	waits   int
	snap    SnapshotInfo
	hooked  bool        // it began with a before-tool hook, and makes no call without one
	parked  bool        // it has a snapshot in the store, and no worker
	fresh   bool        // nobody has used the snapshot in the store
	known   bool        // it was: somebody may know its id
	journal atomic.Bool // a durable store has its record: what cannot be repeated is written down before it is done

	kept      []callResult // settled while no worker was there, in order
	keptBytes int64
	yielded   bool
	note      string
	expires   time.Time // when it is dropped, if nobody waits for it
	timer     time.Time // when the next timer of the guest is due; zero: never

	// Of the exec or wait that goes on.
	ask     *ask
	leg     *leg
	timings Timings
	usage   process.Exit
	around  isolation.Report // the worker
	calming []chan<- struct{}
}

// ask is an exec or a wait: who wants an answer, and by when.
type ask struct {
	ctx    context.Context // the caller's
	exec   bool            // the exec that began the run; its end is the run's
	clock  clock
	reply  chan *Result // has room for the answer; nil if the wait was given up
	taken  atomic.Bool  // the answer was given, or who asked has gone
	callID string       // of a wait: the model's call
	op     *telemetry.Op
	span   trace.SpanContext // of op
}

// end is how a leg ended, or the run.
type end struct {
	fail   *failure
	value  json.RawMessage
	parked *workerproto.Parked // the run goes on
	still  bool                // it is parked as it was: what failed was not its own
}

func newRun(s *Supervisor, p Program, id string) *run {
	r := &run{
		s: s, p: p, id: id, began: time.Now(),
		asks: make(chan *ask), over: make(chan struct{}), nudge: make(chan struct{}, 1), begin: make(chan *beginning), calm: make(chan chan<- struct{}),
		hooked:  p.Hooks.BeforeTool != nil,
		budget:  workerproto.Budget{Limit: uint64(p.Limits.OutputBytes)},
		written: make(chan uint64, p.Limits.PendingToolCalls),
	}
	r.ctx, r.abort = context.WithCancelCause(s.ctx)
	r.ledger.init(r.id, p.Limits)
	if p.Output != nil || p.Update != nil || p.Trajectory != nil {
		r.emitter = newEmitter()
		s.wg.Go(r.emitter.run) // ends with the run, when its listeners have had all
	}
	return r
}

// live is the run: legs, and rests between them, until it is over.
func (r *run) live(first *ask) {
	var e *end
	if first != nil {
		e = r.work(first)
	}
	for e == nil {
		if e = r.rest(); e == nil {
			e = r.work(r.ask)
		}
	}
	r.finish(e)
}

// work serves an ask with a worker: a leg. It gives nil if the run is parked, again or
// still.
func (r *run) work(a *ask) *end {
	r.ask = a
	if r.parked && a.clock.left() < floor(a.clock.timeout()) {
		return r.unable(errDeadline, nil)
	}
	ctx, cancel := context.WithDeadlineCause(r.ctx, a.clock.deadline, errDeadline)
	defer cancel()
	if a.exec {
		var stop func()
		ctx, stop = join(ctx, a.ctx)
		defer stop()
	}
	began := time.Now()
	child, release, err := r.s.place(ctx)
	r.timings.Queue = millis(time.Since(began))
	if err != nil {
		fail := r.cancelled(err, "waiting for a free worker")
		a.op.Span(telemetry.Queue, began, string(fail.code), false)
		return r.unable(err, fail)
	}
	a.op.Span(telemetry.Queue, began, "", false)
	leave := release
	defer func() { leave() }()

	began = time.Now()
	spare := child != nil
	if !spare {
		child, _, err = r.s.start(ctx, process.Order{GuestBytes: r.p.Limits.MemoryBytes})
	}
	if err == nil {
		if err = child.Assign(r.p.Limits.MemoryBytes); err != nil {
			child.Kill(process.KilledStart)
			r.s.retire(child)
		}
	}
	r.timings.Start = millis(time.Since(began))
	if err != nil {
		fail := hostf(RuntimeUnavailable, "code mode cannot run: %v", err)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			fail = r.cancelled(err, "starting a worker")
		}
		a.op.Span(telemetry.Start, began, string(fail.code), spare)
		return r.unable(err, fail)
	}
	a.op.Span(telemetry.Start, began, "", spare)
	r.leg = newLeg(child, a)
	r.around = child.Report
	e := r.converse(ctx)
	behind := r.leg.counted // it is buried behind the answer
	if !behind {
		child.AwaitExit(burial)
		behind = child.Alive() // something holds it: the answer does not wait for that
	}
	if behind {
		// The worker has its SIGKILL: the answer need not wait for the kernel to take it apart.
		// The place does.
		leave = func() {
			r.s.wg.Go(func() {
				r.s.retire(child)
				release()
			})
		}
	} else {
		r.usage = r.s.retire(child)
	}
	if e.still {
		r.leg = nil
		return r.unable(nil, e.fail)
	}
	if e.fail != nil {
		e.fail = r.explain(e.fail)
	}
	if e.parked != nil {
		e = r.park(e.parked)
	}
	r.leg = nil
	return e
}

// unable ends a leg that did not begin. A run that is parked is none the worse: the wait
// has its answer, and the next one may have more luck.
func (r *run) unable(cause error, fail *failure) *end {
	if !r.parked {
		return &end{fail: fail}
	}
	if r.ctx.Err() != nil { // whatever failed, it failed for that
		return &end{fail: r.cancelled(context.Cause(r.ctx), "")}
	}
	r.expires = time.Now().Add(r.p.Limits.SnapshotTTL)
	if errors.Is(cause, errDeadline) {
		r.answer(r.waiting())
		return nil
	}
	fail.text += "; the run is still parked and can be waited for again"
	r.answer(r.result(fail))
	return nil
}

// leaves tells that what ended the run is the end of the supervisor, or [Supervisor.Detach],
// which its durable store outlives (SPEC 14.5).
func (r *run) leaves(fail *failure) bool {
	cause := context.Cause(r.ctx)
	return fail.code == Aborted && r.journal.Load() && (errors.Is(cause, errClosed) || errors.Is(cause, errDetached))
}

// finish ends the run for good.
func (r *run) finish(e *end) {
	r.settleAll() // what ended by itself; the rest is cut off now, and stays in flight in the ledger
	left := e.fail != nil && r.leaves(e.fail)
	if left {
		e.fail.text += "; it is kept, and a supervisor with the same state directory can wait for it"
	}
	if r.fresh && !left {
		r.snap.Discarded++
	}
	res := r.result(e.fail)
	if !left {
		r.measureEnd(res)
	}
	if e.fail == nil {
		res.Value = e.value
	}
	r.abort(errOver) // no effect on the cause, if there is one
	if !left {       // the next supervisor's trajectory goes on
		r.record(trajectory.Event{Kind: trajectory.End, Status: string(res.Status), Code: string(res.Code), Millis: &res.Telemetry.Timings.Total, Data: r.outcome(res)})
	}
	switch {
	case left:
		if errors.Is(context.Cause(r.ctx), errDetached) {
			r.s.storeFailed(r.id, r.s.store.Release(r.id))
		}
	case r.known:
		r.s.keepResult(r, res)
	case r.fresh: // nobody was told of it
		r.s.storeFailed(r.id, r.s.store.Delete(r.id))
	}
	r.s.forget(r)
	close(r.over)
	if r.ask != nil {
		r.answer(res)
	}
	if r.emitter != nil {
		r.emitter.close()
	}
}

// answer gives an ask its result. What the result had of the output is taken with it,
// unless nobody is there to take it (SPEC 9.3).
func (r *run) answer(res *Result) {
	a := r.ask
	r.ask = nil
	r.measure(res)
	if a.taken.CompareAndSwap(false, true) {
		r.output = nil
	}
	a.reply <- res
	r.timings, r.usage, r.around = Timings{}, process.Exit{}, nil
	r.ledger.tools = 0
	r.ledger.busy = time.Now()
}

// waiting makes the result of a run that is parked (SPEC 11.1, 12.1).
func (r *run) waiting() *Result {
	res := r.result(nil)
	res.Status, res.Reason = Waiting, r.reason()
	if r.yielded {
		res.Note = r.note
	}
	res.PendingToolCalls = r.ledger.pending()
	return res
}

// reason says why the run is parked (SPEC 12.1).
func (r *run) reason() string {
	if r.yielded {
		return ReasonYield
	}
	return ReasonPendingTools
}

// outcome is what the trajectory may have of the run's value or error.
func (r *run) outcome(res *Result) *trajectory.Data {
	if res.Status == Failed {
		return r.describe(trajectory.PartError, "", res.Error)
	}
	return r.p.Trajectory.Describe(trajectory.PartValue, "", res.Value)
}

// rest is the time between two legs: nested calls go on, their results are kept, and
// nothing else costs anything. It gives nil when r.ask is a wait that has a reason to go
// on, and otherwise how the run ended.
func (r *run) rest() *end {
	ttl := time.NewTimer(time.Until(r.expires))
	defer ttl.Stop()
	var late, due *time.Timer // of the wait
	defer func() { stopTimers(late, due) }()
	for {
		if r.ask != nil && r.ready() {
			return nil
		}
		var lateC, dueC, ttlC <-chan time.Time
		var gone <-chan struct{}
		if r.ask != nil {
			lateC, gone = late.C, r.ask.ctx.Done()
			if due != nil {
				dueC = due.C
			}
		} else {
			ttlC = ttl.C // an admitted wait cannot lose its run to the clock
		}
		stopWaiting := func() {
			stopTimers(late, due)
			late, due = nil, nil
			r.expires = time.Now().Add(r.p.Limits.SnapshotTTL)
			ttl.Reset(r.p.Limits.SnapshotTTL)
		}
		select {
		case res := <-r.ledger.results:
			r.settle(res)
			r.dispatch()
		case id := <-r.written: // by the leg that was
			r.ledger.free(id)
			r.dispatch()
		case b := <-r.begin:
			b.done <- r.noteBeginning(b.call)
		case <-r.nudge:
			r.noteHeld()
		case c := <-r.calm:
			r.calming = append(r.calming, c)
		case a := <-r.asks:
			r.ask = a
			r.waits++
			late = time.NewTimer(a.clock.left() - margin(a.clock.timeout(), 0))
			if !r.timer.IsZero() {
				due = time.NewTimer(time.Until(r.timer))
			}
		case <-dueC:
			due = nil // ready says so
		case <-lateC:
			r.answer(r.waiting())
			stopWaiting()
		case <-gone:
			r.ask.taken.Store(true)
			r.ask.reply <- nil // nothing was done for it
			r.ask = nil
			stopWaiting()
		case <-ttlC:
			r.hit("snapshotTtlSeconds")
			return &end{fail: limitf(SnapshotExpired, "%s%s", expired(r.p.Limits.SnapshotTTL), r.ledger.story())}
		case <-r.ctx.Done():
			return &end{fail: r.cancelled(context.Cause(r.ctx), "")}
		}
		r.tellCalm()
	}
}

func stopTimers(timers ...*time.Timer) {
	for _, t := range timers {
		if t != nil {
			t.Stop()
		}
	}
}

// ready tells that the guest has something to go on with.
func (r *run) ready() bool {
	return r.yielded || len(r.kept) > 0 || !r.timer.IsZero() && !time.Now().Before(r.timer) || r.ledger.quiet()
}

// tellCalm answers those who want to know that no call is under way.
func (r *run) tellCalm() {
	if len(r.calming) == 0 || r.ledger.moving() > 0 {
		return
	}
	for _, c := range r.calming {
		close(c)
	}
	r.calming = nil
}

// join ends ctx when other does, too.
func join(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() { stop(); cancel(nil) }
}
