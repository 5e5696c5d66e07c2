package supervisor

import "time"

const (
	// lookAgain is how often the keeper looks whether another process ended a run that
	// lives here.
	lookAgain = time.Second

	// sweepAgain is how often it looks for what others left to expire.
	sweepAgain = time.Minute
)

// keep drops what is over from the store, by the clock and not by the next visit (SPEC
// 14.1), and ends runs here that another process ended there. It returns at Close.
func (s *Supervisor) keep() {
	var sweep time.Time // the next one
	for {
		if now := time.Now(); !now.Before(sweep) {
			next, err := s.store.Expire(now)
			if err != nil {
				s.opts.Logger.Error("the store of parked runs failed", "error", err)
			}
			if sweep = now.Add(sweepAgain); !next.IsZero() && next.Before(sweep) {
				sweep = next
			}
		}
		wait := time.Until(sweep)
		if s.store.Durable() && len(s.all()) > 0 {
			s.endLost()
			wait = min(wait, lookAgain)
		}
		timer := time.NewTimer(max(wait, 0))
		select {
		case <-timer.C:
		case <-s.wake:
			sweep = time.Time{}
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// rouse makes the keeper look at the clock again: something new will be over.
func (s *Supervisor) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// endLost aborts runs that are not in the store any more.
func (s *Supervisor) endLost() {
	lost, err := s.store.Lost()
	if err != nil {
		s.opts.Logger.Error("the store of parked runs failed", "error", err)
	}
	for _, id := range lost {
		if r := s.run(id); r != nil {
			r.abort(errTaken)
		}
	}
}
