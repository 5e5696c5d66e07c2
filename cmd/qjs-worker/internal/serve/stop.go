package serve

import (
	"sync/atomic"
	"time"
)

// The reasons to stop guest code. The first one stays.
const (
	running int32 = iota
	stopTimeout
	stopOutput
	stopPending
)

// stop is the guest's soft stop. The engine asks now every few thousand steps; the
// deadline is looked at there too, because the goroutine that reads the supervisor's
// interrupt may not get to run while wasm code does.
type stop struct {
	why      atomic.Int32
	deadline atomic.Int64 // nanoseconds of the monotonic clock since start, 0 for none
	start    time.Time
}

func (s *stop) after(d time.Duration) {
	s.start = time.Now()
	s.deadline.Store(int64(d))
}

// end is when the time is up.
func (s *stop) end() time.Time { return s.start.Add(time.Duration(s.deadline.Load())) }

func (s *stop) set(why int32) { s.why.CompareAndSwap(running, why) }

func (s *stop) now() bool {
	if s.why.Load() != running {
		return true
	}
	if d := s.deadline.Load(); d != 0 && int64(time.Since(s.start)) >= d {
		s.set(stopTimeout)
		return true
	}
	return false
}
