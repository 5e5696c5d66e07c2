package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

const (
	// grace is how long a worker may take to report after its time is up, before it is
	// killed: the soft stop keeps what the guest has said.
	grace = 150 * time.Millisecond

	// parkGrace is the same for a worker that is being parked.
	parkGrace = 350 * time.Millisecond

	// parkRate is how many bytes of guest memory a worker serialises in a second, on a
	// slow machine and if they hardly compress.
	parkRate = 64 << 20

	// socketRoom is what fits into an empty socket whether or not its other end is read.
	socketRoom = 32 << 10

	// timerSlack is what the guest gets to go on by itself after a timer of its is due.
	timerSlack = 20 * time.Millisecond
)

// margin is how long before the end of a timeout a worker is told to park, so that the
// answer is there in time. memory is what it has to look at.
func margin(timeout time.Duration, memory uint64) time.Duration {
	m := min(max(timeout/20, 10*time.Millisecond), 50*time.Millisecond)
	m += time.Duration(float64(memory) / parkRate * float64(time.Second))
	return min(m, timeout/2)
}

// floor is the time below which a wait does not resume any more: the restore would only
// run into its end.
func floor(timeout time.Duration) time.Duration {
	return min(100*time.Millisecond, timeout/4)
}

// leg is one worker's part of a run. Only the run's loop uses it.
type leg struct {
	child      *process.Child
	clock      clock
	events     chan event
	resuming   bool        // the worker has not said yet that it restored the guest
	stage      string      // what the worker said it does: "", "transform", "guest"
	credit     int         // Idle events that the worker may still send
	sent       uint64      // tool results that it has, or will have
	idle       bool        // the guest has nothing to do until a call settles or a timer is due
	last       rest        // what the last Idle said
	stopping   bool        // the time is up, and the worker was told
	parking    bool        // it was told to park
	staying    bool        // and to go on then: a checkpoint
	namespaces bool        // the worker was told that there are some
	waits      bool        // it waits for the namespaces: no guest code runs
	missed     int         // how many names the guest looked for, which there are not
	counted    bool        // what it used is known before its end
	began      time.Time   // of parking
	late       *time.Timer // when it has to be told
	recheck    *time.Timer // when a timer of the guest should have fired
	image      []byte      // what came of the snapshot
	maxImage   int64
}

// rest is what an Idle says of the guest at rest.
type rest struct {
	yielded bool
	note    string
	timer   time.Time // zero: none
	memory  uint64
}

// event is what the reader has from the worker: a message, or the end.
type event struct {
	ms  []workerproto.Message // in order; what had arrived together
	err error                 // after them
}

func newLeg(child *process.Child, a *ask) *leg {
	// An Idle is earned by the begin, by each burst and by each call; one more by a yield
	// that a timer makes.
	return &leg{child: child, clock: a.clock, events: make(chan event), credit: 2}
}

// converse talks to a ready worker until the leg is over. The worker has been killed,
// and its reader is gone, when it returns.
func (r *run) converse(ctx context.Context) *end {
	l := r.leg
	stop, reader := make(chan struct{}), make(chan struct{})
	go func() { defer close(reader); l.read(stop) }()
	defer func() {
		r.gate.shut()
		l.child.Kill(process.KilledDone) // a no-op if it was killed for a reason
		l.child.Conn.Close()
		close(stop)
		<-reader
	}()
	// Not on the loop: a worker that does not read must not stop the clock.
	if !r.parked {
		start := &workerproto.Start{
			Source: []byte(r.source), Language: r.p.Language,
			BudgetMillis:   uint32(max(1, l.clock.left().Milliseconds())),
			MemoryBytes:    uint64(r.p.Limits.MemoryBytes),
			OutputBytes:    uint64(r.p.Limits.OutputBytes),
			TruncateOutput: r.p.Limits.TruncateOutput,
			MaxPending:     uint32(r.p.Limits.PendingToolCalls + r.p.Limits.QueuedToolCalls),
			Namespaces:     r.hasNamespaces(),
		}
		l.namespaces = start.Namespaces
		first := append(catalogFrames(r.p.Catalog), start)
		small := len(first) == 1 && len(r.source) < socketRoom
		r.source, r.p.Code, r.p.Command = "", "", "" // a parked run has no use for them
		r.gate.open(l.child.Conn, nil)
		send := func() { _ = writeAll(l.child.Conn, first) } // the reader learns of a failure
		if small {
			send()
		} else {
			r.s.wg.Go(send)
		}
	} else if e := r.resume(); e != nil {
		return e
	}
	e := r.loop(ctx)
	if e.fail == nil && e.parked == nil {
		r.usage, l.counted = l.child.Usage()
	}
	return e
}

// resume sends the worker what it needs to go on. It gives nil if that is under way.
func (r *run) resume() *end {
	l := r.leg
	image, err := r.s.store.Image(r.id, l.child.Ready.Engine)
	if err == nil {
		err = r.noteResume()
	}
	if err != nil {
		return r.unrestored(err)
	}
	l.resuming, l.credit = true, l.credit+len(r.ledger.open)+len(r.kept)
	resume := &workerproto.Resume{
		BudgetMillis:   uint32(max(1, l.clock.left().Milliseconds())),
		MemoryBytes:    uint64(r.p.Limits.MemoryBytes),
		OutputBytes:    uint64(r.p.Limits.OutputBytes),
		TruncateOutput: r.p.Limits.TruncateOutput,
		MaxPending:     uint32(r.p.Limits.PendingToolCalls + r.p.Limits.QueuedToolCalls),
		ElapsedMillis:  uint64(max(0, time.Since(r.began).Milliseconds())),
	}
	r.snap.Restored++
	r.fresh = false
	r.parked, r.yielded, r.note, r.timer = false, false, "", time.Time{}
	r.record(trajectory.Event{Kind: trajectory.Resume, CallID: r.ask.callID})
	conn, first := l.child.Conn, append(catalogFrames(r.p.Catalog), resume)
	r.feed(func() error {
		if err := writeAll(conn, first); err != nil {
			return err
		}
		for at := 0; at == 0 || at < len(image); at += workerproto.MaxPart {
			part := image[at:min(at+workerproto.MaxPart, len(image))]
			if err := conn.Write(&workerproto.ResumePart{Data: part, Last: at+len(part) == len(image)}); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// writeAll writes messages, in order.
func writeAll(conn *workerproto.Conn, ms []workerproto.Message) error {
	for _, m := range ms {
		if err := conn.Write(m); err != nil {
			return err
		}
	}
	return nil
}

// feed opens the way to the worker. First it gets what first writes, then the results that
// were kept, in order, then those that come.
func (r *run) feed(first func() error) {
	l := r.leg
	kept := r.kept
	r.kept, r.keptBytes = nil, 0
	if l.sent += uint64(len(kept)); len(kept) > 0 {
		l.idle = false
	}
	conn, turn := l.child.Conn, make(chan struct{})
	r.gate.open(conn, turn)
	r.s.wg.Go(func() { // not on the loop; the reader learns of a failure
		defer close(turn)
		err := first()
		for _, res := range kept {
			if err == nil {
				err = r.send(conn, res)
			}
		}
	})
}

// unrestored explains a snapshot that cannot be used. One that only cannot be read now
// stays.
func (r *run) unrestored(err error) *end {
	switch {
	case r.ctx.Err() != nil: // nothing is written any more, and the run stays as it is in the store
		return &end{fail: r.cancelled(context.Cause(r.ctx), "")}
	case errors.Is(err, snapshot.ErrEngine):
		return &end{fail: hostf(SnapshotRestoreFailed, "the parked run was made by another version of the worker's engine and cannot go on in this one; run the program again with exec%s", r.ledger.story())}
	case errors.Is(err, snapshot.ErrBroken):
		return &end{fail: hostf(SnapshotRestoreFailed, "the snapshot of the parked run is damaged, and nothing of it was used (%v); run the program again with exec%s", err, r.ledger.story())}
	case gone(err):
		return &end{fail: r.cancelled(errTaken, "")}
	}
	return &end{fail: hostf(InternalError, "the store of parked runs failed: %v", err), still: true}
}

// loop takes what happens, one thing at a time.
func (r *run) loop(ctx context.Context) *end {
	l := r.leg
	var kill *time.Timer
	l.late = time.NewTimer(l.clock.left() - margin(l.clock.timeout(), 0))
	l.recheck = time.NewTimer(time.Hour)
	l.recheck.Stop()
	defer func() { stopTimers(l.late, l.recheck, kill) }()
	done := ctx.Done()
	var killC <-chan time.Time
	for {
		select {
		case e := <-l.events:
			for _, m := range e.ms {
				last, err := r.handle(ctx, m)
				if err != nil {
					return &end{fail: r.violated(err)}
				}
				if last != nil {
					return last
				}
			}
			if e.err != nil {
				return &end{fail: r.died(e.err)}
			}
		case res := <-r.ledger.results:
			r.settle(res)
		case id := <-r.written:
			r.ledger.free(id)
			r.dispatch()
		case b := <-r.begin:
			b.done <- r.noteBeginning(b.call)
		case <-r.nudge:
			r.noteHeld()
			r.consider(false)
		case c := <-r.calm:
			r.calming = append(r.calming, c)
		case b := <-r.scopes.built:
			if last := r.furnish(ctx, b); last != nil {
				return last
			}
		case <-l.late.C:
			r.consider(true)
		case <-l.recheck.C:
			r.consider(r.ledger.stuck())
		case <-done:
			done = nil
			why := context.Cause(ctx)
			if !errors.Is(why, errDeadline) {
				l.child.Kill(process.KilledAbort)
				return &end{fail: r.cancelled(why, "")}
			}
			r.consider(true)
			wait := parkGrace
			if !l.parking {
				if l.idle {
					l.child.Kill(process.KilledTimeout)
					return &end{fail: r.cancelled(why, "")}
				}
				// Stage one: the worker stops the guest and reports what it has said. It has the
				// same deadline for guest code, where it reads nothing; the command is for one
				// that comes to rest just now. Stage two is the kill.
				l.stopping, wait = true, grace
				r.s.wg.Go(func() { _ = l.child.Conn.Write(&workerproto.Interrupt{Reason: "timeout"}) })
			}
			kill = time.NewTimer(wait)
			killC = kill.C
		case <-killC:
			l.child.Kill(process.KilledTimeout)
			doing := ""
			if l.parking {
				doing = "being parked"
			}
			return &end{fail: r.cancelled(errDeadline, doing)}
		}
	}
}

// consider tells the worker to park if that is what is left to do (SPEC 12.1): the guest
// yielded; or it waits for calls, and late says that they have had their time, or all of
// them were parked by their executors and no timer will fire before.
func (r *run) consider(late bool) {
	l := r.leg
	if l.parking || l.stopping || !l.idle || l.resuming {
		return
	}
	if !l.last.yielded {
		if r.ledger.quiet() {
			return // timers alone: the guest's own time
		}
		late = late || l.clock.left() <= margin(l.clock.timeout(), l.last.memory)
		if !late && !r.ledger.stuck() {
			return
		}
		if in := time.Until(l.last.timer); !late && !l.last.timer.IsZero() && in+timerSlack < l.clock.left()-margin(l.clock.timeout(), l.last.memory) {
			l.recheck.Reset(in + timerSlack)
			return
		}
	}
	r.serialise(false)
}

// serialise tells the worker to make a snapshot, and to go on then if it is to stay.
func (r *run) serialise(stay bool) {
	l := r.leg
	l.parking, l.staying, l.began = true, stay, time.Now()
	l.maxImage = r.p.Limits.SnapshotBytes - int64(snapshot.Overhead) - r.keptBytes
	empty := r.gate.shut()
	conn, limit := l.child.Conn, uint64(max(0, l.maxImage))
	r.s.wg.Go(func() {
		<-empty // results that are being written come first, and count
		_ = conn.Write(&workerproto.Park{MaxBytes: limit, Stay: stay})
	})
}

// rested notes what an Idle says.
func (r *run) rested(m *workerproto.Idle) error {
	l := r.leg
	if l.credit--; r.cell == nil || l.resuming || l.credit < 0 {
		return errors.New("idle without anything having happened")
	}
	r.settleAll() // a result is posted before the worker has it
	if m.Settled > l.sent {
		return fmt.Errorf("idle after %d tool results, and only %d were sent", m.Settled, l.sent)
	}
	l.idle = m.Settled == l.sent // else it has something to do, and says so again
	l.last = rest{yielded: m.Yielded, note: m.Note, memory: min(m.MemoryBytes, 2<<30)}
	if m.Timer != workerproto.NoTimer {
		l.last.timer = time.Now().Add(time.Duration(m.Timer) * time.Millisecond)
	}
	if m.MemoryBytes > parkRate/10 {
		l.late.Reset(l.clock.left() - margin(l.clock.timeout(), l.last.memory))
	}
	return nil
}

// maxBatch bounds the events that are handed over together.
const maxBatch = 64

// read hands the worker's events to the loop, in order, until it is dead or stop closes.
func (l *leg) read(stop <-chan struct{}) {
	for {
		var e event
		for {
			m, err := l.child.Conn.ReadEvent()
			if err != nil {
				e.err = err
				break
			}
			if e.ms = append(e.ms, m); len(e.ms) == maxBatch || !l.child.Conn.Buffered() {
				break
			}
		}
		select {
		case l.events <- e:
		case <-stop:
			return
		}
		if e.err != nil {
			return
		}
	}
}

// gate is the way of results to the worker. While it is shut, the run keeps them.
type gate struct {
	mu      sync.Mutex
	conn    *workerproto.Conn // nil: shut
	writers int
	empty   chan struct{} // closed when it is shut and nobody writes
	turn    chan struct{} // closed when what must be written first was
}

// open lets results through, behind what is written until turn is closed. A nil turn is
// nobody's.
func (g *gate) open(conn *workerproto.Conn, turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn, g.empty, g.turn = conn, make(chan struct{}), turn
}

// enter gives the worker's channel to somebody who will write to it, or nil. Who was let
// in must leave, and waits for turn, if that is not nil, before it writes.
func (g *gate) enter() (conn *workerproto.Conn, turn <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		return nil, nil
	}
	g.writers++
	return g.conn, g.turn
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writers--; g.writers == 0 && g.conn == nil {
		close(g.empty)
	}
}

// shut keeps results from now on. The channel that it gives is closed when nobody writes
// any more. It may be called twice.
func (g *gate) shut() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		return g.empty
	}
	g.conn = nil
	if g.writers == 0 {
		close(g.empty)
	}
	return g.empty
}
