package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/openclaw/codemode-supervisor/snapshot"
)

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
