package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	r.ledger.init(p.Limits)
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

// settleAll notes the calls whose ends have been posted.
func (r *run) settleAll() {
	for len(r.ledger.results) > 0 {
		r.settle(<-r.ledger.results)
	}
}

// end is how a worker says its cell ended.
type end struct {
	fail  *failure
	value json.RawMessage
}

// handle takes one event. An error means that the worker lied.
func (r *run) handle(m workerproto.Message) (*end, error) {
	switch m := m.(type) {
	case *workerproto.Stage:
		if r.stage != "" {
			return nil, errors.New("a stage out of turn")
		}
		r.stage = m.Name
	case *workerproto.Prepared:
		if r.cell != nil {
			return nil, errors.New("prepared twice")
		}
		r.stage = "guest"
		r.cell = &CellInfo{m.Language, m.Form, m.Fenced}
		if !r.p.Limits.Languages.Has(m.Language) { // a fence chose it (SPEC 3.2); nothing was called yet
			return &end{fail: inputf(UnsupportedLanguage, "the fence says %s, and the config switches it off (tools.codeMode.languages)", m.Language)}, nil
		}
		r.timings.Transform = float64(m.TransformMicros) / 1000
	case *workerproto.Output:
		return nil, r.emit(m)
	case *workerproto.ToolCall:
		if r.cell == nil {
			return nil, errors.New("a tool call before the source was prepared")
		}
		if r.idle = false; len(r.ledger.burst) == 0 {
			r.credit++
		}
		return nil, r.ledger.announce(m)
	case *workerproto.Idle:
		return r.idled()
	case *workerproto.Done:
		return r.completed(m)
	case *workerproto.Failed:
		return r.failed(m)
	default:
		return nil, fmt.Errorf("a %s event out of turn", m.Type())
	}
	return nil, nil
}

// emit takes an output item. The worker stops a guest at the limit, so an item over it
// is a lie.
func (r *run) emit(m *workerproto.Output) error {
	if r.cell == nil {
		return errors.New("output before the source was prepared")
	}
	if !r.budget.Spend(workerproto.ItemCost(m.Kind, m.JSON)) {
		return fmt.Errorf("output over the limit of %d bytes", r.budget.Limit)
	}
	if !json.Valid(m.JSON) || m.Kind == "text" && m.JSON[0] != '"' {
		return errors.New("output that is not JSON of its kind")
	}
	item := Item{m.Kind, m.JSON}
	r.output = append(r.output, item)
	r.record(trajectory.Event{Kind: trajectory.Output, Status: m.Kind, Data: r.p.Trajectory.Describe(m.JSON)})
	if r.p.Output != nil {
		r.emitter.add(func() { r.p.Output(item) }, true)
	}
	return nil
}

// idled ends a burst: its calls are admitted together or not at all (SPEC 10.2).
func (r *run) idled() (*end, error) {
	if r.credit--; r.cell == nil || r.credit < 0 {
		return nil, errors.New("idle without anything having happened")
	}
	r.idle = true
	if tooMany := r.ledger.admit(); tooMany != "" {
		r.hit("maxToolCalls")
		return &end{fail: limitf(TooManyPendingToolCalls, "%s; none of the calls made in this burst was started", tooMany)}, nil
	}
	r.dispatch()
	return nil, nil
}

func (r *run) completed(m *workerproto.Done) (*end, error) {
	r.settleAll() // results are posted before the worker has them
	if r.cell == nil || !r.ledger.quiet() {
		return nil, errors.New("done while work is left")
	}
	if string(m.Value) != "null" && !r.budget.Spend(uint64(len(m.Value))) {
		return nil, fmt.Errorf("a value over the limit of %d bytes", r.budget.Limit)
	}
	if !json.Valid(m.Value) {
		return nil, errors.New("a value that is not JSON")
	}
	r.timings.Guest = float64(m.Stats.GuestMicros) / 1000
	if r.omitted = m.Omitted; r.omitted > 0 {
		r.hit("maxOutputBytes")
	}
	return &end{value: m.Value}, nil
}

// workerCodes are the codes that a worker may give, with the config field of a limit.
var workerCodes = map[Code]string{
	"": "", InvalidInput: "", ModuleAccessDenied: "", TypeScriptTransformFailed: "", NestedToolFailed: "", InternalError: "",
	UnsupportedLanguage: "", Timeout: "timeoutMs", MemoryLimitExceeded: "memoryLimitBytes", OutputLimitExceeded: "maxOutputBytes",
	TooManyPendingToolCalls: "maxQueuedToolCalls",
}

func (r *run) failed(m *workerproto.Failed) (*end, error) {
	code := Code(m.Code)
	field, ok := workerCodes[code]
	if !ok {
		return nil, fmt.Errorf("an unknown error code %.40q", m.Code)
	}
	r.timings.Guest = float64(m.Stats.GuestMicros) / 1000
	if r.omitted = m.Omitted; field != "" {
		r.hit(field)
	}
	text := m.Error
	if code == Timeout { // one text for it, whichever side's clock was first
		return &end{fail: r.cancelled(errDeadline, "")}, nil
	}
	// The worker cuts a guest's text at what is left of the output limit, 256 bytes at
	// least, and adds a note.
	if limit := int(max(r.budget.Left(), 256)) + 4096; len(text) > limit {
		return nil, fmt.Errorf("an error text of %d bytes", len(text))
	}
	if m.Shell {
		text += r.shellHint()
	}
	if Phase(m.Phase) == PhaseLimit {
		text += r.ledger.story()
	}
	return &end{fail: &failure{code, Phase(m.Phase), text}}, nil
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

// died explains a channel that ended before there was a result.
func (r *run) died(err error) *failure {
	var violation *workerproto.Violation
	if errors.As(err, &violation) {
		return r.violated(err)
	}
	// The channel closes a moment before the process is gone; killing it now would hide
	// what it died of. A worker that only closed its channel is killed all the same.
	r.child.AwaitExit(grace)
	return &failure{phase: phaseDeath}
}

// violated ends a worker that lied (SPEC 15.5).
func (r *run) violated(err error) *failure {
	r.child.Kill(process.KilledViolation)
	r.s.opts.Logger.Warn("a worker broke the protocol and was killed", "run", r.id, "worker_pid", r.child.Pid(), "error", err)
	return hostf(InternalError, "the worker broke the protocol and was killed: %v", err)
}

// phaseDeath marks a failure whose cause is known only when the worker was reaped.
const phaseDeath Phase = "death"

// explain gives a worker's death its cause (SPEC 11.2, 16.2).
func (r *run) explain(f *failure) *failure {
	if f.phase != phaseDeath {
		return f
	}
	exit := r.usage
	r.s.opts.Logger.Warn("a worker died", "run", r.id, "exit", exit.String())
	switch {
	case r.stage == "transform":
		return inputf(TypeScriptTransformFailed, "the TypeScript transformer did not survive this source (worker %s). "+
			"Sources that are nested very deeply do that; write a simpler program.", exit)
	case r.stopping:
		return r.cancelled(errDeadline, "")
	case exit.OutOfMemory:
		r.hit("memoryLimitBytes")
		return limitf(MemoryLimitExceeded, "the worker ran out of memory (%s): the cell needs more than memoryLimitBytes (%d) allows", exit, r.p.Limits.MemoryBytes)
	default:
		text := fmt.Sprintf("the worker died before it had a result (%s)", exit)
		if exit.Code == 0 && exit.Signal == 0 && exit.Killed == process.NotKilled {
			text = "the worker ended without a result (exit code 0)"
		}
		return hostf(InternalError, "%s", text)
	}
}

// cancelled explains an end of the context: our own deadline, the caller's context or
// the end of the supervisor.
func (r *run) cancelled(cause error, doing string) *failure {
	if doing != "" {
		doing = " while " + doing
	}
	if errors.Is(cause, errDeadline) {
		r.hit("timeoutMs")
		return limitf(Timeout, "the cell did not end within timeoutMs (%d)%s%s", r.p.Limits.Timeout.Milliseconds(), doing, r.ledger.story())
	}
	return hostf(Aborted, "the run was aborted%s: %v%s", doing, cause, r.ledger.story())
}

// hit notes that a limit was reached.
func (r *run) hit(field string) {
	for _, have := range r.limits {
		if have == field {
			return
		}
	}
	r.limits = append(r.limits, field)
}

// record may be called from the loop and from calls.
func (r *run) record(e trajectory.Event) {
	if r.p.Trajectory == nil {
		return
	}
	e.RunID, e.Parent, e.Time = r.id, r.p.ParentCallID, time.Now().UTC()
	if !r.emitter.add(func() { r.p.Trajectory.Record(e) }, e.Kind == trajectory.End) {
		r.p.Trajectory.Drop()
	}
}

func (r *run) describe(text string) *trajectory.Data {
	if r.p.Trajectory == nil {
		return nil
	}
	return r.p.Trajectory.Describe(quoteJSON(text))
}

// join ends ctx when the supervisor closes, too.
func (s *Supervisor) join(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}
