package supervisor

import "sync"

// emitter hands what a run tells to its listeners, in order, on a goroutine of its own: a
// listener that blocks, a full pipe or a slow disk, must not stop the run's clock.
//
// Output items are bounded by the run's output limit and always kept. Trajectory events
// are dropped, and counted, when too many wait.
type emitter struct {
	mu     sync.Mutex
	more   sync.Cond
	queue  []func() // guarded by mu
	closed bool     // guarded by mu
	done   chan struct{}
}

// maxWaitingEvents bounds the trajectory events that wait for their sink.
const maxWaitingEvents = 4096

func newEmitter() *emitter {
	e := &emitter{done: make(chan struct{})}
	e.more.L = &e.mu
	return e
}

// add queues f. It tells whether there was room, which output does not ask for.
func (e *emitter) add(f func(), always bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || !always && len(e.queue) >= maxWaitingEvents {
		return false
	}
	e.queue = append(e.queue, f)
	e.more.Signal()
	return true
}

// flush returns when all that was added before has been handed over.
func (e *emitter) flush() {
	done := make(chan struct{})
	if e.add(func() { close(done) }, true) {
		<-done
	} else {
		<-e.done
	}
}

// close takes no more. What was added is handed over all the same.
func (e *emitter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.more.Signal()
}

func (e *emitter) run() {
	defer close(e.done)
	for {
		e.mu.Lock()
		for len(e.queue) == 0 && !e.closed {
			e.more.Wait()
		}
		batch := e.queue
		e.queue = nil
		e.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, f := range batch {
			f()
		}
	}
}
