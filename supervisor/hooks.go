package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// Hooks are what the gateway decides about a call before anything is started. They fail
// closed: an error, a panic or a missing function that is needed refuses the call, and the
// tool is not started.
type Hooks struct {
	// BeforeTool is the before-tool hook: it gets the model's exec (SPEC 2.7), before its time
	// begins, and each nested call whose input is valid (SPEC 10.1), whichever way the cell
	// named the tool. It is called on the caller's goroutine, or the nested call's, so side
	// by side for calls that run side by side. ctx ends with the caller's of an exec, with
	// the run of a nested call. Nil lets everything through, but not in a run that began with
	// a hook in another process ([WaitRequest.Hooks]).
	BeforeTool func(ctx context.Context, e surface.HookEvent) (surface.Verdict, error)

	// Approve asks somebody whether a call may be made: if its tool's [catalog.Entry.Approval]
	// says so, or the hook. Nil, the error, means yes; the text of an error tells the cell why
	// not. It may take its time: with [Approval.Hold] the run is parked meanwhile.
	// Nil, the function, means that nobody can be asked: such calls are refused.
	Approve func(ctx context.Context, a *Approval) error
}

// Approval is a call that waits for a person.
type Approval struct {
	// Event is the call, as a hook sees it, with the input that the tool would get.
	Event surface.HookEvent
	// Reason is the hook's, if it was the hook that wants an approval.
	Reason string

	call *Call // nil of an exec
	mu   sync.Mutex
	over bool // guarded by mu: it was answered
}

// Hold says that a person is asked, which takes longer than a cell has: the run parks as
// soon as nothing else of it can go on, and the call is not started (SPEC 10.5). If the
// supervisor ends meanwhile and has a durable store, the person is asked again
// (SPEC 14.5). reason is shown in results. After the answer it does nothing.
func (a *Approval) Hold(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.call != nil && !a.over {
		a.call.Hold(reason)
	}
}

// admit asks the gateway about a nested call: the hook, and a person if the hook or policy
// wants one. It gives the input that the tool is to have.
func (r *run) admit(ctx context.Context, c *call, tool *catalog.Tool, input json.RawMessage) (json.RawMessage, error) {
	c.begun() // the calls behind it need not wait for people
	e := surface.HookEvent{
		ToolName: tool.Name, ToolCallID: c.ref, Params: bytes.Clone(input), // the hook's own
		RunID: r.id, ParentCallID: r.p.ParentCallID, ToolID: tool.ID, Source: tool.Source, SourceName: tool.SourceName,
		Identity: surface.Identity(r.p.Scope),
	}
	approval := &Approval{call: r.callOf(c, tool, input)}
	switch {
	case r.p.Hooks.BeforeTool != nil:
		v, err := r.p.Hooks.BeforeTool(ctx, e)
		switch {
		case ctx.Err() != nil: // nobody has decided
			return nil, &ToolError{Message: fmt.Sprintf("%v; the tool was not started", context.Cause(ctx)), Code: codeBlocked, Started: "no"}
		case err != nil:
			r.noteHook(c, trajectory.HookBlocked, err.Error())
			return nil, &ToolError{Message: fmt.Sprintf("the before-tool hook failed for tool %q, so the tool was not started: %s", tool.ID, printable(err.Error())), Code: codeBlocked, Started: "no"}
		case v.Block:
			r.noteHook(c, trajectory.HookBlocked, v.Reason)
			return nil, &ToolError{Message: fmt.Sprintf("the before-tool hook refused tool %q%s; the tool was not started", tool.ID, because(v.Reason)), Code: codeBlocked, Started: "no"}
		case v.Params != nil:
			r.noteHook(c, trajectory.HookRewritten, v.Reason)
			if input, err = tool.CheckInput(v.Params); err != nil {
				return nil, &ToolError{Message: fmt.Sprintf("the before-tool hook gave tool %q an input that it does not take: %v", tool.ID, err), Code: codeInvalidInput, Started: "no"}
			}
			approval.call.Input = input
		}
		e.Params = bytes.Clone(input)
		if v.Approve {
			r.noteHook(c, trajectory.HookApproval, v.Reason)
			approval.Reason = v.Reason
		}
		if !v.Approve && !tool.Approval {
			return input, nil
		}
	case r.hooked:
		r.noteHook(c, trajectory.HookBlocked, "the run began with a hook, and goes on without one")
		return nil, &ToolError{Message: fmt.Sprintf("the run began with a before-tool hook, and who goes on with it has none to ask about tool %q; the tool was not started", tool.ID), Code: codeBlocked, Started: "no"}
	}
	approval.Event = e
	return input, r.approve(ctx, c, approval)
}

// approve asks whether a call may be made.
func (r *run) approve(ctx context.Context, c *call, a *Approval) error {
	refuse := func(text string) error {
		return &ToolError{Message: fmt.Sprintf("tool %q needs approval: %s; the tool was not started", toolIDOf(c), text), Code: codeNotApproved, Started: "no"}
	}
	if r.p.Hooks.Approve == nil {
		r.noteApproval(c, trajectory.ApprovalRefused, "nobody can be asked")
		return refuse("nobody can be asked")
	}
	r.noteApproval(c, trajectory.ApprovalAsked, a.Reason)
	err := r.p.Hooks.Approve(ctx, a)
	a.answered()
	if err != nil {
		if ctx.Err() == nil { // or nobody has decided
			r.noteApproval(c, trajectory.ApprovalRefused, err.Error())
		}
		return refuse(printable(err.Error()))
	}
	r.noteApproval(c, trajectory.ApprovalGranted, "")
	return nil
}

// answered ends the waiting for a person. A Hold that comes later must not make a tool that is
// at work look as if it had not been started.
func (a *Approval) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.call.call.goOn()
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + printable(reason)
}

func (r *run) noteHook(c *call, status, reason string) {
	r.record(trajectory.Event{Kind: trajectory.Hook, CallID: c.ref, ToolID: toolIDOf(c), Status: status, Data: r.reasonData(c, reason)})
}

func (r *run) noteApproval(c *call, status, reason string) {
	r.record(trajectory.Event{Kind: trajectory.Approval, CallID: c.ref, ToolID: toolIDOf(c), Status: status, Data: r.reasonData(c, reason)})
}

func (r *run) reasonData(c *call, reason string) *trajectory.Data {
	if reason == "" {
		return nil
	}
	return r.describe(trajectory.PartNote, toolIDOf(c), strings.ToValidUTF8(reason, "\ufffd"))
}

// admitExec asks the hook about the exec itself (SPEC 2.7), and gives the program that is to
// run. It costs none of the run's time: a person may be asked.
func (s *Supervisor) admitExec(ctx context.Context, p Program, id string) (_ Program, fail *failure) {
	if p.Hooks.BeforeTool == nil {
		return p, nil
	}
	in, err := surface.ExecInput{Code: p.Code, Command: p.Command, Language: p.Language}.Mirror()
	if err != nil {
		return p, inputf(InvalidInput, "%v", err)
	}
	defer func() {
		if caught := recover(); caught != nil {
			s.opts.Logger.Error("the before-tool hook panicked", "run", id, "panic", fmt.Sprint(caught), "stack", string(debug.Stack()))
			fail = hostf(RuntimeUnavailable, "the gateway's before-tool hook failed, so the cell was not run")
		}
	}()
	ctx, stop := join(ctx, s.ctx)
	defer stop()
	e := in.Event(p.ParentCallID, surface.Identity(p.Scope))
	e.RunID = id
	v, err := p.Hooks.BeforeTool(ctx, e)
	switch {
	case ctx.Err() != nil:
		return p, hostf(Aborted, "the run was aborted before its cell ran: %v", context.Cause(ctx))
	case err != nil:
		return p, hostf(RuntimeUnavailable, "the gateway's before-tool hook failed, so the cell was not run: %s", printable(err.Error()))
	case v.Block:
		return p, inputf(InvalidInput, "the gateway's before-tool hook refused this exec, so it was not run%s", because(v.Reason))
	}
	if v.Params != nil {
		w, err := surface.ParseRewrite(v.Params)
		if err == nil {
			in, err = in.Reconcile(w)
		}
		if err != nil {
			return p, inputf(InvalidInput, "%v", err)
		}
		e.Params = in.Event("", surface.Identity{}).Params
	}
	if v.Approve {
		err := errors.New("nobody can be asked")
		if p.Hooks.Approve != nil {
			err = p.Hooks.Approve(ctx, &Approval{Event: e, Reason: v.Reason})
		}
		switch {
		case ctx.Err() != nil:
			return p, hostf(Aborted, "the run was aborted before its cell ran: %v", context.Cause(ctx))
		case err != nil:
			return p, inputf(InvalidInput, "this exec needs approval, so it was not run: %s", printable(err.Error()))
		}
	}
	p.Code, p.Command, p.Language = in.Code, in.Command, in.Language
	return p, nil
}

// Update is what an executor told of a call while it was at work (SPEC 10.6).
type Update struct {
	RunID  string          `json:"runId"`
	CallID string          `json:"callId"`
	ToolID string          `json:"toolId"`
	Value  json.RawMessage `json:"value"`
}

// MaxUpdateBytes is how long an update may be.
const MaxUpdateBytes = 64 << 10

// update hands an update on.
func (r *run) update(c *Call, value json.RawMessage) {
	if r.ctx.Err() != nil || c.call.ended.Load() {
		return
	}
	value = bytes.Clone(value) // it is handed on later
	r.record(trajectory.Event{Kind: trajectory.Update, CallID: c.ID, ToolID: c.Tool.ID, Data: r.p.Trajectory.Describe(trajectory.PartUpdate, c.Tool.ID, value)})
	if r.p.Update != nil {
		u := Update{r.id, c.ID, c.Tool.ID, value}
		r.emitter.add(func() { r.p.Update(u) }, false)
	}
}
