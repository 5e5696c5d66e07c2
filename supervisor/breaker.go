package supervisor

import (
	"fmt"
	"sync"
	"time"
)

const (
	// breakerFree is how many starts in a row may fail before the next one has to wait.
	breakerFree = 3

	// The wait doubles with each failure, from breakerFirst to breakerMost.
	breakerFirst = 100 * time.Millisecond
	breakerMost  = 30 * time.Second
)

// breaker holds starts back after starts that failed (SPEC 16.4): a worker that cannot
// start costs a fork, some milliseconds of a processor and a line in the log each time. Safe
// for concurrent use.
type breaker struct {
	mu       sync.Mutex
	failures int       // in a row
	until    time.Time // no start before
	trying   bool      // one start is under way to see whether it works again
	last     error
}

// enter asks for a start. If it gives nil, the caller reports with leave.
func (b *breaker) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakerFree {
		return nil
	}
	if wait := time.Until(b.until); wait > 0 || b.trying {
		return fmt.Errorf("the last %d starts failed, and the next one is tried in %v: %w", b.failures, max(wait, 0).Round(time.Millisecond), b.last)
	}
	b.trying = true
	return nil
}

// leave notes how a start ended. It is true if starts are held back from now on and were
// not before.
func (b *breaker) leave(err error) (tripped bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	if err == nil {
		b.failures, b.last = 0, nil
		return false
	}
	b.failures++
	b.last = err
	if over := b.failures - breakerFree; over >= 0 {
		b.until = time.Now().Add(min(breakerMost, breakerFirst<<min(over, 20)))
	}
	return b.failures == breakerFree
}

// abandon ends a start that says nothing about the worker: the caller gave it up.
func (b *breaker) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

// reset forgets the failures: what is started now is something else.
func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.last, b.trying = 0, nil, false
}

// wait is how long starts are held back from now on.
func (b *breaker) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakerFree {
		return 0
	}
	return max(0, time.Until(b.until))
}
