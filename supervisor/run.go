package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// grace is how long a worker may take to report after its time is up, before it is
// killed: the soft stop keeps what the guest has said.
const grace = 150 * time.Millisecond

// run is one cell's life. Its loop is the only one to change it.
type run struct {
	s     *Supervisor
	p     Program
	id    string
	clock clock

	child    *process.Child
	events   chan event
	written  chan uint64 // ids of results that the worker has taken
	emitter  *emitter    // nil if nobody listens
	ledger   ledger
	budget   workerproto.Budget
	output   []Item
	cell     *CellInfo
	limits   []string
	omitted  uint64
	stage    string // what the worker said it does: "", "transform", "guest"
	idle     bool   // the guest has nothing to do until a call settles or a timer is due
	credit   int    // Idle events that the worker may still send: one for the start, each burst and each dispatched call
	timings  Timings
	usage    process.Exit
	stopping bool // the time is up, and the worker was told

	callCtx  context.Context // of nested calls
	endCalls context.CancelCauseFunc
}

// event is what the reader has from the worker: a message, or the end.
type event struct {
	ms  []workerproto.Message // in order; what had arrived together
	err error                 // after them
}

func newRun(s *Supervisor, p Program) *run {
	r := &run{
		s: s, p: p, id: newID(), clock: newClock(p.Limits.Timeout),
		events: make(chan event),
		budget: workerproto.Budget{Limit: uint64(p.Limits.OutputBytes)},
		credit: 1,
	}
	r.written = make(chan uint64, p.Limits.PendingToolCalls)
	r.ledger.init(r.id, p.Limits)
	if p.Output != nil || p.Trajectory != nil {
		r.emitter = newEmitter()
	}
	return r
}

// exec is the run, step by step.
func (r *run) exec(ctx context.Context) *Result {
	source, fail := r.p.source(r.p.Limits)
	if fail != nil {
		return r.result(fail)
	}
	tools, err := toolList(r.p.Catalog)
	if err != nil {
		return r.result(inputf(InvalidInput, "%v", err))
	}
	r.record(trajectory.Event{Kind: trajectory.Exec, Data: r.describe(source)})

	ctx, cancel := context.WithDeadlineCause(ctx, r.clock.deadline, errDeadline)
	defer cancel()
	ctx, endOfSupervisor := r.s.join(ctx)
	defer endOfSupervisor()

	release, err := r.s.place(ctx)
	r.timings.Queue = millis(time.Since(r.clock.start))
	if err != nil {
		return r.result(r.cancelled(err, "waiting for a free worker"))
	}
	defer release()

	began := time.Now()
	r.child, err = r.s.start(ctx)
	r.timings.Start = millis(time.Since(began))
	if err != nil {
		if ctx.Err() != nil {
			return r.result(r.cancelled(context.Cause(ctx), "starting a worker"))
		}
		r.s.opts.Logger.Error("no worker could be started", "run", r.id, "error", err)
		return r.result(hostf(RuntimeUnavailable, "code mode cannot run: %v", err))
	}
	fail, value := r.converse(ctx, source, tools)
	r.usage = r.child.Wait()
	if fail != nil {
		return r.result(r.explain(fail))
	}
	res := r.result(nil)
	res.Value = value
	return res
}

// converse talks to a ready worker until it has a result or is dead. Either way the
// worker has been killed, and its reader is gone, when it returns.
func (r *run) converse(ctx context.Context, source string, tools []byte) (*failure, json.RawMessage) {
	r.callCtx, r.endCalls = context.WithCancelCause(context.WithoutCancel(ctx))
	defer func() {
		r.settleAll() // what ended by itself; the rest is cut off now, and stays in flight in the ledger
		r.endCalls(errors.New("the run is over"))
	}()
	stop, reader := make(chan struct{}), make(chan struct{})
	go func() { defer close(reader); r.read(stop) }()
	defer func() {
		r.child.Kill(process.KilledDone) // a no-op if it was killed for a reason
		r.child.Conn.Close()
		close(stop)
		<-reader
	}()
	start := &workerproto.Start{
		Source: []byte(source), Language: r.p.Language, Tools: tools,
		BudgetMillis:   uint32(max(1, r.clock.left().Milliseconds())),
		MemoryBytes:    uint64(r.p.Limits.MemoryBytes),
		OutputBytes:    uint64(r.p.Limits.OutputBytes),
		TruncateOutput: r.p.Limits.TruncateOutput,
		MaxPending:     uint32(r.p.Limits.PendingToolCalls + r.p.Limits.QueuedToolCalls),
	}
	// Not on the loop: a worker that does not read must not stop the clock.
	r.s.wg.Go(func() { _ = r.child.Conn.Write(start) }) // the reader learns of a failure
	return r.loop(ctx)
}

// loop takes what happens, one thing at a time.
func (r *run) loop(ctx context.Context) (*failure, json.RawMessage) {
	var kill <-chan time.Time
	done := ctx.Done()
	for {
		select {
		case e := <-r.events:
			for _, m := range e.ms {
				last, err := r.handle(m)
				if err != nil {
					return r.violated(err), nil
				}
				if last != nil {
					return last.fail, last.value
				}
			}
			if e.err != nil {
				return r.died(e.err), nil
			}
		case res := <-r.ledger.results:
			r.settle(res)
		case id := <-r.written:
			r.ledger.free(id)
			r.dispatch()
		case <-done:
			done = nil
			why := context.Cause(ctx)
			if !errors.Is(why, errDeadline) {
				r.child.Kill(process.KilledAbort)
				return r.cancelled(why, ""), nil
			}
			if r.idle {
				r.child.Kill(process.KilledTimeout)
				return r.cancelled(why, ""), nil
			}
			// Stage one: the worker stops the guest and reports what it has said. It has the
			// same deadline for guest code, where it reads nothing; the command is for one
			// that comes to rest just now. Stage two is the kill.
			r.stopping = true
			r.s.wg.Go(func() { _ = r.child.Conn.Write(&workerproto.Interrupt{Reason: "timeout"}) })
			timer := time.NewTimer(grace)
			defer timer.Stop()
			kill = timer.C
		case <-kill:
			r.child.Kill(process.KilledTimeout)
			return r.cancelled(errDeadline, ""), nil
		}
	}
}

// maxBatch bounds the events that are handed over together.
const maxBatch = 64

// read hands the worker's events to the loop, in order, until it is dead or stop closes.
func (r *run) read(stop <-chan struct{}) {
	for {
		var e event
		for {
			m, err := r.child.Conn.ReadEvent()
			if err != nil {
				e.err = err
				break
			}
			if e.ms = append(e.ms, m); len(e.ms) == maxBatch || !r.child.Conn.Buffered() {
				break
			}
		}
		select {
		case r.events <- e:
		case <-stop:
			return
		}
		if e.err != nil {
			return
		}
	}
}

// join ends ctx when the supervisor closes, too.
func (s *Supervisor) join(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}
