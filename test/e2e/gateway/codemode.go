package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// agentRun is one turn's tools: what the model is shown, and what its calls reach.
type agentRun struct {
	s        *Session
	decision *surface.Decision
	byID     map[string]Tool // who runs a tool
	// Only with code mode off: the tools by the names that the model calls them by, in the
	// order in which it is shown them.
	direct []directTool
}

type directTool struct {
	name  string
	tool  *catalog.Tool
	check func(json.RawMessage) (json.RawMessage, error) // of its input
}

// decide builds the effective tools and decides about code mode. After an error nothing may be
// sent: a run whose code mode cannot work does not get the tools instead (SPEC 1.3).
func (s *Session) decide() (*agentRun, error) {
	r := &agentRun{s: s, byID: map[string]Tool{}}
	var entries []catalog.Entry
	for _, t := range s.tools {
		if t.ID == "" {
			t.ID = catalog.ID(t.Source, t.SourceName, t.Name)
		}
		r.byID[t.ID] = t
		entries = append(entries, t.Entry)
	}
	entries = s.agent.Policy.Apply(entries)
	options := catalog.Options{Unavailable: s.g.unavailable}
	var err error
	r.decision, err = surface.Decide(surface.Run{
		Global: s.g.cfg.CodeMode, Agent: s.agent.CodeMode, AgentID: s.scope.AgentID, ToolsDisabled: s.agent.NoTools,
		Entries: entries, Catalog: options, Namespaces: s.g.cfg.Namespaces,
	})
	if err != nil {
		return nil, err
	}
	if s.g.debug.codeMode {
		s.g.log.Info("code mode surface", "decision", r.decision)
	}
	if r.decision.State == surface.Off {
		return r, r.expose(entries, options)
	}
	return r, nil
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// expose shows the model the tools themselves, each by its name.
func (r *agentRun) expose(entries []catalog.Entry, options catalog.Options) error {
	own := func(e catalog.Entry) bool { // code mode's own are not there without code mode
		return e.Control && (e.Name == surface.ExecName || e.Name == surface.WaitName)
	}
	entries = slices.DeleteFunc(slices.Clone(entries), own)
	checked := slices.Clone(entries)
	for i := range checked {
		if checked[i].ID == "" {
			checked[i].ID = catalog.ID(checked[i].Source, checked[i].SourceName, checked[i].Name)
		}
		entries[i].ID = checked[i].ID
		if checked[i].Control { // tool_search and the like, which no catalog takes by their names
			checked[i].Control, checked[i].Name = false, "direct "+checked[i].Name
		}
	}
	c, _, err := catalog.Build(checked, options)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, e := range entries {
		name := e.Name
		if e.Source == catalog.MCP {
			name = "mcp__" + e.SourceName + "__" + e.Name
		}
		// What is denied is not in the catalog.
		if name = notInName.ReplaceAllString(name, "_"); c.Get(e.ID) != nil && !taken[name] {
			taken[name] = true
			r.direct = append(r.direct, directTool{name, &catalog.Tool{Entry: e}, c.Get(e.ID).CheckInput})
		}
	}
	return nil
}

// call makes a call of the model's and gives the text of its result.
func (r *agentRun) call(ctx context.Context, c toolCall) (text string, failed bool) {
	if r.decision.State == surface.Engaged {
		var res *supervisor.Result
		switch c.Name {
		case surface.ExecName:
			res = r.exec(ctx, c)
		case surface.WaitName:
			res = r.wait(ctx, c)
		default:
			res = supervisor.Refuse(supervisor.InvalidInput, fmt.Sprintf("there is no tool %.64q: call exec, and in its code the tools", c.Name))
		}
		return string(res.JSON()), res.Status == supervisor.Failed
	}
	i := slices.IndexFunc(r.direct, func(d directTool) bool { return d.name == c.Name })
	if i < 0 {
		return fmt.Sprintf("there is no tool %.64q", c.Name), true
	}
	value, err := r.callDirect(ctx, c, r.direct[i])
	if err != nil {
		return err.Error(), true
	}
	return string(value), false
}

// callDirect makes a call without code mode, past the same hook and the same people.
func (r *agentRun) callDirect(ctx context.Context, c toolCall, d directTool) (json.RawMessage, error) {
	tool := d.tool
	input, err := d.check(c.Arguments)
	if err != nil {
		return nil, err
	}
	e := surface.HookEvent{
		ToolName: tool.Name, ToolCallID: c.ID, Params: input, ToolID: tool.ID, Source: tool.Source, SourceName: tool.SourceName,
		Identity: surface.Identity(r.s.scope),
	}
	v, err := r.s.beforeTool(ctx, e)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the before-tool hook failed, so the tool was not started: %w", err)
	case v.Block:
		return nil, fmt.Errorf("the before-tool hook refused the call: %s", v.Reason)
	case v.Params != nil:
		if input, err = d.check(v.Params); err != nil {
			return nil, err
		}
		e.Params = input
	}
	if v.Approve || tool.Approval {
		if err := r.s.g.approvals.ask(ctx, e, v.Reason); err != nil {
			return nil, err
		}
	}
	return r.Call(ctx, &supervisor.Call{ID: c.ID, Scope: r.s.scope, Tool: tool, Input: input})
}

// Call runs a tool: the executor of cells, and the end of direct calls.
func (r *agentRun) Call(ctx context.Context, c *supervisor.Call) (json.RawMessage, error) {
	t, ok := r.byID[c.Tool.ID]
	if !ok || t.Call == nil {
		return nil, &supervisor.ToolError{Message: fmt.Sprintf("nobody runs tool %q", c.Tool.ID), Started: "no"}
	}
	return t.Call(ctx, c)
}

func (s *Session) beforeTool(ctx context.Context, e surface.HookEvent) (surface.Verdict, error) {
	if s.g.cfg.BeforeTool == nil {
		return surface.Verdict{}, nil
	}
	return s.g.cfg.BeforeTool(ctx, e)
}

// hooks are the gateway's decisions about the calls of cells.
func (r *agentRun) hooks() supervisor.Hooks {
	return supervisor.Hooks{
		BeforeTool: r.s.beforeTool,
		Approve: func(ctx context.Context, a *supervisor.Approval) error {
			a.Hold("it waits for a person's approval")
			return r.s.g.approvals.ask(ctx, a.Event, a.Reason)
		},
	}
}

func (r *agentRun) update(u supervisor.Update) {
	if r.s.g.cfg.Updates != nil {
		r.s.g.cfg.Updates(r.s.scope.SessionID, u)
	}
}

func (r *agentRun) exec(ctx context.Context, c toolCall) *supervisor.Result {
	in, err := surface.ParseExec(c.Arguments, r.decision.Limits.Languages)
	if err != nil {
		return refuse(err)
	}
	return r.s.g.supervisor.Exec(ctx, supervisor.Program{
		Code: in.Code, Command: in.Command, Language: in.Language,
		Catalog: r.decision.Catalog, Executor: r, Hooks: r.hooks(), Namespaces: r.s.g.cfg.Namespaces, Limits: r.decision.Limits,
		Scope: r.s.scope, ParentCallID: c.ID, Update: r.update, Trajectory: r.s.recorder,
	})
}

func (r *agentRun) wait(ctx context.Context, c toolCall) *supervisor.Result {
	id, err := surface.ParseWait(c.Arguments)
	if err != nil {
		return refuse(err)
	}
	// The supervisor knows no hook for wait, which starts nothing. Ours sees all that the model calls.
	v, err := r.s.beforeTool(ctx, surface.HookEvent{ToolName: surface.WaitName, ToolCallID: c.ID, Params: c.Arguments, RunID: id, Identity: surface.Identity(r.s.scope)})
	if err != nil || v.Block {
		return supervisor.Refuse(supervisor.InvalidInput, "the before-tool hook refused this wait; the run goes on")
	}
	return r.s.g.supervisor.Wait(ctx, supervisor.WaitRequest{
		RunID: id, Scope: r.s.scope, CallID: c.ID,
		Executor: r, Hooks: r.hooks(), Namespaces: r.s.g.cfg.Namespaces, Update: r.update, Trajectory: r.s.recorder,
	})
}

// refuse is the result of arguments that are none.
func refuse(err error) *supervisor.Result {
	code := supervisor.InvalidInput
	if e := (*surface.Error)(nil); errors.As(err, &e) {
		code = supervisor.Code(e.Code)
	}
	return supervisor.Refuse(code, err.Error())
}
