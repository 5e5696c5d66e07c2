package gatewayrpc

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// ProtocolVersion is the version of the protocol. A message that an old client would misread
// makes a new one.
const ProtocolVersion = 1

const initialize = "initialize"

// method reads the parameters of a request, and does what has to be done in the order of the
// requests; the function that it returns does the rest, beside the others.
type method func(c *conn, r *request, p *object) (func(context.Context) (any, error), error)

// methods are the requests of clients, notifications what they tell.
var (
	methods       map[string]method
	notifications = map[string]func(*conn, *object) error{
		"$/cancelRequest": (*conn).cancelRequest,
		"tool/park":       (*conn).toolPark,
		"tool/update":     (*conn).toolUpdate,
	}
)

// What is asked of clients, and told to them.
const (
	toolCall    = "tool/call"
	toolApprove = "tool/approve"
	toolCancel  = "tool/cancel"
	hookBefore  = "hook/beforeToolCall"
	runOutput   = "run/output"
	runEvent    = "run/event"
)

func init() {
	methods = map[string]method{
		initialize:      (*conn).initialize,
		"run/open":      (*conn).runOpen,
		"run/exec":      (*conn).runExec,
		"run/wait":      (*conn).runWait,
		"run/abort":     (*conn).runAbort,
		"run/close":     (*conn).runClose,
		"surface/check": (*conn).surfaceCheck,
	}
	methodNames = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(methods)) })
}

var methodNames func() []string

// clientInfo is what a client said of itself.
type clientInfo struct {
	hooks, approvals, output bool
	events                   string // "", "digest" or "content"
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type initialized struct {
	ProtocolVersion int        `json:"protocolVersion"`
	Server          serverInfo `json:"server"`
	Durable         bool       `json:"durable"`
	MaxLineBytes    int        `json:"maxLineBytes"`
	MaxRequests     int        `json:"maxRequests"`
	MaxHandles      int        `json:"maxHandles"`
}

func (c *conn) initialize(_ *request, p *object) (func(context.Context) (any, error), error) {
	version := p.number("protocolVersion")
	who := p.object("client")
	name, release := who.optionalText("name"), who.optionalText("version")
	who.unknown()
	caps := p.object("capabilities")
	info := &clientInfo{hooks: caps.boolean("hooks"), approvals: caps.boolean("approvals"), output: caps.boolean("output"), events: caps.oneOf("events", "digest", "content")}
	caps.unknown()
	if err := p.end(); err != nil {
		return nil, err
	}
	if version != ProtocolVersion {
		return nil, fault(codeInvalidParams, "", "protocolVersion is %d; this supervisor speaks version %d", version, ProtocolVersion)
	}
	c.mu.Lock()
	c.client = info
	c.mu.Unlock()
	c.log.Info("a client introduced itself", "client", clip(name, 60), "version", clip(release, 60))
	return reply(initialized{
		ProtocolVersion: ProtocolVersion, Server: serverInfo{"codemode-supervisor", c.srv.opts.Version}, Durable: c.srv.opts.Durable,
		MaxLineBytes: MaxLine, MaxRequests: c.srv.maxRequests, MaxHandles: c.srv.maxHandles,
	}), nil
}

// reply is the rest of a request that is done.
func reply(v any) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return v, nil }
}

// handleOf finds the handle that a request is about.
func (c *conn) handleOf(p *object) (*handle, error) {
	id := p.text("handle")
	c.mu.Lock()
	h := c.handles[id]
	c.mu.Unlock()
	if h == nil && *p.err == nil {
		return nil, fault(codeNoHandle, hintOpenAHandle, "there is no handle %q on this connection", clip(id, 60))
	}
	return h, nil
}

func (c *conn) runExec(r *request, p *object) (func(context.Context) (any, error), error) {
	h, arguments, callID, err := c.callOfModel(p)
	if err != nil {
		return nil, err
	}
	f, err := h.begin(r, "")
	if err != nil {
		return nil, err
	}
	return func(context.Context) (any, error) { return h.exec(f, arguments, callID), nil }, nil
}

func (c *conn) runWait(r *request, p *object) (func(context.Context) (any, error), error) {
	h, arguments, callID, err := c.callOfModel(p)
	if err != nil {
		return nil, err
	}
	runID, err := surface.ParseWait(arguments)
	if err != nil {
		return reply(refused(err)), nil
	}
	f, err := h.begin(r, runID)
	if err != nil {
		return nil, err
	}
	return func(context.Context) (any, error) { return h.wait(f, callID), nil }, nil
}

// callOfModel reads what run/exec and run/wait have in common.
func (c *conn) callOfModel(p *object) (h *handle, arguments []byte, callID string, err error) {
	h, missing := c.handleOf(p)
	callID = p.optionalText("callId")
	raw := p.value("arguments")
	if raw != nil {
		switch raw[0] {
		case '{':
			arguments = raw
		case '"':
			var text string
			_ = json.Unmarshal(raw, &text) // it is JSON
			arguments = []byte(text)
		default:
			p.fail("arguments is %s; it must be the object that the model gave, or its JSON text", kindOf(raw))
		}
	}
	if err := p.end(); err != nil {
		return nil, nil, "", err
	}
	if missing != nil {
		return nil, nil, "", missing
	}
	if h.decision.State != surface.Engaged {
		return nil, nil, "", fault(codeNotEngaged, "show the model its own tools, or none: see the state that run/open gave", "code mode is not engaged for handle %q: %s", h.id, h.decision.Reason)
	}
	return h, arguments, callID, nil
}

func (c *conn) runAbort(_ *request, p *object) (func(context.Context) (any, error), error) {
	h, missing := c.handleOf(p)
	runID := p.optionalText("runId")
	if err := p.end(); err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, missing
	}
	one := p.members["runId"] != nil
	return func(ctx context.Context) (any, error) {
		n, err := 0, error(nil)
		if one {
			n, err = h.abortOne(ctx, runID)
		} else {
			n, err = h.abortAll(ctx)
		}
		if err != nil {
			return nil, fault(codeInternal, "ask again", "aborting: %v", err)
		}
		return struct {
			Aborted int `json:"aborted"`
		}{n}, nil
	}, nil
}

func (c *conn) runClose(_ *request, p *object) (func(context.Context) (any, error), error) {
	h, missing := c.handleOf(p)
	if err := p.end(); err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, missing
	}
	c.mu.Lock()
	delete(c.handles, h.id)
	c.mu.Unlock()
	h.shut()
	return func(context.Context) (any, error) {
		h.close()
		return struct{}{}, nil
	}, nil
}

func (c *conn) surfaceCheck(_ *request, p *object) (func(context.Context) (any, error), error) {
	h, missing := c.handleOf(p)
	payload := p.value("payload")
	shape := p.oneOf("shape", shapes()...)
	if err := p.end(); err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, missing
	}
	return func(context.Context) (any, error) {
		return checked(h.decision.CheckPayload(payload, surface.Shape(shape))), nil
	}, nil
}

// refused is the result of a call whose arguments are the model's mistake.
func refused(err error) *supervisor.Result {
	return supervisor.Refuse(supervisor.Code(codeOf(err)), err.Error())
}

// cancelRequest ends an exec, or gives a wait up. The request is answered.
func (c *conn) cancelRequest(p *object) error {
	id := p.value("id")
	if id != nil && !isID(id) {
		p.fail("id is %s; it must be a string or a number", kindOf(id))
	}
	if err := p.end(); err != nil {
		return err
	}
	c.mu.Lock()
	r := c.open[string(id)]
	c.mu.Unlock()
	if r != nil {
		r.cancel(errCancelled)
	}
	return nil
}

// callWithID finds a nested call that the client has.
func (c *conn) callWithID(p *object) *supervisor.Call {
	id := p.text("callId")
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id]
}

func (c *conn) toolPark(p *object) error {
	call, reason := c.callWithID(p), p.optionalText("reason")
	if err := p.end(); err != nil {
		return err
	}
	if call != nil {
		call.Park(reason)
	}
	return nil
}

func (c *conn) toolUpdate(p *object) error {
	call, value := c.callWithID(p), p.value("value")
	if err := p.end(); err != nil {
		return err
	}
	if call != nil {
		call.Update(value)
	}
	return nil
}
