package serve

import "time"

// The reasons to stop guest code. The first one stays.
const (
	running = iota
	stopTimeout
	stopOutput
	stopPending
)

// stop is the guest's soft stop. The engine asks now every few thousand steps.
type stop struct {
	why   int
	start time.Time
	limit time.Duration // 0 for none
}

func (s *stop) after(d time.Duration) {
	s.start, s.limit = time.Now(), d
}

// end is when the time is up.
func (s *stop) end() time.Time { return s.start.Add(s.limit) }

func (s *stop) set(why int) {
	if s.why == running {
		s.why = why
	}
}

func (s *stop) now() bool {
	if s.limit != 0 && time.Since(s.start) >= s.limit {
		s.set(stopTimeout)
	}
	return s.why != running
}
