package supervisor

import "time"

// lookAgain is how often the keeper looks into a state directory: other processes may have
// ended a run that lives here, or left one behind.
const lookAgain = time.Second

// keep drops what is over from the store, by the clock and not by the next visit (SPEC
// 14.1), and ends runs here that another process ended there. next is when the store will
// have something to drop. It returns at Close.
func (s *Supervisor) keep(next time.Time) {
	for {
		wait := time.Hour
		if !next.IsZero() {
			wait = max(0, time.Until(next))
		}
		if s.store.Durable() {
			wait = min(wait, lookAgain)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
		var err error
		next, err = s.store.Expire(time.Now())
		s.storeFailed("", err)
		if s.store.Durable() && len(s.all()) > 0 {
			s.endLost()
		}
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
	s.storeFailed("", err)
	for _, id := range lost {
		if r := s.run(id); r != nil {
			r.abort(errTaken)
		}
	}
}

// storeFailed tells the operator of an error that no caller can be told. No error and no run
// are nil and "".
func (s *Supervisor) storeFailed(run string, err error) {
	if err != nil {
		s.opts.Logger.Error("the store of parked runs failed", "run", run, "error", err)
	}
}
