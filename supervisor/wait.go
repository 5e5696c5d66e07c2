package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/telemetry"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// WaitRequest says which run to go on with: the input of [Supervisor.Wait].
type WaitRequest struct {
	// RunID is that of a result whose status is [Waiting].
	RunID string
	// Scope is the caller's identity. What the run's owner had of AgentID, SessionID,
	// SessionKey and AgentRunID must be the same here.
	Scope Scope
	// CallID is the id of the wait call that the model made, for the trajectory.
	CallID string
	// The others are for a run that another process parked. One that
	// this supervisor began keeps its own.
	Executor        Executor
	Hooks           Hooks
	Namespaces      *namespace.Registry
	NamespaceConfig json.RawMessage
	Output          func(Item)
	Update          func(Update)
	Trajectory      *trajectory.Recorder
}

// errNothing is what Wait and Abort say of ids that name no run of the caller's.
const errNothing = "there is no run to wait for under this id: wait takes the runId of a result whose status is \"waiting\", once for each such result, from the session that got it. " +
	"Do not call wait with this id again; if the result is still needed, run the program again with exec"

// Wait goes on with a parked run and gives its next result, which is never nil (SPEC 12).
// It waits for a nested call to settle, resumes the cell in a fresh worker, and answers
// within the run's timeout: with the end, or with [Waiting] again. A run that is over
// gives the result that it ended with again, until its snapshotTtlSeconds are over.
//
// ctx ends the wait and not the run, which can be waited for again; [Supervisor.Abort]
// ends that. At most one wait on a run goes on at a time; the second one fails.
func (s *Supervisor) Wait(ctx context.Context, w WaitRequest) *Result {
	if !s.enter() {
		return refuseWait(hostf(Aborted, "%v", errClosed))
	}
	defer s.wg.Done()
	op := s.tel.Wait(ctx)
	res := s.wait(ctx, w, op)
	endOp(op, res)
	return res
}

func (s *Supervisor) wait(ctx context.Context, w WaitRequest, op *telemetry.Op) *Result {
	if ctx.Err() != nil {
		return givenUp(ctx)
	}
	meta, ok := s.find(w.RunID, w.Scope)
	if !ok {
		return refuseWait(inputf(InvalidInput, "%s", errNothing))
	}
	r, res := s.reach(meta, w)
	if res != nil {
		return res
	}
	if !r.busy.CompareAndSwap(false, true) {
		return refuseWait(inputf(InvalidInput, "the run is at work: another wait on it goes on, or one that was given up has not come to its end. Use the result of that one, or wait again in a while"))
	}
	a := newAsk(ctx, r.p.Limits.Timeout, false)
	a.callID = w.CallID
	a.trace(op)
	op.Of(r.id, r.span)
	select {
	case r.asks <- a:
	case <-r.over:
		return s.again(meta.ID)
	case <-ctx.Done():
		r.busy.Store(false)
		return givenUp(ctx)
	}
	select {
	case res = <-a.reply:
		r.busy.Store(false)
	case <-ctx.Done():
		if !a.taken.CompareAndSwap(false, true) {
			res = <-a.reply
			r.busy.Store(false)
			break
		}
		s.wg.Go(func() { // until then another wait would find it at work
			<-a.reply
			r.busy.Store(false)
		})
		return givenUp(ctx)
	}
	if res == nil {
		return givenUp(ctx)
	}
	if r.emitter != nil {
		r.emitter.flush()
	}
	return res
}

// givenUp is the result of a wait whose caller went away.
func givenUp(ctx context.Context) *Result {
	return refuseWait(hostf(Aborted, "the wait was given up: %v; the run goes on and can be waited for again", context.Cause(ctx)))
}

func newAsk(ctx context.Context, timeout time.Duration, exec bool) *ask {
	return &ask{ctx: ctx, exec: exec, clock: newClock(timeout), reply: make(chan *Result, 1)}
}

// refuseWait is the result of a wait that touched no run.
func refuseWait(f *failure) *Result {
	res := refuse(f)
	res.Telemetry.Counts.Wait = 1
	return res
}

// find gives what the store has of a run that the caller may touch. An unknown run and a
// foreign one cost the same (SPEC 12.4).
func (s *Supervisor) find(id string, caller Scope) (snapshot.Meta, bool) {
	meta, err := s.store.Find(id)
	broken := errors.Is(err, snapshot.ErrBroken) // nobody can tell whose it is; its id is a secret
	if err != nil && !broken {
		meta.Owner = snapshot.Owner{AgentID: "nobody"}
		if !errors.Is(err, snapshot.ErrUnknown) {
			s.storeFailed(id, err)
		}
	}
	allowed := meta.Owner.Allows(caller.owner())
	if broken {
		meta.ID, meta.Broken = id, true
	}
	return meta, err == nil && allowed || broken
}

// owner is the part of a scope that a run belongs to.
func (s Scope) owner() snapshot.Owner {
	return snapshot.Owner{AgentID: s.AgentID, SessionID: s.SessionID, SessionKey: s.SessionKey, AgentRunID: s.AgentRunID}
}

// reach gives a run that lives, here or from now on, or the result of one that does not.
func (s *Supervisor) reach(meta snapshot.Meta, w WaitRequest) (*run, *Result) {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	if r := s.run(meta.ID); r != nil {
		return r, nil
	}
	if meta.State.Terminal() && !meta.Broken {
		return nil, s.again(meta.ID)
	}
	saved, err := s.store.Claim(meta.ID)
	var held *snapshot.HeldError
	switch {
	case errors.As(err, &held):
		return nil, refuseWait(inputf(InvalidInput, "%v; wait there, or end that process first", err))
	case errors.Is(err, snapshot.ErrUnknown):
		return nil, refuseWait(inputf(InvalidInput, "%s", errNothing))
	case errors.Is(err, snapshot.ErrBroken):
		return nil, s.bury(meta, err)
	case err != nil:
		s.storeFailed(meta.ID, err)
		return nil, refuseWait(hostf(InternalError, "the store of parked runs failed: %v", err))
	case saved.Meta.State.Terminal():
		return nil, s.again(meta.ID)
	}
	r, fail, err := s.adopt(saved, w)
	if err != nil {
		return nil, s.bury(saved.Meta, err)
	}
	if fail == nil && !time.Now().Before(saved.Meta.Expires) {
		r.hit("snapshotTtlSeconds")
		fail = limitf(SnapshotExpired, "%s%s", expired(r.p.Limits.SnapshotTTL), r.ledger.story())
	}
	s.add(r)
	s.wg.Go(func() {
		if fail != nil {
			r.finish(&end{fail: fail})
			return
		}
		r.live(nil)
	})
	return r, nil
}

// bury ends a run that cannot be opened.
func (s *Supervisor) bury(meta snapshot.Meta, err error) *Result {
	res := refuseWait(hostf(SnapshotRestoreFailed, "what was kept of the parked run is damaged, and nothing of it was used (%v); run the program again with exec", err))
	s.opts.Logger.Error("a parked run cannot be restored", "run", meta.ID, "error", err)
	s.storeFailed(meta.ID, s.store.Delete(meta.ID))
	return res
}

// keepResult keeps a run's last result in place of its snapshot, for an owner who asks
// again (SPEC 12.5).
func (s *Supervisor) keepResult(r *run, res *Result) {
	state := snapshot.State(res.Status)
	switch res.Code {
	case SnapshotExpired:
		state = snapshot.Expired
	case Aborted:
		state = snapshot.Aborted
	}
	now := time.Now()
	meta := snapshot.Meta{
		ID: r.id, Owner: r.p.Scope.owner(), State: state, Created: r.began, Parked: now, Expires: now.Add(r.p.Limits.SnapshotTTL),
	}
	if err := s.store.Save(meta, res.JSON(), nil); err != nil && !gone(err) {
		s.opts.Logger.Error("the result of a run could not be kept", "run", r.id, "error", err)
		_ = s.store.Delete(r.id)
	}
	s.rouse()
}

// again gives the result of a run that is over.
func (s *Supervisor) again(id string) *Result {
	saved, err := s.store.Load(id)
	switch {
	case errors.Is(err, snapshot.ErrUnknown):
		return refuseWait(inputf(InvalidInput, "%s", errNothing))
	case err == nil && len(saved.Record) == 0 && saved.Meta.State == snapshot.Expired:
		return refuseWait(limitf(SnapshotExpired, "%s", expired(saved.Meta.TTL)))
	case err == nil && !saved.Meta.State.Terminal(): // it was left to the durable store
		return refuseWait(hostf(Aborted, "the run was cut off (%v, or it was detached) and is kept: wait for it again, with a supervisor of the same state directory", errClosed))
	}
	res := new(Result)
	if err == nil {
		err = json.Unmarshal(saved.Record, res)
	}
	if err != nil {
		return refuseWait(hostf(SnapshotRestoreFailed, "the result of the run is damaged: %v", err))
	}
	res.RunID = id
	return res
}
