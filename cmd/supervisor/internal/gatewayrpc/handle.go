package gatewayrpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// handle is what run/open made: the tools of one agent run, and the runs that belong to them.
type handle struct {
	c          *conn
	id         string
	scope      supervisor.Scope // as the client gave it
	owner      supervisor.Scope // as the supervisor is told it; see newHandle
	private    bool             // nobody but this handle can have its runs
	decision   *surface.Decision
	namespaces *namespace.Registry

	mu      sync.Mutex
	shutOff bool                // guarded by mu: nothing may begin any more
	flights map[*flight]bool    // guarded by mu
	runs    map[string]struct{} // guarded by mu: those that are parked here
	pruneAt int                 // guarded by mu: how many of them make it worth to look which are left
}

// flight is an exec or a wait under way.
type flight struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	exec   bool
	done   chan struct{}

	mu    sync.Mutex
	runID string // guarded by mu: "" until it is known
}

func (f *flight) run() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runID
}

func (f *flight) is(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runID = id
}

// Why runs of a handle end.
var (
	errClosed  = errors.New("its handle was closed")
	errAborted = errors.New("the client aborted it")
)

// letGoTimeout bounds how long the end of a handle waits for the end of a run, whose worker is
// killed at once.
const letGoTimeout = 10 * time.Second

// leastPruned is the fewest parked runs for which a handle looks which of them are left.
const leastPruned = 64

// begin takes up an exec, or a wait for a run. The caller finishes it.
func (h *handle) begin(r *request, runID string) (*flight, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shutOff {
		return nil, fault(codeNoHandle, hintOpenAHandle, "there is no handle %q on this connection", h.id)
	}
	f := &flight{exec: runID == "", runID: runID, done: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancelCause(r.ctx)
	h.flights[f] = true
	return f, nil
}

func (h *handle) finish(f *flight) {
	h.mu.Lock()
	delete(h.flights, f)
	h.mu.Unlock()
	f.cancel(nil)
	close(f.done)
}

func (h *handle) exec(f *flight, arguments []byte, callID string) *supervisor.Result {
	defer h.finish(f)
	in, err := surface.ParseExec(arguments, h.decision.Limits.Languages)
	if err != nil {
		return refused(err)
	}
	l := &listener{h: h, f: f, callID: callID}
	res := h.c.srv.opts.Supervisor.Exec(f.ctx, supervisor.Program{
		Code: in.Code, Command: in.Command, Language: in.Language,
		Catalog: h.decision.Catalog, Executor: h, Hooks: h.hooks(), Namespaces: h.namespaces, Limits: h.decision.Limits,
		Scope: h.owner, ParentCallID: callID, Output: l.output(), Trajectory: l.trajectory(),
	})
	if res.Status == supervisor.Waiting && !h.keep(res.RunID) {
		h.letGo(res.RunID)
	}
	return res
}

func (h *handle) wait(f *flight, callID string) *supervisor.Result {
	defer h.finish(f)
	id := f.run()
	l := &listener{h: h, f: f, callID: callID}
	res := h.c.srv.opts.Supervisor.Wait(f.ctx, supervisor.WaitRequest{
		RunID: id, Scope: h.owner, CallID: callID,
		Executor: h, Hooks: h.hooks(), Namespaces: h.namespaces, Output: l.output(), Trajectory: l.trajectory(),
	})
	switch {
	case res.Status == supervisor.Waiting, f.ctx.Err() != nil: // the run goes on
		if !h.keep(id) {
			h.letGo(id)
		}
	case res.RunID != "": // it is over
		h.forget(id)
	}
	return res
}

// keep notes a parked run whose calls come here, and says whether the handle is open. A run
// that another handle began stays with that one.
func (h *handle) keep(id string) bool {
	srv := h.c.srv
	srv.mu.Lock()
	if srv.owners[id] == nil {
		srv.owners[id] = h
	}
	mine := srv.owners[id] == h
	srv.mu.Unlock()
	h.mu.Lock()
	if mine {
		h.runs[id] = struct{}{}
	}
	prune, open := len(h.runs) >= h.pruneAt, !h.shutOff
	h.mu.Unlock()
	if prune {
		h.prune()
	}
	return open || !mine
}

// forget drops a run that is over, whoever kept it.
func (h *handle) forget(id string) {
	srv := h.c.srv
	srv.mu.Lock()
	owner := srv.owners[id]
	delete(srv.owners, id)
	srv.mu.Unlock()
	if owner != nil {
		owner.mu.Lock()
		delete(owner.runs, id)
		owner.mu.Unlock()
	}
}

// prune forgets the runs that ended without a wait: they expired.
func (h *handle) prune() {
	runs, err := h.c.srv.opts.Supervisor.Runs()
	if err != nil {
		return // the next one will
	}
	live := map[string]bool{}
	for _, r := range runs {
		live[r.ID] = !r.State.Terminal()
	}
	var over []string
	h.mu.Lock()
	for id := range h.runs {
		if !live[id] {
			over = append(over, id)
		}
	}
	h.pruneAt = max(leastPruned, 2*(len(h.runs)-len(over)))
	h.mu.Unlock()
	for _, id := range over {
		h.forget(id)
	}
}

// letGo ends a run that the handle does not serve any more; a durable one is left to the state
// directory, where whoever has its scope finds it.
func (h *handle) letGo(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), letGoTimeout)
	defer cancel()
	end := h.c.srv.opts.Supervisor.Abort
	if h.c.srv.opts.Durable && !h.private {
		end = h.c.srv.opts.Supervisor.Detach
	}
	h.forget(id)
	if err := end(ctx, id, h.owner); err != nil && !errors.Is(err, supervisor.ErrNoRun) {
		h.c.log.Warn("ending a run of a handle", "run", id, "error", err)
	}
}

// shut lets nothing begin any more.
func (h *handle) shut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shutOff = true
}

// close ends what is under way and lets all runs go. It may be called twice.
func (h *handle) close() {
	h.shut()
	var ids []string
	for _, f := range h.underWay() {
		f.cancel(errClosed)
		if id := f.run(); id != "" && !f.exec && h.mine(id) {
			h.letGo(id)
		}
		<-f.done
	}
	h.mu.Lock()
	for id := range h.runs {
		ids = append(ids, id)
	}
	h.mu.Unlock()
	for _, id := range ids {
		h.letGo(id)
	}
}

// mine tells that a run's calls come to this handle, or that nobody knows better.
func (h *handle) mine(id string) bool {
	srv := h.c.srv
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.owners[id] == nil || srv.owners[id] == h
}

func (h *handle) underWay() (all []*flight) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.flights {
		all = append(all, f)
	}
	return all
}

// abortAll ends all runs of the handle and says how many there were.
func (h *handle) abortAll(ctx context.Context) (int, error) {
	seen, nameless := map[string]bool{}, 0
	for _, f := range h.underWay() {
		if !f.exec {
			continue // its run is among those that are parked here, or is not ours
		}
		f.cancel(errAborted)
		select {
		case <-f.done:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		if id := f.run(); id != "" {
			seen[id] = true
		} else {
			nameless++
		}
	}
	h.mu.Lock()
	var ids []string
	for id := range h.runs {
		ids = append(ids, id)
	}
	h.mu.Unlock()
	var errs []error
	for _, id := range ids {
		n, err := h.abortOne(ctx, id)
		if n > 0 {
			seen[id] = true
		}
		errs = append(errs, err)
	}
	return len(seen) + nameless, errors.Join(errs...)
}

// abortOne ends a run that the handle's scope may touch. A foreign one and one that is
// unknown or over are the same: 0.
func (h *handle) abortOne(ctx context.Context, id string) (int, error) {
	s := h.c.srv.opts.Supervisor
	before, _ := s.Inspect(id)
	switch err := s.Abort(ctx, id, h.owner); {
	case errors.Is(err, supervisor.ErrNoRun):
		return 0, nil
	case err != nil:
		return 0, err
	case before == nil || before.State.Terminal():
		return 0, nil
	}
	h.forget(id)
	return 1, nil
}

// listener is who hears of one exec, or of a run that a wait took over.
type listener struct {
	h      *handle
	f      *flight
	callID string
}

type outputParams struct {
	Handle string          `json:"handle"`
	RunID  string          `json:"runId"`
	CallID string          `json:"callId,omitempty"`
	Item   supervisor.Item `json:"item"`
}

// output gives what passes items on, or nil if the client does not want them.
func (l *listener) output() func(supervisor.Item) {
	if !l.h.c.info().output {
		return nil
	}
	return func(item supervisor.Item) {
		// It fails with the connection, and then nobody wants the others.
		_ = l.h.c.tell(l.h.c.ctx, runOutput, outputParams{l.h.id, l.f.run(), l.callID, item})
	}
}

type eventParams struct {
	Handle string           `json:"handle"`
	Event  trajectory.Event `json:"event"`
}

// trajectory gives the recorder of a run. It is where the run's id is first heard of: its
// first event comes before its first output.
func (l *listener) trajectory() *trajectory.Recorder {
	policy := trajectory.All(trajectory.KeepNothing)
	want := l.h.c.info().events
	switch want {
	case "digest":
		policy = trajectory.Policy{}
	case "content":
		policy = trajectory.All(trajectory.KeepContent)
	}
	return trajectory.New(trajectory.SinkFunc(func(e trajectory.Event) error {
		if l.f.run() == "" {
			l.f.is(e.RunID)
		}
		if want == "" {
			return nil
		}
		return l.h.c.tell(l.h.c.ctx, runEvent, eventParams{l.h.id, e})
	}), policy)
}

// codeOf gives an error's code as results have it.
func codeOf(err error) string {
	var e *surface.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return surface.InvalidInput
}

type checkResult struct {
	OK    bool   `json:"ok"`
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

func checked(err error) checkResult {
	if err == nil {
		return checkResult{OK: true}
	}
	return checkResult{Code: codeOf(err), Error: err.Error()}
}

// shapes are the names of the shapes of payloads.
func shapes() (names []string) {
	for _, s := range surface.Shapes() {
		names = append(names, string(s))
	}
	return names
}
