package gatewayrpc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/json5"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// Bounds of the lists of run/open. That of the tools is the catalog's.
const (
	maxUnavailable   = 1000
	maxPatterns      = 10_000
	maxScopeText     = 1024 // bytes of each part of a scope
	maxShapes        = 16
	maxRequiredTools = 256
)

// opening is a run/open that was read.
type opening struct {
	scope      supervisor.Scope
	run        surface.Run
	policy     catalog.Policy
	registry   *namespace.Registry
	shapes     []surface.Shape
	strict     bool
	namespaces int
}

type opened struct {
	Handle       string                            `json:"handle"`
	State        surface.State                     `json:"state"`
	Engaged      bool                              `json:"engaged"`
	Reason       string                            `json:"reason"`
	VisibleTools []string                          `json:"visibleTools"`
	Catalog      *supervisor.CatalogInfo           `json:"catalog,omitempty"`
	Definitions  *surface.Definitions              `json:"definitions,omitempty"`
	Tools        map[surface.Shape]json.RawMessage `json:"tools,omitempty"`
	Limits       json.RawMessage                   `json:"limits,omitempty"`
	Warnings     []string                          `json:"warnings"`
}

func (c *conn) runOpen(_ *request, p *object) (func(context.Context) (any, error), error) {
	o, err := c.readOpening(p)
	if err != nil {
		return nil, err
	}
	return func(context.Context) (any, error) { return c.openHandle(o) }, nil
}

// readOpening reads the parameters of run/open.
func (c *conn) readOpening(p *object) (*opening, error) {
	o := &opening{registry: new(namespace.Registry)}
	if p.value("scope") != nil {
		o.scope = readScope(p.object("scope"))
	}
	config := c.srv.opts.Config
	o.run = surface.Run{Base: &config, Global: p.raw("config"), Agent: p.raw("agentConfig"), AgentID: o.scope.AgentID}
	run := p.object("context")
	o.run.RawModelCall, o.run.ToolsDisabled, o.run.AllowListEmpty = run.boolean("rawModelCall"), run.boolean("toolsDisabled"), run.boolean("allowListEmpty")
	run.unknown()
	p.objects("tools", catalog.MaxTools, func(t *object) { o.run.Entries = append(o.run.Entries, readTool(t)) })
	p.objects("unavailable", maxUnavailable, func(u *object) {
		o.run.Catalog.Unavailable = append(o.run.Catalog.Unavailable, catalog.Unavailable{Name: u.text("name"), Reason: u.optionalText("reason")})
	})
	policy := p.object("policy")
	o.policy = catalog.Policy{Allow: policy.texts("allow", maxPatterns), Deny: policy.texts("deny", maxPatterns), Approve: policy.texts("approve", maxPatterns)}
	policy.unknown()
	for i, s := range p.texts("shapes", maxShapes) {
		if !slices.Contains(shapes(), s) {
			p.fail("shapes[%d] is %q%s", i, clip(s, 60), meant(s, shapes()))
		}
		o.shapes = append(o.shapes, surface.Shape(s))
	}
	o.strict = p.boolean("strict")
	p.objects("namespaces", namespace.MaxNamespaces, o.readNamespace)
	if err := p.end(); err != nil {
		return nil, err
	}
	return o, nil
}

func readScope(p *object) supervisor.Scope {
	part := func(key string) string {
		s := p.optionalText(key)
		if len(s) > maxScopeText {
			p.fail("%s has %d bytes, at most %d are possible", p.at(key), len(s), maxScopeText)
		}
		return s
	}
	s := supervisor.Scope{
		AgentID: part("agentId"), SessionID: part("sessionId"), SessionKey: part("sessionKey"), AgentRunID: part("agentRunId"),
		Sender: part("sender"), Channel: part("channel"),
	}
	p.unknown()
	return s
}

// The words that a tool may have.
var (
	sources    = []string{string(catalog.OpenClaw), string(catalog.Plugin), string(catalog.MCP), string(catalog.Client)}
	operations = []string{string(catalog.ResourcesList), string(catalog.ResourcesRead), string(catalog.PromptsList), string(catalog.PromptsGet)}
)

func readTool(p *object) catalog.Entry {
	e := catalog.Entry{ID: p.optionalText("id"), Label: p.optionalText("label"), Description: p.optionalText("description")}
	e.Operation = catalog.Operation(p.oneOf("operation", operations...))
	if e.Operation == "" {
		e.Name = p.text("name")
	} else {
		e.Name = p.optionalText("name")
	}
	p.value("source")
	e.Source, e.SourceName = catalog.Source(p.oneOf("source", sources...)), p.optionalText("sourceName")
	e.Parameters, e.OutputSchema = p.raw("parameters"), p.raw("outputSchema")
	hints := p.object("annotations")
	e.Annotations = catalog.Annotations{ReadOnly: hints.boolean("readOnlyHint"), Idempotent: hints.boolean("idempotentHint"), Destructive: hints.boolean("destructiveHint")}
	hints.unknown()
	e.Control = p.boolean("control")
	switch p.oneOf("policy", "allow", "deny", "approve") {
	case "deny":
		e.Denied = true
	case "approve":
		e.Approval = true
	}
	return e
}

func (o *opening) readNamespace(p *object) {
	plugin := p.text("pluginId")
	n := namespace.Namespace{
		ID: p.text("id"), GlobalName: p.text("globalName"), Description: p.text("description"), Prompt: p.optionalText("prompt"),
		RequiredTools: p.texts("requiredToolNames", maxRequiredTools),
	}
	raw := p.value("scope")
	if raw != nil && raw[0] != '{' {
		p.fail("%s is %s; it must be an object", p.at("scope"), kindOf(raw))
	}
	if *p.err != nil {
		return
	}
	scope, err := readNamespaceScope(raw, n.RequiredTools)
	if err != nil {
		p.fail("%s: %v", p.at("scope"), err)
		return
	}
	n.Scope = func(context.Context, namespace.Run) (any, error) { return scope, nil }
	if err := o.registry.Register(plugin, n); err != nil {
		p.fail("%s: %v", p.path, err)
	}
	o.namespaces++
}

// marker is the key that makes an object of a scope a function.
const marker = "$tool"

// readNamespaceScope makes a scope of JSON in which {"$tool": …} stands for a function.
func readNamespaceScope(raw json.RawMessage, tools []string) (any, error) {
	if len(raw) > namespace.MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are possible", len(raw), namespace.MaxBytes)
	}
	v, err := json5.Parse(raw)
	if err != nil {
		return nil, err
	}
	return scopeValue(v, tools)
}

func scopeValue(v *json5.Value, tools []string) (any, error) {
	switch v.Kind {
	case json5.Array:
		all := make([]any, 0, len(v.Items))
		for i := range v.Items {
			e, err := scopeValue(&v.Items[i], tools)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			all = append(all, e)
		}
		return all, nil
	case json5.Object:
		if v.Get(marker) != nil {
			return scopeTool(v, tools)
		}
		all := make(map[string]any, len(v.Members))
		for i := range v.Members {
			m := &v.Members[i]
			e, err := scopeValue(&m.Value, tools)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", clip(m.Key, 60), err)
			}
			all[m.Key] = e
		}
		return all, nil
	}
	b, err := v.JSON()
	return json.RawMessage(b), err
}

// scopeTool reads {"$tool": "name", "args"?: ["a", "b"]}.
func scopeTool(v *json5.Value, tools []string) (any, error) {
	if m, _ := v.Unknown([]string{marker, "args"}); m != nil {
		return nil, fmt.Errorf("a function has no member %q; it is {%q: name, \"args\"?: [names]}", clip(m.Key, 60), marker)
	}
	name := v.Get(marker)
	if name.Kind != json5.String || !slices.Contains(tools, name.Text) {
		return nil, fmt.Errorf("%s must be one of requiredToolNames (%s)", marker, clip(strings.Join(tools, ", "), 200))
	}
	args := v.Get("args")
	if args == nil {
		return namespace.Tool(name.Text), nil
	}
	var keys []string
	if args.Kind != json5.Array {
		return nil, fmt.Errorf("args is of type %s; it must be an array of names", args.Kind)
	}
	for i := range args.Items {
		e := &args.Items[i]
		if e.Kind != json5.String || slices.Contains(keys, e.Text) {
			return nil, fmt.Errorf("args[%d] must be a name that no other argument has", i)
		}
		keys = append(keys, e.Text)
	}
	return namespace.Tool(name.Text, func(args []json.RawMessage) (json.RawMessage, error) { return positional(keys, args) }), nil
}

// positional makes an input of a guest's arguments. One that is null was not given: that is
// how undefined arrives.
func positional(keys []string, args []json.RawMessage) (json.RawMessage, error) {
	if len(args) > len(keys) {
		return nil, fmt.Errorf("it takes %d arguments (%s), not %d", len(keys), strings.Join(keys, ", "), len(args))
	}
	input := map[string]json.RawMessage{}
	for i, a := range args {
		if string(a) != "null" {
			input[keys[i]] = a
		}
	}
	return json.Marshal(input)
}

// openHandle decides about code mode (SPEC 2.2) and makes the handle.
func (c *conn) openHandle(o *opening) (any, error) {
	o.run.Entries = o.policy.Apply(o.run.Entries)
	o.run.Namespaces = o.registry
	o.run.Catalog.Warn = func(w catalog.Warning) {
		c.log.Warn("a tool is not as its owner meant it", "tool", w.Tool, "problem", w.Text)
	}
	d, err := surface.Decide(o.run)
	if err != nil {
		code, data := codeUnavailable, errorData{dataNotAvailable, "code mode is on: do not show the model the tools instead"}
		if codeOf(err) == surface.InvalidConfig {
			code, data = codeInvalidConfig, errorData{dataInvalidConfig, `"supervisor config schema" has the fields; do not show the model the tools instead`}
		}
		return nil, faultOf(code, data, err.Error())
	}
	if c.srv.opts.Decisions {
		c.log.Info("code mode surface", "agent", o.scope.AgentID, "session", o.scope.SessionID, "decision", d)
	}
	h := newHandle(c, o, d)
	c.mu.Lock()
	full := len(c.handles) >= c.srv.maxHandles
	if !full {
		c.lastHandle++
		h.id = fmt.Sprintf("h%d", c.lastHandle)
		c.handles[h.id] = h
	}
	c.mu.Unlock()
	if full {
		return nil, fault(codeBusy, "close handles with run/close", "%d handles are open, and that is the most", c.srv.maxHandles)
	}
	if c.ctx.Err() != nil { // the connection is over, and may have closed its handles already
		h.close()
	}
	return o.result(h), nil
}

// newHandle makes a handle. Runs whose scope names nobody belong to the handle alone: the
// supervisor would let everybody have them.
func newHandle(c *conn, o *opening, d *surface.Decision) *handle {
	h := &handle{
		c: c, scope: o.scope, owner: o.scope, decision: d,
		flights: map[*flight]bool{}, runs: map[string]struct{}{}, pruneAt: leastPruned,
	}
	if o.namespaces > 0 {
		h.namespaces = o.registry
	}
	if s := o.scope; s.AgentID+s.SessionID+s.SessionKey+s.AgentRunID == "" {
		h.private, h.owner.AgentRunID = true, "handle-"+rand.Text()
	}
	return h
}

// result is the answer to run/open.
func (o *opening) result(h *handle) opened {
	d := h.decision
	res := opened{
		Handle: h.id, State: d.State, Engaged: d.State == surface.Engaged, Reason: d.Reason,
		VisibleTools: append([]string{}, d.VisibleTools()...), Warnings: []string{},
	}
	for _, w := range d.ConfigWarnings {
		res.Warnings = append(res.Warnings, w.String())
	}
	for _, w := range d.CatalogWarnings {
		res.Warnings = append(res.Warnings, w.String())
	}
	if !res.Engaged {
		return res
	}
	res.Catalog = &supervisor.CatalogInfo{Size: d.Catalog.Len(), BySource: map[string]int{}}
	for source, n := range d.Catalog.BySource() {
		res.Catalog.BySource[string(source)] = n
	}
	res.Definitions = &d.Definitions
	for _, s := range o.shapes {
		if res.Tools == nil {
			res.Tools = map[surface.Shape]json.RawMessage{}
		}
		res.Tools[s] = d.Definitions.Render(s, o.strict)
	}
	res.Limits = limitsJSON(d.Limits)
	return res
}

// limitsJSON gives limits the names that the config has for them.
func limitsJSON(l limits.Limits) json.RawMessage {
	var file struct {
		Tools struct {
			CodeMode map[string]json.RawMessage `json:"codeMode"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(limits.Config{Enabled: true, Limits: l}.Marshal(), &file) // our own
	fields := file.Tools.CodeMode
	for _, other := range []string{"enabled", "runtime", "mode"} {
		delete(fields, other)
	}
	b, _ := json.Marshal(fields)
	return b
}
