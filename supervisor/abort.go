package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openclaw/codemode-supervisor/snapshot"
)

// ErrNoRun is the error of a run that does not exist or belongs to somebody else.
var ErrNoRun = errors.New("supervisor: no such run")

// Abort ends a run, running or parked, and returns when it is over: its worker is dead,
// its nested calls are cancelled, and its snapshot is gone (SPEC 14.2). A run that is over
// already is no error; [ErrNoRun] is.
func (s *Supervisor) Abort(ctx context.Context, runID string, scope Scope) error {
	if !s.enter() {
		return errClosed
	}
	defer s.wg.Done()
	if r := s.run(runID); r != nil {
		if !r.p.Scope.owner().Allows(scope.owner()) {
			return ErrNoRun
		}
		return r.stop(ctx, errAborted)
	}
	meta, ok := s.find(runID, scope)
	if !ok {
		return ErrNoRun
	}
	return s.abortKept(meta)
}

// Detach leaves a run to the state directory, as Close leaves all of them (SPEC 14.5), and
// returns when nothing of it is left here: its executor, hooks and listeners are not called any
// more, and nested calls that are at work are cut off. The next [Supervisor.Wait], here or in
// another process, brings new ones: calls that were waiting for an approval are asked
// again, and so on. A run that the store does not have ends as [Aborted]: one that was never
// parked, or any if there is no state directory. A run that is over is no error;
// [ErrNoRun] is.
func (s *Supervisor) Detach(ctx context.Context, runID string, scope Scope) error {
	if !s.enter() {
		return errClosed
	}
	defer s.wg.Done()
	r := s.run(runID)
	switch {
	case r == nil:
		if _, ok := s.find(runID, scope); !ok {
			return ErrNoRun
		}
		return nil
	case !r.p.Scope.owner().Allows(scope.owner()):
		return ErrNoRun
	}
	return r.stop(ctx, errDetached)
}

// errDetached is the cause of Detach.
var errDetached = errors.New("who embeds the supervisor let go of it")

// errAborted is the cause of an abort by the owner.
var errAborted = errors.New("its owner or an operator ended it")

// stop aborts a run and waits for its end.
func (r *run) stop(ctx context.Context, cause error) error {
	r.abort(cause)
	select {
	case <-r.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abortKept ends a run that lives nowhere but in the store, or in another process, which
// then learns of it.
func (s *Supervisor) abortKept(meta snapshot.Meta) error {
	if meta.Broken {
		return s.store.Delete(meta.ID)
	}
	if meta.State.Terminal() {
		return nil
	}
	res := refuseWait(hostf(Aborted, "the run was aborted: %v. There is nothing to wait for any more", errAborted))
	ttl := max(meta.TTL, time.Minute)
	now := time.Now()
	end := snapshot.Meta{ID: meta.ID, Owner: meta.Owner, State: snapshot.Aborted, Created: meta.Created, Parked: now, Expires: now.Add(ttl)}
	if err := s.store.Save(end, res.JSON(), nil); err != nil {
		return fmt.Errorf("aborting run %s: %w", meta.ID, err)
	}
	s.rouse()
	return nil
}

// AbortScope ends all runs whose owner has every identity that scope has: those of a
// session, an agent, an agent run, in this process or in its state directory. It returns
// when they are over, and gives how many there were; another process that has one ends it
// within a second or so. A scope without any identity matches nothing.
func (s *Supervisor) AbortScope(ctx context.Context, scope Scope) (int, error) {
	if !s.enter() {
		return 0, errClosed
	}
	defer s.wg.Done()
	live := map[string]*run{}
	for _, r := range s.all() {
		if r.p.Scope.owner().Within(scope.owner()) {
			r.abort(errAborted)
			live[r.id] = r
		}
	}
	var errs []error
	for _, r := range live {
		errs = append(errs, r.stop(ctx, errAborted))
	}
	n := len(live)
	kept, err := s.store.List()
	errs = append(errs, err)
	for _, meta := range kept {
		if meta.Broken || meta.State.Terminal() || live[meta.ID] != nil || !meta.Owner.Within(scope.owner()) {
			continue
		}
		errs = append(errs, s.abortKept(meta))
		n++
	}
	return n, errors.Join(errs...)
}
