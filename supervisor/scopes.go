package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// scopes are a run's plugin namespaces (SPEC 8).
type scopes struct {
	of    *namespace.Scopes // nil: none
	err   error             // why a run that another process parked has none
	built chan builtScopes  // nil unless they are being made
}

type builtScopes struct {
	scopes *namespace.Scopes
	err    error
}

// errNoScopes is for a plugin that ended its goroutine (runtime.Goexit).
var errNoScopes = errors.New("building the namespaces ended without a result")

// hasNamespaces tells whether any namespace is visible to the run (SPEC 8.2).
func (r *run) hasNamespaces() bool {
	return r.p.Namespaces != nil && r.p.Catalog != nil && len(r.p.Namespaces.Visible(r.p.Catalog)) > 0
}

// identity is what scopes are built for.
func (r *run) identity() namespace.Run {
	s := r.p.Scope
	return namespace.Run{
		AgentID: s.AgentID, SessionID: s.SessionID, SessionKey: s.SessionKey, AgentRunID: s.AgentRunID,
		RunID: r.id, Config: r.p.NamespaceConfig,
	}
}

// buildScopes begins to make the scopes, if there are to be any. The source has been accepted,
// and the worker waits for them. Plugins may take their time, so it is not done on the
// loop.
func (r *run) buildScopes(ctx context.Context) {
	if !r.leg.namespaces {
		return
	}
	r.leg.waits = true
	built := make(chan builtScopes, 1) // room for one that comes too late
	r.scopes.built = built
	r.s.wg.Go(func() {
		b := builtScopes{err: errNoScopes}
		defer func() { built <- b }()
		b.scopes, b.err = r.p.Namespaces.Build(ctx, r.p.Catalog, r.identity())
	})
}

// furnish gives the worker the scopes, or ends the run: a cell must not run with less than
// the model was told of.
func (r *run) furnish(ctx context.Context, b builtScopes) *end {
	r.scopes.built = nil
	if ctx.Err() != nil {
		return nil // that is the end, and why
	}
	if b.err != nil {
		var wrong *namespace.ScopeError
		if errors.As(b.err, &wrong) && wrong.Place != "" {
			return &end{fail: hostf(InvalidConfig, "%v", b.err)}
		}
		return &end{fail: hostf(RuntimeUnavailable, "code mode cannot run: %v", b.err)}
	}
	r.scopes.of = b.scopes
	r.leg.waits = false
	m := &workerproto.Namespaces{Scopes: b.scopes.JSON()}
	conn := r.leg.child.Conn
	r.s.wg.Go(func() { _ = conn.Write(m) }) // not on the loop; the reader learns of a failure
	return nil
}

// resolve finds the function that a path leads to.
func (s *scopes) resolve(path string) (namespace.Target, error) {
	switch {
	case s.err != nil:
		return namespace.Target{}, fmt.Errorf("the namespaces of this run are gone: %w", s.err)
	case s.of == nil:
		return namespace.Target{}, fmt.Errorf("%w (the run was parked by another process, and namespaces were not given again)", namespace.ErrNoTool)
	}
	return s.of.Resolve(path)
}
