package supervisor

import (
	"context"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
)

// refillDelay is how long a spare's successor waits: a short cell is over by then, and has
// not shared its processor with a start.
const refillDelay = 10 * time.Millisecond

// spare is a worker that waits for a run. It holds a place.
type spare struct {
	child *process.Child
	from  *process.Spawner
}

// pool keeps spare workers: started ahead, locked down, used once or never (SPEC 16.1). One
// goroutine fills it, and is the only one to put something in.
type pool struct {
	s     *Supervisor
	size  int
	ready chan spare
	wake  chan struct{}
	asks  chan chan<- error // of Warm
	after *time.Timer       // wakes a moment later
}

func newPool(s *Supervisor, size int) *pool {
	p := &pool{s: s, size: size, ready: make(chan spare, size), wake: make(chan struct{}, 1), asks: make(chan chan<- error)}
	p.after = time.AfterFunc(time.Hour, p.nudge)
	p.after.Stop()
	return p
}

// nudge has the pool look at itself.
func (p *pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// later is nudge after a delay.
func (p *pool) later(d time.Duration) {
	if p.size > 0 {
		p.after.Reset(d)
	}
}

// keep fills the pool until the supervisor is closed.
func (p *pool) keep() {
	defer func() {
		p.after.Stop()
		p.weed(func(spare) bool { return false })
	}()
	for {
		select {
		case <-p.s.ctx.Done():
			return
		case <-p.wake:
			_ = p.fill() // it is logged where workers are started
		case ask := <-p.asks:
			ask <- p.fill()
		}
	}
}

// fill throws away what cannot be used any more and starts what is missing, as far as there
// are places that no run wants.
func (p *pool) fill() error {
	p.weed(p.s.fits)
	for len(p.ready) < p.size {
		select {
		case p.s.places <- struct{}{}:
		default:
			return nil // whoever gives one back wakes us
		}
		child, from, err := p.s.start(p.s.ctx, process.Order{GuestBytes: p.s.opts.Limits.MemoryBytes, Spare: true})
		if err != nil {
			<-p.s.places
			p.later(max(p.s.breaker.wait(), time.Second))
			return err
		}
		child.OnExit(p.nudge)
		p.ready <- spare{child, from}
	}
	return nil
}

// weed keeps the spares that are good and ends the others.
func (p *pool) weed(good func(spare) bool) {
	for range len(p.ready) {
		select {
		case sp := <-p.ready:
			if good(sp) {
				p.ready <- sp
			} else {
				p.s.discard(sp)
			}
		default: // a run was faster
		}
	}
}

// discard ends a spare that nobody needs, and gives its place back.
func (s *Supervisor) discard(sp spare) {
	sp.child.Kill(process.KilledDone)
	s.retire(sp.child)
	<-s.places
}

// fits tells whether a spare is alive and what would be started now: the same binary under
// the same policy.
func (s *Supervisor) fits(sp spare) bool {
	current, err := s.spawn()
	return err == nil && sp.from == current && sp.child.Alive()
}

// place waits for the right to have a worker, and gives it back with the returned function.
// If a spare is there it comes with it.
func (s *Supervisor) place(ctx context.Context) (child *process.Child, release func(), err error) {
	release = func() { <-s.places; s.pool.nudge() }
	for {
		var sp spare
		select {
		case sp = <-s.pool.ready: // before a place for a worker that has to be started
		default:
			select {
			case sp = <-s.pool.ready:
			case s.places <- struct{}{}:
			case <-ctx.Done():
				return nil, nil, context.Cause(ctx)
			}
		}
		if sp.child == nil || s.fits(sp) {
			s.pool.later(refillDelay)
			return sp.child, release, nil
		}
		s.discard(sp)
	}
}

// Warm fills the pool of spare workers (Options.Pool), as far as MaxWorkers allows, and
// returns when they are ready. Without it the pool fills once the first run has begun. The
// error is that of a worker that does not start, or ctx's.
func (s *Supervisor) Warm(ctx context.Context) error {
	if s.pool.size == 0 {
		return nil
	}
	reply := make(chan error, 1)
	select {
	case s.pool.asks <- reply:
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
