package main

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// orderGrace is how long an answer waits for those that were recorded before it while nothing
// happens. Calls that depend on nothing but answers come by themselves; a cell that went
// another way, or that waited for its clock, must not wait for ever.
const orderGrace = 2 * time.Second

// replayer is the executor of a replay. It starts no tool.
type replayer struct {
	recording *trajectory.Recording

	mu      sync.Mutex
	player  *trajectory.Player            // guarded by mu
	given   map[string]*trajectory.Answer // guarded by mu: by the id of the replayed call, until the cell has it
	order   []*trajectory.Answer          // guarded by mu: those that have not settled, as they are to
	strayed bool                          // guarded by mu: the order is not kept any more
	stuck   bool                          // guarded by mu: calls that have no end in the recording get one
	changed chan struct{}                 // guarded by mu: closed when any of this changes
}

func newReplayer(rec *trajectory.Recording) *replayer {
	p := &replayer{recording: rec, player: rec.Player(), given: map[string]*trajectory.Answer{}, changed: make(chan struct{})}
	for _, a := range rec.Answers {
		if a.InOrder() {
			p.order = append(p.order, a)
		}
	}
	slices.SortFunc(p.order, func(a, b *trajectory.Answer) int { return a.Settled - b.Settled })
	return p
}

// Call answers one call.
func (p *replayer) Call(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
	return p.Start(call)(ctx)
}

// Start takes the answer: answers are given in the order of the calls.
func (p *replayer) Start(call *supervisor.Call) func(context.Context) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.player.Take(call.Tool.ID, call.Input)
	if a == nil {
		return func(context.Context) (json.RawMessage, error) {
			return nil, errNotRecorded(call.Tool.ID, "the recording has no answer for it that is left")
		}
	}
	p.given[call.ID] = a
	p.change()
	if a.Settled == 0 {
		call.Park("its end is not in the recording")
	}
	return func(ctx context.Context) (json.RawMessage, error) {
		p.wait(ctx, a)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case a.Gap != "":
			p.refused(a)
			return nil, errNotRecorded(call.Tool.ID, a.Gap)
		case a.Failed:
			return nil, &supervisor.ToolError{Message: a.Message, Code: a.Code, Started: a.Started()}
		}
		return a.Value, nil
	}
}

// refused counts a call whose end is not in the recording, and which ends now.
func (p *replayer) refused(a *trajectory.Answer) {
	if a.Settled == 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.player.Refused(a)
	}
}

// change wakes those that wait. The caller has the lock.
func (p *replayer) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait returns when all answers that were recorded before a have reached the cell, when the
// order cannot be kept, or when the run is over. An answer that was not recorded waits until
// the run is stuck without it.
func (p *replayer) wait(ctx context.Context, a *trajectory.Answer) {
	for {
		p.mu.Lock()
		ready := p.strayed || len(p.order) == 0 || p.order[0] == a || !a.InOrder()
		var late <-chan time.Time
		if a.Settled == 0 {
			ready = p.stuck
		} else {
			late = time.After(orderGrace)
		}
		changed := p.changed
		p.mu.Unlock()
		if ready {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-late:
			p.mu.Lock()
			if p.changed == changed {
				p.strayed = true
				p.change()
			}
			p.mu.Unlock()
		}
	}
}

// parked hears that the run waits. If only calls are left whose end is not in the recording,
// they end now: the cell goes another way than it did, or the file ends before it.
func (p *replayer) parked(result *supervisor.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.given {
		if a.Settled > 0 {
			return
		}
	}
	if result.Reason == supervisor.ReasonPendingTools && len(p.given) > 0 {
		p.stuck = true
		p.change()
	}
}

// event takes the replay's own events: a result is recorded once it has its place on the way
// to the cell, so the next one cannot overtake it.
func (p *replayer) event(e trajectory.Event) error {
	if e.Kind != trajectory.ToolResult {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.given[e.CallID]
	if a == nil {
		return nil
	}
	delete(p.given, e.CallID)
	switch i := slices.Index(p.order, a); {
	case i == 0:
		p.order = p.order[1:]
	case i > 0:
		p.order = slices.Delete(p.order, i, i+1)
	}
	p.change()
	return nil
}
