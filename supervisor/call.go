package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// risky tells that a queued call is one that no snapshot in the store knows of, and that
// may not be made again.
func (r *run) risky() bool {
	return slices.ContainsFunc(r.ledger.queue, func(c *call) bool {
		if c.saved || !c.nested() || r.p.Catalog == nil {
			return false
		}
		target, err := r.target(c)
		return err == nil && !repeatable(target.Tool)
	})
}

// repeatable tells whether a tool may be called again when nobody knows what became of a
// call (SPEC 14.5).
func repeatable(tool *catalog.Tool) bool {
	return tool.Annotations.ReadOnly || tool.Annotations.Idempotent
}

// dispatch starts queued calls while there are places.
func (r *run) dispatch() {
	if r.leg != nil && r.leg.parking && r.journal.Load() {
		return // until the snapshot is stored that knows of them
	}
	for c := r.ledger.take(); c != nil; c = r.ledger.take() {
		if r.leg != nil {
			r.leg.credit++
		}
		if r.ask != nil {
			c.during = r.ask.span
		}
		r.s.wg.Go(func() { r.carry(c) }) // Close waits for it
	}
}

// carry takes a call to its end: it runs it, tells the loop, and sends the result down,
// or leaves it to the loop while no worker is there. No send to the loop blocks: there is
// one place for each call that is running. A worker that does not read blocks this
// goroutine and nothing else, until it is killed.
func (r *run) carry(c *call) {
	// It is listed in results if it has a span (maxCallInfos).
	ctx, span := r.s.tel.Call(r.ctx, r.span, c.during, c.info >= 0 && c.nested())
	c.span = span
	ended := false
	defer func() {
		if !ended { // the executor ended its goroutine (runtime.Goexit)
			r.conclude(c, nil, &ToolError{Message: fmt.Sprintf("tool %q failed inside the gateway", toolIDOf(c)), Started: "unknown"})
		}
	}()
	value, err := r.perform(ctx, c)
	ended = true
	r.conclude(c, value, err)
}

// conclude is the end of a call.
func (r *run) conclude(c *call, value json.RawMessage, err error) {
	c.begun() // whatever became of it
	c.ended.Store(true)
	res := callResult{call: c, value: value, m: &workerproto.ToolResult{ID: c.id, Value: value}}
	if err != nil {
		res.fail(r.failureOf(c, err))
	}
	r.endSpan(res)
	conn, turn := r.gate.enter()
	res.sent = conn != nil
	r.ledger.results <- res
	if res.sent {
		r.deliver(conn, turn, res)
	}
}

// failureOf gives an executor's error the form that crosses. Its methods are the executor's,
// and panic if it is a nil pointer.
func (r *run) failureOf(c *call, err error) (te *ToolError) {
	defer func() {
		if p := recover(); p != nil {
			r.s.opts.Logger.Error("the error of a nested call panicked", "run", r.id, "tool", toolIDOf(c), "panic", fmt.Sprint(p))
			te = toolError(&ToolError{Message: fmt.Sprintf("tool %q failed inside the gateway", toolIDOf(c)), Started: "unknown"})
		}
	}()
	return toolError(err)
}

// deliver sends a result that was let through the gate.
func (r *run) deliver(conn *workerproto.Conn, turn <-chan struct{}, res callResult) {
	if turn != nil {
		<-turn
	}
	err := r.send(conn, res)
	r.gate.leave()
	if err == nil {
		r.written <- res.call.id
	}
}

// fail makes the result a rejection.
func (res *callResult) fail(err *ToolError) {
	res.value, res.err = nil, err
	res.m = &workerproto.ToolResult{ID: res.call.id, Failed: true, Error: err.Message, ToolID: toolIDOf(res.call), Code: err.Code, Started: err.Started}
}

// send gives a result to a worker.
func (r *run) send(conn *workerproto.Conn, res callResult) error {
	err := conn.Write(res.m)
	if errors.Is(err, workerproto.ErrRefused) { // a fault of ours, and the cell must not wait for ever
		r.s.opts.Logger.Error("a nested call's result cannot be sent", "run", r.id, "tool", toolIDOf(res.call), "error", err)
		err = conn.Write(&workerproto.ToolResult{ID: res.call.id, Failed: true, Error: "the result cannot be sent", Code: codeToolFailed, Started: "unknown"})
	}
	return err
}

// settle notes a call's end. What no worker can take is kept (SPEC 12.6).
func (r *run) settle(res callResult) {
	if !res.sent && r.leg != nil { // it found the gate shut, which may have opened since
		conn, turn := r.gate.enter()
		if res.sent = conn != nil; res.sent {
			r.s.wg.Go(func() { r.deliver(conn, turn, res) })
		}
	}
	if !res.sent {
		res = r.keep(res)
	}
	r.measureCall(res.call, r.ledger.settle(res))
	if res.call.saved {
		_ = r.noteResult(res)
	}
	if r.leg != nil && res.sent {
		r.leg.idle = false
		r.leg.sent++
	}
	c := res.call
	if !c.nested() {
		return
	}
	e := trajectory.Event{Kind: trajectory.ToolResult, CallID: c.ref, ToolID: toolIDOf(c), Status: "done"}
	if res.err != nil {
		e.Status, e.Code = "failed", res.err.Code
		e.Data = r.describe(trajectory.PartError, e.ToolID, res.err.Message)
	} else {
		e.Data = r.p.Trajectory.Describe(trajectory.PartResult, e.ToolID, res.value)
	}
	r.record(e)
}

// room tells whether the store has room for a result that is kept (SPEC 13.5); a durable one
// then has it.
func (r *run) room(res callResult) bool {
	var err error
	switch {
	case res.call.saved:
		err = r.noteResult(res)
	case r.parked && len(res.value) > 0:
		err = r.s.store.Reserve(r.id, int64(len(res.value)))
	}
	var full *snapshot.FullError
	return !errors.As(err, &full)
}

// keep keeps a result for the next leg, within the snapshot limit. The call's place is
// free.
func (r *run) keep(res callResult) callResult {
	const least = 1024 // a rejection always fits
	if size := int64(len(res.value)); size > least && r.keptBytes+size > r.p.Limits.SnapshotBytes {
		r.hit("maxSnapshotBytes")
		res.fail(toolError(&ToolError{Message: fmt.Sprintf("the result of tool %q has %d bytes, more than a parked run can keep (maxSnapshotBytes is %d); the tool has run. Ask for less of it", toolIDOf(res.call), size, r.p.Limits.SnapshotBytes), Code: codeResultSize}))
	}
	if !r.room(res) {
		r.hit("maxParkedBytes")
		res.fail(toolError(&ToolError{Message: fmt.Sprintf("the result of tool %q has %d bytes, and parked runs hold as much as they may (maxParkedBytes); the tool has run. Ask for less of it", toolIDOf(res.call), len(res.value)), Code: codeResultSize}))
		r.room(res) // a rejection always fits
	}
	r.keptBytes += int64(len(res.value))
	r.kept = append(r.kept, res)
	r.ledger.free(res.call.id)
	return res
}

func toolIDOf(c *call) string {
	if id, ok := c.toolID.Load().(string); ok {
		return id
	}
	return c.named()
}

// perform runs one call on its own goroutine. What panics, in the executor or on the way to
// it, costs this call.
func (r *run) perform(ctx context.Context, c *call) (value json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.s.opts.Logger.Error("a nested call panicked", "run", r.id, "tool", toolIDOf(c), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			started := "no"
			if c.started.Load() {
				started = "unknown"
			}
			value, err = nil, &ToolError{Message: fmt.Sprintf("tool %q failed inside the gateway", toolIDOf(c)), Started: started}
		}
	}()
	if r.p.Catalog == nil {
		return nil, &ToolError{Message: fmt.Sprintf("unknown tool %.100q: this run has no tools", c.named()), Code: codeUnknownTool, Started: "no"}
	}
	switch c.method {
	case "search":
		return r.search(c)
	case "api":
		return r.api(c)
	}
	target, err := r.target(c)
	if err != nil {
		return nil, r.unknown(c.ref, c.named(), err)
	}
	if c.method == "describe" {
		return target.Tool.Describe(), nil
	}
	c.toolID.Store(target.Tool.ID)
	c.target.Store(target.Tool)
	input := c.input
	if c.method == "namespace" {
		if input, err = target.Input(input); err != nil {
			return nil, notStarted(codeInvalidInput, err)
		}
	}
	if input, err = target.Tool.CheckInput(input); err != nil {
		return nil, notStarted(codeInvalidInput, err)
	}
	if r.hooked || target.Tool.Approval {
		if input, err = r.admit(ctx, c, target.Tool, input); err != nil {
			return nil, err
		}
	}
	return r.execute(ctx, c, target.Tool, input)
}

// target finds the tool that a call means, in what the guest was given: the catalog or the
// scopes of namespaces.
func (r *run) target(c *call) (t namespace.Target, err error) {
	switch c.method {
	case "mcp":
		t.Tool, err = r.p.Catalog.ResolveMCP(c.tool)
	case "namespace":
		return r.scopes.resolve(c.tool)
	default:
		t.Tool, err = r.p.Catalog.Resolve(c.tool)
	}
	return t, err
}

// execute hands a checked call to the gateway. ctx is the run's, with the call's span.
func (r *run) execute(ctx context.Context, c *call, tool *catalog.Tool, input json.RawMessage) (json.RawMessage, error) {
	if r.p.Executor == nil {
		return nil, &ToolError{Message: fmt.Sprintf("tool %q has nobody to run it", tool.ID), Started: "no"}
	}
	select {
	case <-c.turn:
	case <-r.ctx.Done():
	}
	if r.ctx.Err() != nil {
		return nil, &ToolError{Message: errOver.Error(), Started: "no"}
	}
	r.record(trajectory.Event{Kind: trajectory.ToolCall, CallID: c.ref, ToolID: tool.ID, Data: r.p.Trajectory.Describe(trajectory.PartInput, tool.ID, input)})
	c.repeats = repeatable(tool)
	if err := r.beginCall(c); err != nil {
		return nil, err
	}
	var value json.RawMessage
	var err error
	call := r.callOf(c, tool, input)
	if starter, ok := r.p.Executor.(Starter); ok {
		run := starter.Start(call)
		c.begun()
		value, err = run(ctx)
	} else {
		c.begun()
		value, err = r.p.Executor.Call(ctx, call)
	}
	if err != nil {
		var te *ToolError
		if errors.As(err, &te) && te.Started == "no" {
			c.started.Store(false) // the ledger must not claim an effect
		}
		return nil, err
	}
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	if value, err = r.checkResult(tool, value); err != nil {
		return nil, err
	}
	return tool.Result(value)
}

// callOf is a call as the gateway sees it.
func (r *run) callOf(c *call, tool *catalog.Tool, input json.RawMessage) *Call {
	return &Call{ID: c.ref, RunID: r.id, ParentCallID: r.p.ParentCallID, Scope: r.p.Scope, Tool: tool, Input: input, run: r, call: c}
}

// checkResult bounds what a tool returned.
func (r *run) checkResult(tool *catalog.Tool, value json.RawMessage) (json.RawMessage, error) {
	switch {
	case len(value) > workerproto.MaxToolResult || int64(len(value)) > r.p.Limits.MemoryBytes:
		return nil, &ToolError{Message: fmt.Sprintf("the result of tool %q has %d bytes, more than a cell can take; ask for less of it", tool.ID, len(value)), Code: codeResultSize}
	case !json.Valid(value) || !utf8.Valid(value):
		return nil, &ToolError{Message: fmt.Sprintf("tool %q returned what is not JSON in UTF-8", tool.ID)}
	}
	return value, nil
}

// search answers tools.search.
func (r *run) search(c *call) (json.RawMessage, error) {
	var options struct {
		Limit json.RawMessage `json:"limit"`
	}
	if err := json.Unmarshal(c.input, &options); err != nil {
		return nil, &ToolError{Message: "tools.search takes a query and options {limit?: number}", Code: codeInvalidInput, Started: "no"}
	}
	hits, err := r.p.Catalog.Search(c.tool, options.Limit)
	if err != nil {
		return nil, notStarted(codeInvalidInput, err)
	}
	return encodeJSON(hits), nil
}

// api answers what API and $api ask for (SPEC 7.4, 7.5). The declarations of MCP servers went
// to the worker with the cell.
func (r *run) api(c *call) (json.RawMessage, error) {
	var ask struct {
		Path   string `json:"path"`
		Server string `json:"server"`
		Tool   string `json:"tool"`
		Schema bool   `json:"schema"`
	}
	if err := json.Unmarshal(c.input, &ask); err != nil {
		return nil, &ToolError{Message: "what was asked of API cannot be read", Code: codeInvalidInput, Started: "no"}
	}
	var value json.RawMessage
	var err error
	switch c.tool {
	case "list":
		return encodeJSON(r.p.Catalog.ToolFiles()), nil
	case "read":
		var f catalog.File
		f, err = r.p.Catalog.ToolFile(ask.Path)
		value = encodeJSON(f.Text)
	case "$api":
		value, err = r.p.Catalog.API(ask.Server, ask.Tool, ask.Schema)
	default:
		err = fmt.Errorf("API has no %.40q", c.tool)
	}
	if err != nil {
		return nil, r.unknown(c.ref, "API "+strings.Trim(ask.Path+" "+ask.Server+"."+ask.Tool, " ."), err)
	}
	return value, nil
}

// maxSuggested is how many wrong names of a run are answered with suggestions: to compare a
// name with those of ten thousand tools takes tens of milliseconds of our time, and the
// guest's names cost it nothing.
const maxSuggested = 32

// unknown is the refusal of what a lookup did not find. If that is so because policy denies it,
// the audit learns of it.
func (r *run) unknown(ref, asked string, err error) *ToolError {
	var lookup *catalog.LookupError
	if !errors.As(err, &lookup) {
		return notStarted(codeUnknownTool, err)
	}
	r.audit(ref, asked, lookup.Denied())
	if r.wrong.Add(1) > maxSuggested {
		return &ToolError{Message: lookup.Short(), Code: codeUnknownTool, Started: "no"}
	}
	return notStarted(codeUnknownTool, lookup)
}

// maxAudited is how many attempts of a run are noted one by one: a loop must not fill a disk.
const maxAudited = 256

// audit says that a cell asked for tools that policy denies (SPEC 6.5). The cell is not told.
func (r *run) audit(ref, asked string, denied []string) {
	for _, id := range denied {
		r.s.tel.Denied()
		if n := r.denied.Add(1); n > maxAudited {
			if n == maxAudited+1 {
				r.s.opts.Logger.Warn("a cell asked for tools that policy denies more often than is noted", "run", r.id, "noted", maxAudited)
			}
			continue
		}
		r.s.opts.Logger.Warn("a cell asked for a tool that policy denies", "run", r.id, "tool", id, "asked", clip(printable(asked), 100))
		r.record(trajectory.Event{Kind: trajectory.ToolCall, CallID: ref, ToolID: id, Status: trajectory.Denied})
	}
}

// notStarted is a refusal before any tool was started.
func notStarted(code string, err error) *ToolError {
	return &ToolError{Message: err.Error(), Code: code, Started: "no"}
}

// clip cuts text at a character boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// shellTools are names that gateways give to the tool that runs shell commands.
var shellTools = []string{"exec", "bash", "shell", "run_shell", "run_command", "execute_command", "terminal", "sh"}

// shellHint tells a model that wrote a shell command which tool runs those (SPEC 3.4).
func (r *run) shellHint() string {
	if r.p.Catalog == nil {
		return ""
	}
	for _, name := range shellTools {
		if t, err := r.p.Catalog.Resolve(name); err == nil {
			return fmt.Sprintf("\nhint: to run a shell command, call the tool %q: %s", t.ID, t.Callable())
		}
	}
	return ""
}
