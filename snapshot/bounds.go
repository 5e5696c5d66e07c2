package snapshot

import (
	"cmp"
	"fmt"
	"math"
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

	// SmallEntry is the most that a log entry may have, in bytes, to be kept whatever the
	// bounds say: the most important thing about a call is that it settled.
	SmallEntry = 4096

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
	full, runs := b.count(m, bytes, kept)
	if limit := int64(cmp.Or(max(b.Runs, 0), defaultRuns)); runs+1 > limit {
		full.What, full.Limit, full.Have, full.Need = "runs", limit, runs, 1
	}
	return full.orNil()
}

// grow tells whether m, which is kept, may have that many bytes more.
func (b Bounds) grow(m *Meta, more int64, kept []Meta) error {
	bytes := m.Bytes + min(more, math.MaxInt64-m.Bytes)
	full, _ := b.count(m, bytes, kept) // the runs do not become more
	return full.orNil()
}

// count looks what there is beside m, and whether that many bytes fit.
func (b Bounds) count(m *Meta, bytes int64, kept []Meta) (full *FullError, runs int64) {
	full = &FullError{Now: m.Parked}
	var used int64
	for _, other := range kept {
		// Nobody can go on with one that has expired. That it is still there only says
		// that no Expire has come by.
		if other.terminal() || other.ID == m.ID || fateOf(&other, m.Parked) != stays {
			continue
		}
		if runs++; runs <= 3 {
			full.Oldest = append(full.Oldest, other)
		}
		used += other.Bytes
	}
	if limit := cmp.Or(max(b.Bytes, 0), defaultBytes); bytes > limit-used {
		full.What, full.Limit, full.Have, full.Need = "bytes", limit, used, bytes
	}
	return full, runs
}

// orNil is an error only if a bound stands in the way.
func (e *FullError) orNil() error {
	if e.What == "" {
		return nil
	}
	return e
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
