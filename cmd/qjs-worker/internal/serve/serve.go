package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/cell"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// loop runs one cell.
type loop struct {
	*Engine
	conn    *workerproto.Conn
	program *cell.Program
	surface *guest.Surface // nil: none has come
	news    bool           // something happened that the supervisor has not had an Idle for
	taken   uint64         // tool results
	guestAt time.Duration  // time spent in guest code
}

// Serve waits for a cell or a parked run, runs it to its end or to its next parking, and gives
// the process's exit code.
func (e *Engine) Serve(conn *workerproto.Conn) int {
	l := &loop{Engine: e, conn: conn}
	var last workerproto.Message
	var err error
	for last == nil {
		command, err := conn.ReadCommand()
		if err != nil {
			return 0 // a spare that was not needed
		}
		switch m := command.(type) {
		case *workerproto.Start:
			last = l.run(m)
		case *workerproto.Resume:
			last = l.resume(m)
		default:
			if m, ok := command.(*workerproto.Interrupt); ok && l.surface != nil { // the time is up, and not all has arrived
				last = l.fail("timeout", "limit", "the cell did not arrive in time: "+m.Reason)
				break
			}
			if !l.see(command) {
				fmt.Fprintf(os.Stderr, "qjs-worker: a %s command before start or resume\n", command.Type())
				return 1
			}
		}
	}
	if err := conn.Write(last); err != nil {
		return 1
	}
	// The supervisor kills us when it has the result, or is gone itself. What it sent before it
	// had it means nothing any more.
	for err == nil {
		_, err = conn.ReadCommand()
	}
	return 0
}

// see takes what comes ahead of a cell. It tells whether that was in turn.
func (l *loop) see(command workerproto.Message) bool {
	switch m := command.(type) {
	case *workerproto.Surface:
		if l.surface != nil {
			return false
		}
		l.surface = &guest.Surface{Tools: guest.Packed{Data: m.Tools}, Functions: guest.Packed{Data: m.Functions}, MCP: guest.Packed{Data: m.MCP}, Down: guest.Packed{Data: m.Down}}
		return true
	case *workerproto.File:
		if l.surface == nil {
			return false
		}
		l.surface.Files = append(l.surface.Files, guest.File{Path: m.Path, Description: m.Description, Bytes: int(m.Bytes), Text: guest.Packed{Data: m.Text}})
		return true
	}
	return false
}

// seen gives what came ahead of the cell.
func (l *loop) seen() guest.Surface {
	if l.surface == nil {
		return guest.Surface{}
	}
	return *l.surface
}

// scopes waits for the namespaces that a start announced.
func (l *loop) scopes(announced bool) ([]byte, error) {
	if !announced {
		return nil, nil
	}
	command, err := l.conn.ReadCommand()
	if err != nil {
		l.exit(0) // nobody is left to work for
		return nil, err
	}
	switch m := command.(type) {
	case *workerproto.Namespaces:
		return m.Scopes, nil
	case *workerproto.Interrupt:
		l.stop.set(stopTimeout)
	}
	return nil, fmt.Errorf("a %s command where the namespaces should come", command.Type())
}

// run runs the cell and gives the last event.
func (l *loop) run(start *workerproto.Start) workerproto.Message {
	l.host.begin(l.conn, start.OutputBytes, start.TruncateOutput, start.MaxPending)
	l.begin(start.BudgetMillis)
	program, err := l.prepare(start)
	if err != nil {
		return l.refuse(err)
	}
	l.program = program
	if err := l.furnish(start); err != nil {
		return l.stopped(err)
	}
	if err := l.timed(func() error { return l.guest.Run(program.Code, cell.File) }); err != nil {
		return l.notRun(err)
	}
	l.news = true
	return l.drain()
}

// furnish gives the guest what it sees beside the language.
func (l *loop) furnish(start *workerproto.Start) error {
	scopes, err := l.scopes(start.Namespaces)
	if err != nil {
		return err
	}
	return l.timed(func() error {
		return l.guest.Begin(int64(start.MemoryBytes), guest.Options{Surface: l.seen(), Scopes: scopes})
	})
}

// begin starts the clock of the leg.
func (l *loop) begin(budgetMillis uint32) {
	l.stop.after(time.Duration(budgetMillis) * time.Millisecond)
}

// prepare turns the source into a program and says so.
func (l *loop) prepare(start *workerproto.Start) (*cell.Program, *cell.Error) {
	began := time.Now()
	defer l.parser.Close()
	ctx, cancel := context.WithDeadline(context.Background(), l.stop.end())
	defer cancel()
	program, err := l.parser.Prepare(ctx, cell.Input{
		Source:       string(start.Source),
		Language:     cell.Language(start.Language),
		Transforming: func() { l.host.write(&workerproto.Stage{Name: "transform"}) },
	})
	if err != nil {
		return nil, err
	}
	send := l.host.queue
	if program.Language == cell.TypeScript || start.Namespaces {
		send = l.host.write // a death from now on is not the transformer's; the supervisor makes the namespaces now
	}
	send(&workerproto.Prepared{
		Language: string(program.Language), Form: string(program.Form), Fenced: program.Fenced,
		TransformMicros: uint64(time.Since(began).Microseconds()),
	})
	return program, nil
}

// drain goes on until no work is left (SPEC 10.4): calls settle, timers fire.
func (l *loop) drain() workerproto.Message {
	for {
		if l.stop.why != running { // the engine has not asked since it was set
			return l.stopped(nil)
		}
		if l.host.lost != nil {
			return l.fail("internal_error", "host", fmt.Sprintf("writing to the supervisor: %v", l.host.lost))
		}
		if r := l.host.refuse(); r != nil {
			if err := l.settle(r); err != nil {
				return l.stopped(err)
			}
			continue
		}
		outcome, settled := l.guest.Outcome()
		pending := l.guest.Pending()
		at, hasTimer := l.guest.NextTimer()
		if pending == 0 && settled {
			return l.finish(outcome)
		}
		if pending == 0 && !hasTimer {
			if f := l.guest.Unhandled(); f != nil {
				return l.guestFailure(f) // the more useful story
			}
			return l.fail("", "guest", "the cell waits for a promise that nothing can settle: "+
				"no tool call and no timer is left. Await a call, a timer or a promise that you resolve yourself.")
		}
		if l.news || l.host.called || l.host.newYield {
			l.idle(at, hasTimer)
		}
		park, err := l.wait(at, hasTimer)
		if err != nil {
			return l.stopped(err)
		}
		if park == nil {
			continue
		}
		if last := l.park(park); !park.Stay || last.Type() != workerproto.TypeParked {
			return last
		} else {
			l.host.write(last)
		}
	}
}

// idle says that the guest rests, and what a supervisor needs to decide whether to park it.
func (l *loop) idle(at float64, hasTimer bool) {
	h := &l.host
	h.write(&workerproto.Idle{
		Pending: uint32(len(h.waiting)), Settled: l.taken, Yielded: h.yielded, Note: h.said,
		Timer: h.until(at, hasTimer), MemoryBytes: uint64(l.guest.VM().MemorySize()),
	})
	l.news, h.called, h.newYield = false, false, false
}

// wait blocks until a call settles or a timer is due, and lets the guest go on. It gives the
// command to park, if that came instead. When the time is up at rest, the supervisor says
// what is to be done; it may want the guest parked. The loop reads the channel itself:
// handing a result from one goroutine to another would cost as much as the rest of a call's
// way.
func (l *loop) wait(at float64, hasTimer bool) (*workerproto.Park, error) {
	if hasTimer {
		arrived, err := l.conn.Await(l.host.at(at))
		if err != nil {
			return nil, err
		}
		if !arrived {
			return nil, l.timed(l.guest.FireTimers)
		}
	}
	command, err := l.conn.ReadCommand()
	if err != nil {
		l.exit(0) // nobody is left to work for
		return nil, err
	}
	switch m := command.(type) {
	case *workerproto.ToolResult:
		l.news = true
		l.taken++
		id, ok := l.host.wire[m.ID]
		if !ok {
			return nil, fmt.Errorf("the supervisor settled call %d, which was not sent", m.ID)
		}
		delete(l.host.wire, m.ID)
		m.ID = id
		return nil, l.settle(m)
	case *workerproto.Park:
		return m, nil
	case *workerproto.Interrupt:
		l.stop.set(stopTimeout)
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected command %s", command.Type())
}

func (l *loop) settle(r *workerproto.ToolResult) error {
	if !l.host.settled(r.ID) {
		return fmt.Errorf("the supervisor settled call %d, which is not pending", r.ID)
	}
	var callErr *guest.CallError
	if r.Failed {
		callErr = &guest.CallError{Message: r.Error, ToolID: r.ToolID, Code: r.Code, Started: started(r.Started)}
	}
	return l.timed(func() error { return l.guest.Settle(r.ID, r.Value, callErr) })
}

// started gives the guest true or false where the answer is known (SPEC 6.8, 14.5).
func started(s string) any {
	if s == "yes" || s == "no" {
		return s == "yes"
	}
	return "unknown"
}

func (l *loop) timed(f func() error) error {
	began := time.Now()
	err := f()
	l.guestAt += time.Since(began)
	return err
}

// finish ends a cell that has nothing left to do.
func (l *loop) finish(outcome guest.Outcome) workerproto.Message {
	failure := outcome.Failure
	if failure == nil {
		failure = l.guest.Unhandled()
	}
	if err := l.guest.Stopped(); err != nil {
		return l.stopped(err)
	}
	if failure != nil {
		return l.guestFailure(failure)
	}
	if l.host.full && !l.host.truncate {
		return l.outputLimit()
	}
	value := outcome.Value
	if string(value) != "null" && !l.host.budget.Spend(uint64(len(value))) {
		if !l.host.truncate {
			l.host.omitted += uint64(len(value))
			return l.outputLimit()
		}
		value = l.truncatedValue(value)
	}
	return &workerproto.Done{Value: value, Omitted: l.host.omitted, Stats: l.stats()}
}

// truncatedValue stands for a value that does not fit: what was left out, and how the
// value's JSON begins.
func (l *loop) truncatedValue(value []byte) []byte {
	left := int(l.host.budget.Left())
	marker := func(prefix []byte) []byte {
		return fmt.Appendf(nil, `{"truncated":true,"omittedBytes":%d,"prefix":%s}`, len(value)-len(prefix)+2, prefix)
	}
	frame := len(marker(nil)) + 10 // room for the digits to change
	if left < frame+2 {
		l.host.omitted += uint64(len(value))
		return []byte("null")
	}
	prefix := cutString(quote(string(value[:min(len(value), left)])), left-frame)
	v := marker(prefix)
	l.host.omitted += uint64(max(0, len(value)-len(prefix)+2))
	l.host.budget.Spend(uint64(len(v)))
	return v
}

func (l *loop) guestFailure(f *guest.Failure) workerproto.Message {
	text := cell.FormatError(f.Name, f.Message, l.program.Frames(f.Stack))
	if len(f.Suggestions) > 0 {
		text += "\nhint: did you mean " + strings.Join(f.Suggestions, ", ") + "?"
	}
	if f.Hint != "" {
		text += "\nhint: " + f.Hint
	}
	if f.Tool {
		return l.fail("nested_tool_failed", "tool", text)
	}
	return l.fail("", "guest", text)
}

// notRun explains a program that the engine did not run to its first rest: a stop, or
// source that the parser accepted and the engine does not.
func (l *loop) notRun(err error) workerproto.Message {
	var exception *engine.Exception
	if errors.As(err, &exception) && exception.Unwrap() == nil {
		return l.refuse(l.program.EngineError(err))
	}
	return l.stopped(err)
}

// stopped turns an engine stop into the limit that caused it.
func (l *loop) stopped(err error) workerproto.Message {
	switch {
	case l.stop.why == stopOutput:
		return l.outputLimit()
	case l.stop.why == stopPending:
		return l.fail("too_many_pending_tool_calls", "limit", l.host.tooMany+
			"; none of the calls made in this burst was started. Make them in smaller batches and await each batch.")
	case l.stop.why == stopTimeout, errors.Is(err, engine.ErrInterrupted):
		return l.fail("timeout", "limit", "the cell ran out of time while guest code was running")
	case errors.Is(err, engine.ErrOutOfMemory):
		return l.fail("memory_limit_exceeded", "limit", "the guest's heap limit is used up")
	default:
		return l.fail("internal_error", "host", fmt.Sprintf("the engine failed: %v", err))
	}
}

func (l *loop) refuse(err *cell.Error) workerproto.Message {
	phase := "input"
	if err.Code == "timeout" || err.Code == "memory_limit_exceeded" {
		phase = "limit"
	}
	f := l.fail(err.Code, phase, err.Message)
	f.Shell = err.Shell
	return f
}

func (l *loop) outputLimit() workerproto.Message {
	return l.fail("output_limit_exceeded", "limit", fmt.Sprintf("output and value are larger than maxOutputBytes (%d): %d bytes were left out. "+
		"Return or print less, for example a summary or a slice.", l.host.budget.Limit, l.host.omitted))
}

// fail makes the last event of a cell that failed. A guest's own error text shares the
// output budget and ends where that does; our texts are short and do not count.
func (l *loop) fail(code, phase, text string) *workerproto.Failed {
	f := &workerproto.Failed{Code: code, Phase: phase, Error: text, Stats: l.stats()}
	if phase != "guest" && phase != "tool" && len(text) <= 4096 {
		f.Omitted = l.host.omitted
		return f
	}
	cut, omitted := cutText(text, int(max(l.host.budget.Left(), 256)))
	if omitted > 0 {
		f.Error = fmt.Sprintf("%s… (%d bytes of the error were left out)", cut, omitted)
		l.host.omitted += uint64(omitted)
		if !l.host.truncate {
			f.Code, f.Phase = "output_limit_exceeded", "limit"
		}
	}
	f.Omitted = l.host.omitted
	return f
}

func (l *loop) stats() workerproto.Stats {
	return workerproto.Stats{GuestMicros: uint64(l.guestAt.Microseconds()), HeapBytes: uint64(l.guest.VM().Allocated())}
}
