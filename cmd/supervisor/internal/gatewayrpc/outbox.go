package gatewayrpc

import (
	"context"
	"sync"
	"time"
)

const (
	// outboxBytes is how much may wait for the client before who has more to say waits, too.
	// One message may be over it: the largest there is.
	outboxBytes = 1 << 20
	// writeChunk is how much is written at once; the client has writeTimeout to take it.
	writeChunk = 64 << 10
)

// kind is what a message is to the bounds.
type kind uint8

const (
	pushed  kind = iota // waited for room
	answer              // of a request; there are at most as many as open requests
	refusal             // of what was no request, or one too many
)

// outbox is what waits for the client. put never blocks: who calls it may hold a lock of the
// library. Each kind has a bound elsewhere, which is said there.
type outbox struct {
	mu       sync.Mutex
	queue    []message     // guarded by mu
	bytes    int           // guarded by mu: queued, or being written
	refusals int           // guarded by mu: the same
	closed   bool          // guarded by mu
	more     chan struct{} // something was put, or it was closed
	less     chan struct{} // something was written
}

type message struct {
	line []byte
	size int // of line
	kind kind
}

func newOutbox() *outbox {
	return &outbox{more: make(chan struct{}, 1), less: make(chan struct{}, 1)}
}

// put queues a message, and gives how many refusals wait.
func (o *outbox) put(line []byte, k kind) (refusals int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return o.refusals
	}
	o.queue = append(o.queue, message{line, len(line), k})
	o.bytes += len(line)
	if k == refusal {
		o.refusals++
	}
	wakeUp(o.more)
	return o.refusals
}

// room returns when there is some, or with ctx. One at a time may call it.
func (o *outbox) room(ctx context.Context) error {
	for {
		o.mu.Lock()
		full := o.bytes >= outboxBytes
		o.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-o.less:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close ends [outbox.write] when all is written. What is put afterwards is dropped.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	wakeUp(o.more)
}

// write writes what is put, until close or an error. answered is told how many answers were
// written. Who does not take writeChunk bytes within timeout is an error.
func (o *outbox) write(t Transport, timeout time.Duration, answered func(int)) error {
	var chunk []byte
	var whole []message // those whose end is in chunk, without their lines
	flush := func() error {
		if len(chunk) == 0 {
			return nil
		}
		if err := t.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		if _, err := t.Write(chunk); err != nil {
			return err
		}
		answered(o.written(whole))
		chunk, whole = chunk[:0], whole[:0]
		return nil
	}
	for {
		m, ok, open := o.take()
		if !ok { // nothing more for now
			if err := flush(); err != nil || !open {
				return err
			}
			<-o.more
			continue
		}
		for rest := append(m.line, '\n'); len(rest) > 0; {
			n := min(len(rest), writeChunk-len(chunk))
			chunk, rest = append(chunk, rest[:n]...), rest[n:]
			if len(rest) == 0 {
				whole = append(whole, message{size: m.size, kind: m.kind})
			}
			if len(chunk) == writeChunk {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
}

// take gives the next message, and whether more can come.
func (o *outbox) take() (m message, ok, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.queue = nil
		return m, false, !o.closed
	}
	m, o.queue[0] = o.queue[0], message{}
	o.queue = o.queue[1:]
	return m, true, true
}

// written notes that messages are out, and gives how many of them were answers.
func (o *outbox) written(whole []message) (answers int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range whole {
		o.bytes -= m.size
		switch m.kind {
		case answer:
			answers++
		case refusal:
			o.refusals--
		}
	}
	wakeUp(o.less)
	return answers
}

func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it was told already
	}
}
