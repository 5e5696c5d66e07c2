package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// WaitRequest says which run to go on with: the input of [Supervisor.Wait].
type WaitRequest struct {
	// RunID is that of a result whose status is [Waiting].
	RunID string
	// Scope is the caller's identity. What the run's owner had of AgentID, SessionID,
	// SessionKey and AgentRunID must be the same here.
	Scope Scope
	// Executor, Output and Trajectory are for a run that another process parked. One that
	// this supervisor began keeps its own.
	Executor   Executor
	Output     func(Item)
	Trajectory *trajectory.Recorder
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
			s.opts.Logger.Error("the store of parked runs failed", "error", err)
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
		s.opts.Logger.Error("the store of parked runs failed", "run", meta.ID, "error", err)
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
	if err := s.store.Delete(meta.ID); err != nil {
		s.opts.Logger.Error("the store of parked runs failed", "run", meta.ID, "error", err)
	}
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
		return refuseWait(hostf(Aborted, "%v; the run is kept, and a supervisor with the same state directory can wait for it", errClosed))
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
		return r.stop(ctx)
	}
	meta, ok := s.find(runID, scope)
	if !ok {
		return ErrNoRun
	}
	return s.abortKept(meta)
}

// errAborted is the cause of an abort by the owner.
var errAborted = errors.New("its owner or an operator ended it")

// stop aborts a run and waits for its end.
func (r *run) stop(ctx context.Context) error {
	r.abort(errAborted)
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
		errs = append(errs, r.stop(ctx))
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

// RunInfo is what [Supervisor.Runs] says of a run.
type RunInfo struct {
	ID      string         `json:"runId"`
	State   snapshot.State `json:"state"` // SPEC 14.1
	Scope   snapshot.Owner `json:"scope"`
	Created time.Time      `json:"created"`
	Parked  time.Time      `json:"parked,omitzero"`  // since when it is parked, or over
	Expires time.Time      `json:"expires,omitzero"` // when it is dropped, or forgotten
	Bytes   int64          `json:"bytes"`            // that are kept of it
	Holder  int            `json:"holder,omitempty"` // pid of another process that has it
	Broken  bool           `json:"broken,omitempty"` // it cannot be restored
}

// Runs lists the runs of this supervisor and of its store, whoever owns them, the oldest
// first: for operators, not for models.
func (s *Supervisor) Runs() ([]RunInfo, error) {
	kept, err := s.store.List()
	if err != nil {
		return nil, err
	}
	infos := []RunInfo{}
	at := map[string]int{}
	for _, m := range kept {
		at[m.ID] = len(infos)
		info := RunInfo{ID: m.ID, State: m.State, Scope: m.Owner, Created: m.Created, Parked: m.Parked, Expires: m.Expires, Bytes: m.Bytes, Broken: m.Broken}
		if m.Broken {
			info.State = snapshot.Failed
		}
		if m.Held && s.run(m.ID) == nil {
			info.Holder = m.Holder
		}
		infos = append(infos, info)
	}
	for _, r := range s.all() {
		i, ok := at[r.id]
		if !ok {
			infos = append(infos, RunInfo{ID: r.id, State: snapshot.Running, Scope: r.p.Scope.owner(), Created: r.began})
			continue
		}
		if r.busy.Load() {
			infos[i].State = snapshot.Running
		}
	}
	slices.SortStableFunc(infos, func(a, b RunInfo) int { return a.Created.Compare(b.Created) })
	return infos, nil
}

// RunDetail is what [Supervisor.Inspect] says of a run.
type RunDetail struct {
	RunInfo
	Reason           string        `json:"reason,omitempty"`
	Note             string        `json:"note,omitempty"`
	PendingToolCalls []PendingCall `json:"pendingToolCalls,omitempty"`
	Result           *Result       `json:"result,omitempty"` // of a run that is over
}

// Inspect says what is kept of a run, whoever owns it: for operators. [ErrNoRun] if there
// is no such run. What a run waits for is known only of runs in a state directory, as of
// when they were parked.
func (s *Supervisor) Inspect(id string) (*RunDetail, error) {
	runs, err := s.Runs()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(runs, func(r RunInfo) bool { return r.ID == id })
	if i < 0 {
		return nil, ErrNoRun
	}
	d := &RunDetail{RunInfo: runs[i]}
	saved, err := s.store.Load(id)
	switch {
	case errors.Is(err, snapshot.ErrBroken):
		d.Broken = true
		return d, nil
	case errors.Is(err, snapshot.ErrUnknown): // it runs for the first time
		return d, nil
	case err != nil:
		return nil, err
	case len(saved.Record) == 0:
		return d, nil
	case saved.Meta.State.Terminal():
		d.Result = s.again(id)
		return d, nil
	}
	var rec record
	if err := json.Unmarshal(saved.Record, &rec); err != nil {
		d.Broken = true
		return d, nil
	}
	d.Reason = ReasonPendingTools
	if rec.Yielded {
		d.Reason, d.Note = ReasonYield, rec.Note
	}
	d.PendingToolCalls = rec.pending(id, saved.Log)
	return d, nil
}

// Quiesce returns when no parked run has a nested call under way that will end by
// itself: all have settled, or wait for a person or for something long (see [Call.Park]).
// A program that is about to end calls it so that no tool is cut off at its work.
func (s *Supervisor) Quiesce(ctx context.Context) error {
	for _, r := range s.all() {
		calm := make(chan struct{})
		select {
		case r.calm <- calm:
		case <-r.over:
			continue
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case <-calm:
		case <-r.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// run gives a run that lives here, or nil.
func (s *Supervisor) run(id string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}

// all gives the runs that live here.
func (s *Supervisor) all() []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := make([]*run, 0, len(s.runs))
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	return runs
}

func (s *Supervisor) add(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[r.id] = r
}

func (s *Supervisor) forget(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r.id)
}
