package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog"
)

// Executor runs nested calls. It is the gateway's: policy, approval, hooks and audit
// run in it, on every call, whichever way the guest named the tool (SPEC 10.1).
type Executor interface {
	// Call runs one call and returns its result as JSON; nil means null. It is called on
	// a goroutine of its own, up to maxPendingToolCalls at once for a run. ctx ends when
	// the run does, by result, limit, abort or Close; Call must return soon after.
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
