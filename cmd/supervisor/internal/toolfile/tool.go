package toolfile

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog"
)

// Policy says whether a tool may be called.
type Policy string

// The policies of a tool; the zero value of a [Tool] from a file is Allow.
const (
	Allow   Policy = "allow"   // at once
	Deny    Policy = "deny"    // never: the tool is not even seen (SPEC 6.5)
	Approve Policy = "approve" // after a person said yes
)

// Tool is one tool of a file. Safe for concurrent use.
type Tool struct {
	// Entry is what the catalog shows, with the defaults of SPEC 20 filled in.
	Entry catalog.Entry

	// Policy is for the caller to apply; Run does not look at it.
	Policy Policy

	// steps are the behaviours, one a call; the last one repeats.
	steps []step
	calls atomic.Int64
}

// step is one behaviour.
type step struct {
	delay time.Duration
	park  bool
	run   func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)
}

// Codes of a [ToolError].
const (
	CodeError         = "tool_error"     // the file says error: "…"
	CodeStart         = "not_started"    // the program could not be started
	CodeFailed        = "command_failed" // the program ended with another status than 0, or by a signal
	CodeInvalidOutput = "invalid_output" // the program printed no JSON, or too much
)

// ToolError is a failure of the tool itself, as opposed to a call that was given
// up.
type ToolError struct {
	// Code is one of the constants.
	Code string
	// Message is meant for the model.
	Message string
}

// Error returns the message.
func (e *ToolError) Error() string { return e.Message }

// Run makes one call: it begins one and does it. See [Tool.Begin].
func (t *Tool) Run(ctx context.Context, input json.RawMessage, park func(reason string)) (json.RawMessage, error) {
	return t.Begin()(ctx, input, park)
}

// Call is one call that has begun. It takes the checked input and returns the JSON that the
// tool gave. park, if it is not nil, is called first where the file says park: true.
//
// The error is a *[ToolError], or ctx's cause, wrapped, if ctx ended first. A program
// that was running then is dead when it returns. A tool with source mcp answers in MCP's
// own result shape, failures of its own included (SPEC 7.3, 20).
type Call func(ctx context.Context, input json.RawMessage, park func(reason string)) (json.RawMessage, error)

// Begin takes the next behaviour of a sequence, so calls that begin in an order get them in
// that order, however long each takes.
func (t *Tool) Begin() Call {
	s := &t.steps[min(t.calls.Add(1), int64(len(t.steps)))-1]
	return func(ctx context.Context, input json.RawMessage, park func(reason string)) (json.RawMessage, error) {
		if s.park && park != nil {
			park("the tool file says park")
		}
		if err := wait(ctx, s.delay); err != nil {
			return nil, fmt.Errorf("tool %q was given up: %w", t.Entry.ID, err)
		}
		value, err := s.run(ctx, input)
		if t.Entry.Source == catalog.MCP {
			return mcpResult(value, err)
		}
		return value, err
	}
}

// wait returns nil after d, or ctx's cause if that ends first.
func wait(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}
