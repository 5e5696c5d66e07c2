package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// errTaken is the cause when the run is not in the store any more.
var errTaken = errors.New("it was ended by another process that uses the same state directory")

// gone tells that a run was taken out of the store, by another process.
func gone(err error) bool {
	return errors.Is(err, snapshot.ErrLost) || errors.Is(err, snapshot.ErrUnknown)
}

// park stores what a dead worker left, and answers the ask. It gives how the run ended if
// it could not.
func (r *run) park(m *workerproto.Parked) *end {
	l := r.leg
	r.omitted = m.Omitted
	r.timings.Guest = float64(m.Stats.GuestMicros) / 1000
	r.yielded, r.note = l.last.yielded, l.last.note
	// Calls that begin from now on ask first; those that began before are seen by the record.
	r.journal.Store(r.s.store.Durable())
	if err := r.save(m); err != nil {
		r.journal.Store(false)
		return &end{fail: r.unparked(err, len(l.image))}
	}
	r.parked, r.known = true, true
	r.s.tel.Parked(r.snap.Bytes)
	r.s.rouse()
	if r.yielded {
		r.record(trajectory.Event{Kind: trajectory.Yield, Data: r.describe(trajectory.PartNote, "", r.note)})
	}
	took := r.timings.Snapshot // the field is the next leg's by the time the event is written
	r.record(trajectory.Event{Kind: trajectory.Park, Status: r.reason(), Millis: &took})
	r.leg = nil
	r.dispatch()
	if r.ask.exec && r.ask.ctx.Err() != nil {
		// Nobody would know its id.
		return &end{fail: r.cancelled(r.ask.ctx.Err(), "")}
	}
	r.answer(r.waiting())
	return nil
}

// save stores the snapshot of the leg, and in a durable store the record with it.
func (r *run) save(m *workerproto.Parked) error {
	l := r.leg
	now := time.Now()
	if r.timer = (time.Time{}); m.Timer != workerproto.NoTimer {
		r.timer = now.Add(time.Duration(m.Timer) * time.Millisecond)
	}
	r.expires = now.Add(r.p.Limits.SnapshotTTL)
	before := r.snap
	if r.fresh {
		r.snap.Discarded++
	}
	r.snap.Created++
	r.snap.Bytes = int64(len(l.image) + snapshot.Overhead)
	state := snapshot.Waiting
	if l.staying {
		state = snapshot.Running
	}
	var record []byte
	if r.s.store.Durable() {
		record = r.recordJSON()
	}
	err := r.s.store.Save(snapshot.Meta{
		ID: r.id, Owner: r.p.Scope.owner(), State: state, Engine: l.child.Ready.Engine,
		Created: r.began, Parked: now, Expires: r.expires, TTL: r.p.Limits.SnapshotTTL,
	}, record, l.image)
	r.timings.Snapshot += millis(time.Since(l.began))
	if err != nil {
		r.snap = before
		return err
	}
	if r.fresh = true; r.keptBytes > 0 {
		err = r.s.store.Reserve(r.id, r.keptBytes)
	}
	return err
}

// checkpoint stores the snapshot of a guest that goes on: calls that must not be repeated
// may begin now. Without one they may, too, but a run that is cut off then cannot go on.
func (r *run) checkpoint(m *workerproto.Parked) *end {
	l := r.leg
	if !m.Overflow {
		err := r.save(m)
		r.timer = time.Time{}
		switch {
		case err == nil:
		case gone(err):
			return &end{fail: r.cancelled(errTaken, "")}
		default:
			r.s.opts.Logger.Warn("a run that goes on could not be stored", "run", r.id, "error", err)
		}
	}
	l.parking, l.staying, l.image = false, false, nil
	r.feed(func() error { return nil })
	r.dispatch()
	r.consider(false)
	return nil
}

// unparked explains why a run could not be stored (SPEC 14.4).
func (r *run) unparked(err error, size int) *failure {
	held := fmt.Sprintf(". It would have held %d bytes and %d open calls%s", size, len(r.ledger.open), r.ledger.story())
	var full *snapshot.FullError
	switch {
	case errors.As(err, &full):
		r.hit("maxParked" + map[bool]string{true: "Runs", false: "Bytes"}[full.What == "runs"])
		r.s.opts.Logger.Warn("a run could not be parked", "run", r.id, "error", err)
		return limitf(SnapshotLimitExceeded, "the run had to wait and could not be parked: %s%s", r.holders(full), held)
	case gone(err):
		return r.cancelled(errTaken, "")
	}
	r.s.opts.Logger.Error("a run could not be parked", "run", r.id, "error", err)
	return hostf(InternalError, "the run had to wait and could not be parked: %v%s", err, held)
}

// holders says who holds the room that a run needs. An id opens a run that has no owner, so
// only its own owner gets it; operators have all of them in the log and in Runs.
func (r *run) holders(full *snapshot.FullError) string {
	text := fmt.Sprintf("parked runs hold %d of %d %s; the oldest:", full.Have, full.Limit, full.What)
	now := time.Now()
	for i, m := range full.Oldest {
		if i > 0 {
			text += ";"
		}
		if m.Owner == r.p.Scope.owner() {
			text += " run " + m.ID
		} else {
			text += " a run"
		}
		if m.Owner.AgentID != "" {
			text += fmt.Sprintf(" of agent %.60q", m.Owner.AgentID)
		}
		if m.Owner.SessionID != "" {
			text += fmt.Sprintf(" in session %.60q", m.Owner.SessionID)
		}
		text += fmt.Sprintf(", parked for %s", now.Sub(m.Parked).Round(time.Second))
	}
	return text
}

// expired is the text of SPEC 12.4 for a run whose time is over.
func expired(ttl time.Duration) string {
	return fmt.Sprintf("the parked run expired: nobody waited for it within snapshotTtlSeconds (%d), and it was dropped. "+
		"There is nothing to wait for any more; run the program again with exec", int(ttl.Seconds()))
}

// beginning is a call that asks whether its tool may begin.
type beginning struct {
	call *call
	done chan error
}

// beginCall says that a call's tool begins now. Where a durable store has the run, that
// is written down first, unless the tool can be called again: what may have happened once
// must never be done a second time (SPEC 14.5).
func (r *run) beginCall(c *call) error {
	// In this order: park looks at it the other way round.
	c.started.Store(true)
	err := errOver
	switch {
	case r.ctx.Err() != nil:
	case !r.journal.Load() || c.repeats:
		return nil
	default:
		b := &beginning{c, make(chan error, 1)}
		select {
		case r.begin <- b:
			select {
			case err = <-b.done:
			case <-r.over:
			}
		case <-r.ctx.Done():
		}
	}
	if err == nil {
		return nil
	}
	c.started.Store(false)
	return &ToolError{Message: fmt.Sprintf("the tool was not started: %v", err), Started: "no"}
}

// errOver is the cause of what a run that ended does not do any more.
var errOver = errors.New("the run is over")

// noteBeginning writes down that a call's tool begins.
func (r *run) noteBeginning(c *call) error {
	c.down = true
	return r.jot(logEntry{Kind: logStarted, ID: c.id, Ref: c.ref, Tool: toolIDOf(c)})
}

// noteHeld writes down that calls wait for a person: they can be made again.
func (r *run) noteHeld() {
	if !r.journal.Load() {
		return
	}
	for _, c := range r.ledger.open {
		if _, held, _ := c.wait(); held && c.down && !c.started.Load() {
			if r.jot(logEntry{Kind: logHeld, ID: c.id}) == nil {
				c.down = false
			}
		}
	}
}

// noteResult writes down the result of a call that the record calls open.
func (r *run) noteResult(res callResult) error {
	err := r.jot(logEntry{Kind: logResult, ID: res.call.id, Result: res.m})
	if err == nil {
		res.call.saved = false
	}
	return err
}

// noteResume writes down that the snapshot was handed to a worker: what that does is not
// in it.
func (r *run) noteResume() error {
	if err := r.jot(logEntry{Kind: logResumed}); err != nil {
		return err
	}
	return r.s.store.SetState(r.id, snapshot.Running)
}

// jot appends an entry to the run's log in a durable store. At the end of the run, or of
// the supervisor, nothing is written any more: calls end then because they are cut off,
// and another supervisor has to find them as they were.
func (r *run) jot(e logEntry) error {
	if !r.journal.Load() {
		return nil
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	err := r.s.store.Append(r.id, encodeJSON(e))
	var full *snapshot.FullError
	switch {
	case err == nil, errors.As(err, &full):
	case gone(err):
		r.abort(errTaken)
	default:
		r.s.storeFailed(r.id, err)
	}
	return err
}
