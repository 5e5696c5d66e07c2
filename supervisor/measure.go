package supervisor

import (
	"errors"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/telemetry"
)

// What the supervisor tells its meters and tracers (SPEC 18.3, docs/telemetry.md). Only
// constants of ours, numbers, run ids and ids of tools in the catalog go there.

// look is what gauges show. The provider calls it.
func (s *Supervisor) look() telemetry.State {
	spares := int64(len(s.pool.ready))
	state := telemetry.State{Spares: spares, Workers: max(s.alive.Load(), spares)}
	kept, err := s.store.List()
	state.NoStore = err != nil
	for _, m := range kept {
		if !m.State.Terminal() {
			state.Parked++
			state.ParkedBytes += m.Bytes
		}
	}
	return state
}

// startFailed counts a worker that did not start.
func (s *Supervisor) startFailed(why string, err error) {
	if errors.Is(err, errClosed) {
		why = telemetry.StartGivenUp
	}
	s.tel.StartFailed(why)
}

// retire is reaped for a worker that [Supervisor.start] gave.
func (s *Supervisor) retire(child *process.Child) process.Exit {
	exit := s.reaped(child)
	s.alive.Add(-1)
	s.tel.WorkerEnded(endOf(exit))
	return exit
}

// ends names the reasons of our kills.
var ends = map[process.Reason]string{
	process.KilledDone: telemetry.EndDone, process.KilledParked: telemetry.EndDone,
	process.KilledTimeout: telemetry.EndTimeout, process.KilledAbort: telemetry.EndAbort,
	process.KilledViolation: telemetry.EndViolation, process.KilledStart: telemetry.EndStart,
	process.KilledUndead: telemetry.EndUndead,
}

// endOf says what ended a worker.
func endOf(exit process.Exit) string {
	switch {
	case exit.OutOfMemory:
		return telemetry.EndMemory
	case exit.Killed != process.NotKilled:
		return ends[exit.Killed]
	case exit.Signal != 0:
		return telemetry.EndSignal
	}
	return telemetry.EndExit
}

// trace says which exec or wait the ask is.
func (a *ask) trace(op *telemetry.Op) { a.op, a.span = op, op.Context() }

// endOp ends the span of an exec or a wait.
func endOp(op *telemetry.Op, res *Result) {
	op.End(outcome(res), res.Telemetry.Counts.Call, res.Telemetry.CallsOmitted)
}

func outcome(res *Result) telemetry.Outcome {
	o := telemetry.Outcome{Status: string(res.Status), Code: string(res.Code)}
	if res.Status == Failed && o.Code == "" {
		o.Code = telemetry.Guest
	}
	return o
}

// measure records what an exec or a wait that the run answers now has cost.
func (r *run) measure(res *Result) {
	seconds := func(millis float64) float64 { return millis / 1000 }
	t := res.Telemetry.Timings
	r.s.tel.Stages(
		telemetry.Stage{Name: telemetry.Queue, Seconds: seconds(t.Queue)},
		telemetry.Stage{Name: telemetry.Start, Seconds: seconds(t.Start)},
		telemetry.Stage{Name: telemetry.Transform, Seconds: seconds(t.Transform)},
		telemetry.Stage{Name: telemetry.GuestCode, Seconds: seconds(t.Guest)},
		telemetry.Stage{Name: telemetry.Tools, Seconds: seconds(t.Tools)},
		telemetry.Stage{Name: telemetry.Snapshot, Seconds: seconds(t.Snapshot)},
		telemetry.Stage{Name: telemetry.Restore, Seconds: seconds(t.Restore)},
	)
	if r.usage.PeakBytes > 0 || r.usage.CPU > 0 { // else there was no worker, or it is not known
		r.s.tel.Worker(r.usage.PeakBytes, r.usage.CPU)
	}
}

// measureEnd records the run's end, and the calls that it leaves behind.
func (r *run) measureEnd(res *Result) {
	r.s.tel.RunEnded(outcome(res), int64(r.budget.Limit-r.budget.Left()))
	for _, c := range r.ledger.open {
		state := NotStarted
		if c.started.Load() {
			state = InFlight
		}
		if c.nested() {
			r.measureCall(c, state)
		}
	}
}

// measureCall records what became of a nested call; "" is for the others.
func (r *run) measureCall(c *call, state CallState) {
	if state == "" {
		return
	}
	var took time.Duration
	if !c.at.IsZero() && (state == Done || state == CallFailed) {
		took = time.Since(c.at)
	}
	r.s.tel.CallEnded(string(state), c.source(), took)
}

// source is that of the call's tool, "" if that is not known.
func (c *call) source() string {
	if tool := c.target.Load(); tool != nil {
		return string(tool.Source)
	}
	return ""
}

// endSpan ends a call's span. What the guest called a tool that there is not, and codes of
// executors, are not for traces.
func (r *run) endSpan(res callResult) {
	c := res.call
	state, code, toolID := Done, "", ""
	if res.err != nil {
		state, code = NotStarted, telemetry.Other
		if c.started.Load() {
			state = CallFailed
		}
		switch res.err.Code {
		case codeUnknownTool, codeInvalidInput, codeToolFailed, codeResultSize, codeInterrupted:
			code = res.err.Code
		}
	}
	if tool := c.target.Load(); tool != nil {
		toolID = tool.ID
	}
	c.span.End(string(state), toolID, c.source(), code)
}
