package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog"
)

// Executor runs nested calls. It is the gateway's: policy, approval, hooks and audit
// run in it, on every call, whichever way the guest named the tool (SPEC 10.1).
type Executor interface {
	// Call runs one call and returns its result as JSON; nil means null. It is called on
	// a goroutine of its own, up to maxPendingToolCalls at once for a run. ctx ends when
	// the run does, by result, limit, abort or Close, and not with an exec or a wait: the
	// call goes on while the run is parked. Call must return soon after ctx ended.
	//
	// An error rejects the call in the guest with its text. A [*ToolError] also carries
	// a code and whether the tool was started.
	Call(ctx context.Context, call *Call) (json.RawMessage, error)
}

// Starter is an [Executor] that is told of calls in the order in which the guest made
// them, before they run side by side.
type Starter interface {
	Executor
	// Start begins one call and returns at once; the function that it returns is called
	// instead of Call. The next call of the run is not begun before Start has returned.
	Start(call *Call) func(ctx context.Context) (json.RawMessage, error)
}

// ExecutorFunc makes a function an [Executor].
type ExecutorFunc func(ctx context.Context, call *Call) (json.RawMessage, error)

// Call calls f.
func (f ExecutorFunc) Call(ctx context.Context, call *Call) (json.RawMessage, error) {
	return f(ctx, call)
}

// Call is one nested call (SPEC 10.1).
type Call struct {
	ID           string          // unique: run id and number
	RunID        string          // the run that made it
	ParentCallID string          // the exec call of the model, also after a resume
	Scope        Scope           // who owns the run
	Tool         *catalog.Tool   // the catalog's entry; Tool.ID is the exact id
	Input        json.RawMessage // checked against the tool's parameters, defaults filled in

	run  *run
	call *call
}

// Park says that the call will take long: the run parks as soon as nothing else of it can
// go on, and the call goes on without it (SPEC 10.5). reason is shown in results. The
// call must end all the same, by returning from the executor.
func (c *Call) Park(reason string) { c.pause(reason, false) }

// Hold is Park for a call that waits for a person, or for anything else that must happen
// before the tool begins. Until [Call.Release] the tool counts as not started: if the
// supervisor ends meanwhile and has a durable store, the call is made again, and so the
// person is asked again (SPEC 14.5).
func (c *Call) Hold(reason string) { c.pause(reason, true) }

// Release ends a Hold: the tool begins now. After an error it must not: the run is over,
// or the store of parked runs could not write down that the tool was started, without
// which it might be started twice.
func (c *Call) Release() error {
	if c.run == nil {
		return nil
	}
	c.call.goOn()
	return c.run.beginCall(c.call)
}

// Update tells those who watch how far the call is: progress, partial output. value must be
// JSON of at most [MaxUpdateBytes]; anything else is dropped, and so is what comes after
// the call's end, or faster than it is taken. The cell never sees it (SPEC 10.6).
func (c *Call) Update(value json.RawMessage) {
	if c.run != nil && len(value) <= MaxUpdateBytes && json.Valid(value) && utf8.Valid(value) {
		c.run.update(c, value)
	}
}

// printable takes out what drives a terminal or forges a line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, clip(s, 1024))
}

func (c *Call) pause(reason string, hold bool) {
	if c.run == nil { // a test's
		return
	}
	c.call.mu.Lock()
	c.call.parked, c.call.held, c.call.reason = true, hold, clip(printable(reason), 256)
	c.call.mu.Unlock()
	if hold {
		c.call.started.Store(false)
	}
	select {
	case c.run.nudge <- struct{}{}:
	default: // it will look at all of them
	}
}

// ToolError is a nested call's failure as the guest sees it (SPEC 6.8).
type ToolError struct {
	// Message is the guest error's message.
	Message string
	// Code is for programs; empty becomes "tool_failed".
	Code string
	// Started says whether the tool began its work: "yes" (or empty), "no" or
	// "unknown". It decides whether a retry may repeat a side effect.
	Started string
}

func (e *ToolError) Error() string { return e.Message }

// The codes that the supervisor itself rejects calls with.
const (
	codeUnknownTool  = "unknown_tool"
	codeInvalidInput = "invalid_input"
	codeToolFailed   = "tool_failed"
	codeResultSize   = "result_too_large"
	codeInterrupted  = "interrupted"
	codeBlocked      = "blocked"
	codeNotApproved  = "not_approved"
)

// toolError gives err the form that crosses to the guest.
func toolError(err error) *ToolError {
	var te *ToolError
	if !errors.As(err, &te) {
		te = &ToolError{Message: err.Error()}
	}
	out := *te
	if out.Code == "" {
		out.Code = codeToolFailed
	}
	switch out.Started {
	case "no", "unknown":
	default:
		out.Started = "yes"
	}
	// What cannot cross must not cost the guest its answer.
	out.Message = clip(strings.ToValidUTF8(out.Message, "\ufffd"), 32<<10)
	out.Code = clip(strings.ToValidUTF8(out.Code, "\ufffd"), 64)
	return &out
}
