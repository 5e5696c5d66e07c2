package serve

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// partBytes is the size of the parts of a snapshot: what the socket holds at once, more
// or less, and a buffer that the channel keeps for the next one.
const partBytes = 256 << 10

// errSnapshotLimit says that a snapshot is larger than it may be.
var errSnapshotLimit = errors.New("the snapshot is too large")

// park sends the run's snapshot and gives the event behind it, which is the leg's last unless
// the guest is to stay.
func (l *loop) park(m *workerproto.Park) workerproto.Message {
	at, hasTimer := l.guest.NextTimer()
	w := &partWriter{conn: l.conn, left: m.MaxBytes}
	err := l.writeSnapshot(w)
	if err == nil {
		err = w.flush()
	}
	stats := l.stats() // after the garbage is gone
	overflow := errors.Is(err, errSnapshotLimit)
	switch {
	case overflow && m.Stay: // the parts that were sent are of no use, and the guest goes on
	case overflow:
		return l.fail("snapshot_limit_exceeded", "limit", fmt.Sprintf("the run cannot be suspended: its snapshot has more than maxSnapshotBytes (%d) bytes; "+
			"the guest holds %d bytes of values in %d bytes of memory. Keep less while the cell waits, for example a summary or a slice, "+
			"and set variables to null that are not needed any more.", m.MaxBytes, stats.HeapBytes, l.guest.VM().MemorySize()))
	case err != nil:
		return l.fail("internal_error", "host", fmt.Sprintf("suspending the run: %v", err))
	}
	return &workerproto.Parked{Timer: l.host.until(at, hasTimer), Omitted: l.host.omitted, Overflow: overflow, Stats: stats}
}

// partWriter sends a snapshot in parts.
type partWriter struct {
	conn *workerproto.Conn
	left uint64 // bytes that may still be sent
	data []byte // the next part
}

func (w *partWriter) Write(b []byte) (int, error) {
	if uint64(len(b)) > w.left {
		return 0, errSnapshotLimit
	}
	w.left -= uint64(len(b))
	for rest := b; len(rest) > 0; {
		n := min(len(rest), partBytes-len(w.data))
		w.data = append(w.data, rest[:n]...)
		rest = rest[n:]
		if len(w.data) == partBytes {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

func (w *partWriter) flush() error {
	if len(w.data) == 0 {
		return nil
	}
	err := w.conn.Write(&workerproto.ParkPart{Data: w.data})
	w.data = w.data[:0]
	return err
}

// resume goes on with a parked run and gives the last event.
func (l *loop) resume(m *workerproto.Resume) workerproto.Message {
	began := time.Now()
	l.host.begin(l.conn, m.OutputBytes, m.TruncateOutput, m.MaxPending)
	l.begin(m.BudgetMillis)
	l.parser.Close() // a run is parsed once
	parts := &partReader{conn: l.conn}
	s, err := l.readSnapshot(parts, m.MemoryBytes)
	if err != nil {
		return l.notRestored(parts.err, err)
	}
	l.host.restore(s, m.ElapsedMillis)
	l.host.write(&workerproto.Resumed{RestoreMicros: uint64(time.Since(began).Microseconds())})
	if err := l.timed(l.guest.Resume); err != nil {
		return l.stopped(err)
	}
	l.news = true
	return l.drain()
}

// notRestored explains why a run cannot go on: the channel's error comes first, what the
// snapshot's reader made of it second.
func (l *loop) notRestored(channel, err error) workerproto.Message {
	switch {
	case errors.Is(channel, errInterrupted):
		return l.fail("timeout", "limit", "the time ran out while the run was being restored")
	case errors.Is(channel, errOutOfTurn):
		return l.fail("internal_error", "host", channel.Error())
	case channel != nil:
		l.exit(0) // nobody is left to work for
	case errors.Is(err, engine.ErrOutOfMemory):
		return l.fail("memory_limit_exceeded", "limit", fmt.Sprintf("the suspended run needs more memory than its limit allows: %v", err))
	}
	return l.fail("snapshot_restore_failed", "host", fmt.Sprintf("the snapshot cannot be restored: %v", err))
}

var (
	errInterrupted = errors.New("interrupted while a snapshot was read")
	errOutOfTurn   = errors.New("a command out of turn")
)

// partReader reads a snapshot that comes in parts.
type partReader struct {
	conn *workerproto.Conn
	data []byte // what is left of the part at hand
	last bool
	err  error // of the channel: it is not the snapshot's fault
}

func (r *partReader) Read(b []byte) (int, error) {
	for len(r.data) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.last {
			return 0, io.EOF
		}
		r.next()
	}
	n := copy(b, r.data)
	r.data = r.data[n:]
	return n, nil
}

func (r *partReader) next() {
	m, err := r.conn.ReadCommand()
	if err != nil {
		r.err = fmt.Errorf("reading the next part: %w", err)
		return
	}
	switch m := m.(type) {
	case *workerproto.ResumePart:
		r.data, r.last = m.Data, m.Last
	case *workerproto.Interrupt:
		r.err = errInterrupted
	default:
		r.err = fmt.Errorf("%w: %s inside of a snapshot", errOutOfTurn, m.Type())
	}
}

// save is what the host knows of the run.
func (h *host) save() *state {
	s := &state{Elapsed: h.Now(), Used: h.budget.Used, Omitted: h.omitted, Full: h.full, Sent: h.sent, Calls: []openCall{}}
	for _, wire := range slices.Sorted(maps.Keys(h.wire)) {
		id := h.wire[wire]
		s.Calls = append(s.Calls, openCall{wire, id, h.waiting[id]})
	}
	return s
}

// restore puts in place what save gave. The clock goes on as if the run had never been
// parked, and never back.
func (h *host) restore(s *state, elapsedMillis uint64) {
	h.before = max(s.Elapsed, float64(elapsedMillis))
	h.budget.Used, h.omitted, h.full, h.sent = s.Used, s.Omitted, s.Full, s.Sent
	for _, c := range s.Calls {
		h.wire[c.Wire] = c.Guest
		h.waiting[c.Guest] = c.Bytes
		h.bytes += c.Bytes
	}
}

// until gives the milliseconds until a timer is due, as messages show them.
func (h *host) until(at float64, hasTimer bool) uint32 {
	if !hasTimer {
		return workerproto.NoTimer
	}
	return uint32(min(max(0, math.Ceil(at-h.Now())), workerproto.NoTimer-1))
}
