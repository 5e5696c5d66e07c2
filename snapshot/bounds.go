package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds says how much of runs that are not over a store takes (SPEC 13.5).
type Bounds struct {
	Runs  int   // 0: 64
	Bytes int64 // 0: 512 MiB; sealed, as in Meta.Bytes
}

const (
	defaultRuns  = 64
	defaultBytes = 512 << 20

	// What is kept of runs that are over is a courtesy (SPEC 12.5), so the oldest goes
	// without a word when there is too much of it.
	maxTerminal      = 256
	maxTerminalBytes = 64 << 20
)

// A FullError says that a run does not fit, and who is in the way (SPEC 13.5).
type FullError struct {
	What   string    // "runs" or "bytes"
	Limit  int64     // the bound
	Have   int64     // what the other runs have of it
	Need   int64     // what this run would have added
	Oldest []Meta    // up to three of them
	Now    time.Time // Parked of the run that does not fit: the ages are counted to it
}

func (e *FullError) Error() string {
	var b strings.Builder
	if e.What == "runs" {
		fmt.Fprintf(&b, "%d runs are parked, and no more than %d may be", e.Have, e.Limit)
	} else {
		fmt.Fprintf(&b, "the parked runs have %d bytes and this one needs %d, and no more than %d may be kept", e.Have, e.Need, e.Limit)
	}
	for i, m := range e.Oldest {
		b.WriteString([]string{"; the oldest: ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "run %q", m.ID)
		if owner := m.Owner.who(); owner != "" {
			fmt.Fprintf(&b, " of %s", owner)
		}
		fmt.Fprintf(&b, " (parked for %v)", max(0, e.Now.Sub(m.Parked)).Round(time.Second))
	}
	return b.String()
}

// room tells whether m, with that many bytes, fits beside what is kept. kept may have m
// itself; it is oldest first.
func (b Bounds) room(m *Meta, bytes int64, kept []Meta) error {
	limitRuns, limitBytes := int64(cmp.Or(max(b.Runs, 0), defaultRuns)), cmp.Or(max(b.Bytes, 0), defaultBytes)
	full := &FullError{Now: m.Parked}
	var runs, used int64
	for _, other := range kept {
		if other.terminal() || other.ID == m.ID {
			continue
		}
		if runs++; runs <= 3 {
			full.Oldest = append(full.Oldest, other)
		}
		used += other.Bytes
	}
	switch {
	case runs+1 > limitRuns:
		full.What, full.Limit, full.Have, full.Need = "runs", limitRuns, runs, 1
	case used+bytes > limitBytes:
		full.What, full.Limit, full.Have, full.Need = "bytes", limitBytes, used, bytes
	default:
		return nil
	}
	return full
}

// overflow names the terminal runs that are too many beside the one that has just been
// saved with that many bytes. kept may have it, too; it is oldest first.
func overflow(saved *Meta, bytes int64, kept []Meta) (drop []string) {
	count := 1
	for _, m := range slices.Backward(kept) {
		if !m.terminal() || m.ID == saved.ID {
			continue
		}
		count++
		if bytes += m.Bytes; count > maxTerminal || bytes > maxTerminalBytes {
			drop = append(drop, m.ID)
		}
	}
	return drop
}

// sortMetas puts the oldest first. The id decides between equal times, so that the order
// is always the same.
func sortMetas(metas []Meta) {
	slices.SortFunc(metas, func(a, b Meta) int {
		return cmp.Or(a.Parked.Compare(b.Parked), cmp.Compare(a.ID, b.ID))
	})
}

// fate is what time does to a run.
type fate int

const (
	stays fate = iota
	becomesTombstone
	goes
)

func fateOf(m *Meta, now time.Time) fate {
	switch {
	case m.Broken && m.Expires.IsZero():
		return goes // not even its time can be read
	case m.Expires.IsZero(), m.Expires.After(now):
		return stays
	case m.terminal():
		return goes
	case m.Held:
		return stays
	case m.TTL <= 0:
		return goes
	}
	return becomesTombstone
}

// tombstone is what stays of a run that expired.
func tombstone(m Meta, now time.Time) Meta {
	m = m.normal()
	m.State, m.Expires = Expired, now.Add(m.TTL).Round(0).UTC()
	return m
}

// nextExpiry is the earliest Expires that lies ahead; zero if there is none.
func nextExpiry(kept []Meta, now time.Time) (next time.Time) {
	for _, m := range kept {
		if m.Expires.After(now) && (next.IsZero() || m.Expires.Before(next)) {
			next = m.Expires
		}
	}
	return next
}
