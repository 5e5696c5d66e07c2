package snapshot

import (
	"errors"
	"fmt"
	"time"
)

// State is where a run is in its life (SPEC 14.1).
type State string

const (
	Running   State = "running"
	Waiting   State = "waiting"
	Completed State = "completed"
	Failed    State = "failed"
	Expired   State = "expired"
	Aborted   State = "aborted"
)

// Terminal tells whether nothing comes after s.
func (s State) Terminal() bool {
	switch s {
	case Completed, Failed, Expired, Aborted:
		return true
	}
	return false
}

func (s State) valid() bool { return s == Running || s == Waiting || s.Terminal() }

// Meta is what can be known about a kept run without opening it.
type Meta struct {
	ID      string        `json:"id"`               // 1 to 64 of [A-Za-z0-9_-]
	Owner   Owner         `json:"owner"`            // UTF-8
	State   State         `json:"state"`            // where the run was when it was saved
	Engine  string        `json:"engine,omitempty"` // of the image: SHA-256 in hex, in lower case
	Created time.Time     `json:"created"`          // when the run began
	Parked  time.Time     `json:"parked"`           // when this was saved
	Expires time.Time     `json:"expires"`          // when it is dropped; zero: not by time
	TTL     time.Duration `json:"ttl"`              // how long its tombstone stays after it expired; 0: there is none

	// The store fills in the rest; Save does not look at it.

	Bytes  int64 `json:"bytes"`            // what is kept of it, sealed: image, record, log
	Held   bool  `json:"held,omitempty"`   // a living process has it
	Holder int   `json:"holder,omitempty"` // that process's pid; 0: nobody, or it cannot be told
	Broken bool  `json:"broken,omitempty"` // what stands here was not written with our key: none of it can be believed
}

// terminal tells whether a run counts as over. A broken one does: nobody can go on with it.
func (m Meta) terminal() bool { return m.Broken || m.State.Terminal() }

// Saved is a run as it was kept, opened.
type Saved struct {
	Meta   Meta
	Record []byte
	Log    [][]byte // in the order of the Appends
}

// A Store keeps runs that wait, and for a while what became of runs that are over (SPEC
// 12.5, 14.5). It has no clock: every time comes from the caller. It may be used by any
// number of goroutines. Who made it closes it.
//
// A run that is not over is held by the store that saved or claimed it, until it saves it
// as over, deletes it, closes, or its process ends. Others may look at it, end it or delete
// it, but not go on with it. [Owner.Allows] is the caller's to ask: a store answers
// everybody.
type Store interface {
	// Save keeps a run as it is now, in place of all that was kept under its id: record,
	// image (empty: none), and an empty log; all of it or nothing. The store holds the
	// run from then on, unless its state is terminal; such a run keeps no image, and the
	// oldest of their kind make room for it. A run that is not terminal must fit into the
	// bounds, which is checked before anything is written (*FullError); what was kept
	// under its id does not count, nor do runs that nobody holds and that had expired
	// when this one was parked. *HeldError if a living process has the run and this
	// would go on with it; ErrLost if this store had it and another ended it: the first
	// end stands.
	Save(m Meta, record, image []byte) error
	// Append adds an entry to the log of a run that this store holds. It is durable when
	// it returns. One of up to SmallEntry bytes is always kept, whatever the bounds say:
	// what has happened must be known. A larger one must fit into them, which is checked
	// before anything is written (*FullError). ErrLost if the run is not, or not any more,
	// this store's; ErrUnknown.
	Append(id string, entry []byte) error
	// Reserve counts n more bytes against the bounds for a run that is not over, until its
	// next Save or Delete: what the caller keeps for it elsewhere and will save with it.
	// *FullError if they do not fit, and then nothing is counted; ErrLost if the run is
	// over, ErrUnknown. n of 0 or less counts nothing. A durable store counts what is
	// appended, so there is nothing to reserve there: it always says nil.
	Reserve(id string, n int64) error
	// SetState tells whether a run that this store holds is Running or Waiting; no other
	// state will do, and nothing else of the run changes. ErrLost, ErrUnknown, as Append.
	SetState(id string, state State) error
	// Release gives a run up that this store holds, as the end of its process would: any
	// may claim it. ErrLost, ErrUnknown, as Append.
	Release(id string) error
	// Find gives what is known about a run; ErrUnknown, ErrBroken. One that was Running
	// when its process ended is Waiting: nobody runs it.
	Find(id string) (Meta, error)
	// Claim makes a run this store's, and gives what was kept. A run that it has, it gives
	// again; one that is over it gives without holding it. *HeldError if another living
	// process has it, ErrUnknown, and ErrBroken if it cannot be opened: it is nobody's
	// then. A run may be past its Expires: that is for the caller to see.
	Claim(id string) (Saved, error)
	// Load is Claim that only looks: whoever holds the run keeps it.
	Load(id string) (Saved, error)
	// Image gives a run's image if it is for that engine; ErrUnknown (of a run without an
	// image, too), ErrEngine, ErrBroken.
	Image(id, engine string) ([]byte, error)
	// Delete forgets a run and all that was kept of it, whoever holds it. No error if it
	// is not there.
	Delete(id string) error
	// List gives all that is kept, the oldest Parked first.
	List() ([]Meta, error)
	// Expire drops what is over at now: a terminal run is deleted; any other becomes a
	// tombstone, without record, image and log, in state Expired and until now + TTL. A
	// run that a living process holds stays: that process ends it, because calls of it may
	// be under way. next is when to come again: the earliest Expires that lies ahead, or
	// in a second, if another process holds a run past its time and may end before it ends
	// the run. Zero: there is none.
	Expire(now time.Time) (next time.Time, err error)
	// Lost lists runs that this store held and that another process ended or deleted.
	// They stay listed until this store deletes them or closes.
	Lost() ([]string, error)
	// Durable tells whether what is kept outlives the process.
	Durable() bool
	// Close frees all that the store has. What a durable store keeps stays, and is
	// nobody's. It waits for calls that are under way; later ones fail. Twice is fine.
	Close() error
}

// ErrUnknown is the error of a run of which nothing is kept.
var ErrUnknown = errors.New("nothing is kept of such a run")

// ErrLost is the error of a run that this store does not hold: another process ended it,
// deleted it or has it now, or it is over.
var ErrLost = errors.New("the run is not held by this store any more")

// ErrDamaged is the error of a database that cannot be read any more. Unlike ErrBroken it
// costs all runs. What the error says beside it is what to do.
var ErrDamaged = errors.New("the database of the runs is damaged")

// errClosed is the error of every call after Close.
var errClosed = errors.New("the store of runs is closed")

// A HeldError says that a living process has the run.
type HeldError struct {
	ID  string
	PID int // 0 if it cannot be told
}

func (e *HeldError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("run %q is held by %s, which is still running", e.ID, holder)
}

// check refuses what could not be kept, or not be read back.
func (m *Meta) check(record, image []byte) error {
	_, isHash := engineHash(m.Engine)
	switch {
	case !validID(m.ID):
		return fmt.Errorf("saving run %q: an id is 1 to 64 of [A-Za-z0-9_-]", m.ID)
	case !m.State.valid():
		return fmt.Errorf("saving run %q: there is no state %q", m.ID, m.State)
	case !m.Owner.valid():
		return fmt.Errorf("saving run %q: its owner is not UTF-8", m.ID)
	case !isHash, m.Engine == "" && len(image) > 0:
		return fmt.Errorf("saving run %q: the engine %q is not a SHA-256 in lower-case hex", m.ID, m.Engine)
	case len(record) > MaxRecord:
		return fmt.Errorf("saving run %q: its record has %d bytes, and %d is the most", m.ID, len(record), MaxRecord)
	case len(image) > MaxImage:
		return fmt.Errorf("saving run %q: its image has %d bytes, and %d is the most", m.ID, len(image), MaxImage)
	}
	return nil
}

// checkSet refuses a state that a run cannot be set to.
func checkSet(id string, s State) error {
	if s != Running && s != Waiting {
		return fmt.Errorf("setting run %q to %q: it can be set to %q and %q", id, s, Running, Waiting)
	}
	return nil
}

// checkEntry is check for a log entry.
func checkEntry(id string, entry []byte) error {
	if len(entry) > MaxEntry {
		return fmt.Errorf("adding to the log of run %q: the entry has %d bytes, and %d is the most", id, len(entry), MaxEntry)
	}
	return nil
}

// normal takes from m what the store fills in, and what a time has that no file keeps.
func (m Meta) normal() Meta {
	m.Bytes, m.Held, m.Holder, m.Broken = 0, false, 0, false
	m.Created, m.Parked, m.Expires = m.Created.Round(0).UTC(), m.Parked.Round(0).UTC(), m.Expires.Round(0).UTC()
	return m
}

// binding is what a text of this run is sealed for.
func (m *Meta) binding(kind Kind) Binding {
	return Binding{Kind: kind, RunID: m.ID, Owner: m.Owner}
}

// recordKind is the kind of the run's record: that of one that goes on does not open as
// the result of one that is over.
func (m *Meta) recordKind() Kind {
	if m.State.Terminal() {
		return KindResult
	}
	return KindRecord
}

func (m *Meta) imageBinding(engine string) Binding {
	return Binding{Kind: KindImage, RunID: m.ID, Owner: m.Owner, Engine: engine}
}

func validID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return 1 <= len(id) && len(id) <= 64
}
