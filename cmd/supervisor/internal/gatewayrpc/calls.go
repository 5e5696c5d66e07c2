package gatewayrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/creachadair/jrpc2"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

type callParams struct {
	Handle       string           `json:"handle"`
	RunID        string           `json:"runId"`
	CallID       string           `json:"callId"`
	ParentCallID string           `json:"parentToolCallId"`
	ToolID       string           `json:"toolId"`
	ToolName     string           `json:"toolName"`
	Source       catalog.Source   `json:"source"`
	SourceName   string           `json:"sourceName"`
	Input        json.RawMessage  `json:"input"`
	Scope        supervisor.Scope `json:"scope"`
}

// Call has the client run a nested call: the handle is the executor of its runs.
func (h *handle) Call(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
	c := h.c
	c.mu.Lock()
	c.calls[call.ID] = call
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, call.ID)
		c.mu.Unlock()
	}()
	raw, err := h.ask(ctx, call.ID, toolCall, callParams{
		Handle: h.id, RunID: call.RunID, CallID: call.ID, ParentCallID: call.ParentCallID,
		ToolID: call.Tool.ID, ToolName: call.Tool.Name, Source: call.Tool.Source, SourceName: call.Tool.SourceName,
		Input: call.Input, Scope: h.scope,
	})
	if err != nil {
		return nil, &supervisor.ToolError{Message: messageOf(err), Started: "unknown"}
	}
	return readAnswer(raw)
}

// readAnswer reads the result of tool/call. What is none rejects the call: nobody knows what
// the tool did.
func readAnswer(raw json.RawMessage) (json.RawMessage, error) {
	p := readObject("result", raw)
	value, failed := p.raw("value"), p.object("error")
	has := p.members["error"] != nil
	te := &supervisor.ToolError{}
	if has {
		te.Message, te.Code, te.Started = failed.text("message"), failed.optionalText("code"), failed.oneOf("started", "yes", "no", "unknown")
		failed.unknown()
	}
	if has == (value != nil) {
		p.fail("result must have one of value and error")
	}
	if err := p.end(); err != nil {
		return nil, &supervisor.ToolError{Message: fmt.Sprintf("the gateway's client answered %s with what is no answer: %s", toolCall, messageOf(err)), Started: "unknown"}
	}
	if has {
		return nil, te
	}
	return value, nil
}

// messageOf is an error's text without what jrpc2 puts around it.
func messageOf(err error) string {
	var e *jrpc2.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

type cancelParams struct {
	Handle string `json:"handle"`
	CallID string `json:"callId"`
	Method string `json:"method"`
}

// ask asks the client about a call, and tells it when the answer is not wanted any more.
func (h *handle) ask(ctx context.Context, callID, method string, params any) (json.RawMessage, error) {
	raw, err := h.c.ask(ctx, method, params)
	switch {
	case err == nil:
		return raw, nil
	case ctx.Err() != nil:
		h.c.tellNow(toolCancel, cancelParams{h.id, callID, method})
	case h.c.ctx.Err() != nil:
		// The run is about to be ended, or left to the state directory, where this call
		// must not look as if it had failed.
		<-ctx.Done()
	default:
		return nil, err
	}
	return nil, context.Cause(ctx)
}

// hooks are what the client has to say about calls, if it said that it wants to.
func (h *handle) hooks() supervisor.Hooks {
	var hooks supervisor.Hooks
	if h.c.info().hooks {
		hooks.BeforeTool = h.beforeTool
	}
	if h.c.info().approvals {
		hooks.Approve = h.approve
	}
	return hooks
}

type hookParams struct {
	Handle string            `json:"handle"`
	Event  surface.HookEvent `json:"event"`
	Reason string            `json:"reason,omitempty"`
}

func (h *handle) beforeTool(ctx context.Context, e surface.HookEvent) (v surface.Verdict, err error) {
	e.Identity = surface.Identity(h.scope)
	raw, err := h.ask(ctx, e.ToolCallID, hookBefore, hookParams{Handle: h.id, Event: e})
	if err != nil {
		return v, errors.New(messageOf(err))
	}
	if v, err = readVerdict(readObject("result", raw)); err != nil {
		return surface.Verdict{}, fmt.Errorf("its answer is no verdict: %s", messageOf(err))
	}
	return v, nil
}

func readVerdict(p *object) (surface.Verdict, error) {
	v := surface.Verdict{Block: p.boolean("block"), Reason: p.optionalText("reason"), Params: p.raw("params"), Approve: p.boolean("approve")}
	return v, p.end()
}

// approvalReason is why a run waits while a person is asked.
const approvalReason = "approval"

func (h *handle) approve(ctx context.Context, a *supervisor.Approval) error {
	a.Hold(approvalReason)
	e := a.Event
	e.Identity = surface.Identity(h.scope)
	raw, err := h.ask(ctx, e.ToolCallID, toolApprove, hookParams{Handle: h.id, Event: e, Reason: a.Reason})
	if err != nil {
		return errors.New(messageOf(err))
	}
	approved, reason, err := readDecision(readObject("result", raw))
	switch {
	case err != nil:
		return fmt.Errorf("the answer is neither yes nor no: %s", messageOf(err))
	case approved:
		return nil
	case reason == "":
		return errors.New("it was refused")
	}
	return fmt.Errorf("it was refused: %s", reason)
}

func readDecision(p *object) (approved bool, reason string, err error) {
	p.value("approved")
	approved, reason = p.boolean("approved"), p.optionalText("reason")
	return approved, reason, p.end()
}
