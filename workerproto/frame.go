package workerproto

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Version is the protocol's version, in the header of every frame and in go-plugin's
// handshake. Peers of different versions refuse each other.
const Version = 1

const (
	headerBytes = 8
	magic0      = 'c'
	magic1      = 'm'
	// firstRead is how much of a body is allocated on the announcement alone; the rest
	// grows as bytes arrive, so an announced size costs its sender as much as us.
	firstRead = 64 << 10
)

// Violation says which rule of the protocol the peer broke.
type Violation struct {
	Type   Type // 0 if the header itself was wrong
	Reason string
}

func (v *Violation) Error() string {
	if v.Type == 0 {
		return "protocol violation: " + v.Reason
	}
	return fmt.Sprintf("protocol violation: %s frame: %s", v.Type, v.Reason)
}

// Conn reads and writes frames.
type Conn struct {
	rw       io.ReadWriteCloser
	in       *bufio.Reader
	header   [headerBytes]byte
	deadline time.Time // of reads; the reader's

	mu     sync.Mutex
	out    []byte // guarded by mu: frames that were queued and not written yet
	broken error  // guarded by mu: of the write that failed

	closeOnce sync.Once
	closeErr  error
}

// queueBytes is how much is queued at most before it is written after all.
const queueBytes = 256 << 10

// NewConn makes a Conn that owns rw.
func NewConn(rw io.ReadWriteCloser) *Conn {
	return &Conn{rw: rw, in: bufio.NewReaderSize(rw, firstRead)}
}

// Close closes the socket and unblocks a read. It may be called twice.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() { c.closeErr = c.rw.Close() })
	return c.closeErr
}

// Write sends a message, and before it what was queued, as one write. A message that
// breaks the rules of its type is refused before anything is sent, and the Conn stays
// good. A write that failed may have sent half a frame, whose rest the next one would
// become: all later ones fail with it.
func (c *Conn) Write(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.queue(m); err != nil {
		return err
	}
	return c.flush()
}

// Queue keeps a message for the next [Conn.Write], which a peer that waits for both
// then gets in one piece. Past 256 KiB it is written at once.
func (c *Conn) Queue(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.queue(m); err != nil || len(c.out) < queueBytes {
		return err
	}
	return c.flush()
}

func (c *Conn) queue(m Message) error {
	if c.broken != nil {
		return c.broken
	}
	out, err := Append(c.out, m)
	if err == nil {
		c.out = out
	}
	return err
}

func (c *Conn) flush() error {
	_, err := c.rw.Write(c.out)
	c.broken = err
	if c.out = c.out[:0]; cap(c.out) > 4*queueBytes {
		c.out = nil // one big message must not pin its size
	}
	return err
}

// deadliner is a socket of package net.
type deadliner interface{ SetReadDeadline(time.Time) error }

// Deadline makes reads fail with os.ErrDeadlineExceeded from then on, also in the middle
// of a frame, which is then lost. It costs more than a read; set it once.
func (c *Conn) Deadline(t time.Time) error {
	d, ok := c.rw.(deadliner)
	if !ok {
		return errors.New("workerproto: the socket knows no deadlines")
	}
	c.deadline = t
	return d.SetReadDeadline(t)
}

// Await waits until a message begins to arrive, the peer is gone, or the time is over,
// which it tells with false. No message is lost. The deadline is as it was afterwards.
func (c *Conn) Await(until time.Time) (bool, error) {
	if c.in.Buffered() > 0 {
		return true, nil
	}
	before := c.deadline
	if err := c.Deadline(until); err != nil {
		return false, err
	}
	_, err := c.in.Peek(1)
	if restored := c.Deadline(before); errors.Is(err, os.ErrDeadlineExceeded) {
		return false, restored
	}
	return true, nil // whatever is wrong, the read will say
}

// Buffered tells whether a whole frame has arrived already, so that reading it does not
// wait.
func (c *Conn) Buffered() bool {
	n := c.in.Buffered()
	if n < headerBytes {
		return false
	}
	h, err := c.in.Peek(headerBytes)
	return err == nil && uint64(n) >= headerBytes+uint64(binary.BigEndian.Uint32(h[4:]))
}

// ReadEvent reads the next message of a worker. io.EOF means that the worker closed
// its end between two frames, io.ErrUnexpectedEOF that it did so inside of one.
func (c *Conn) ReadEvent() (Message, error) { return c.read(true) }

// ReadCommand reads the next message of a supervisor.
func (c *Conn) ReadCommand() (Message, error) { return c.read(false) }

func (c *Conn) read(event bool) (Message, error) {
	if _, err := io.ReadFull(c.in, c.header[:]); err != nil {
		return nil, err
	}
	h := c.header
	if h[0] != magic0 || h[1] != magic1 {
		return nil, &Violation{0, fmt.Sprintf("a frame begins with %#02x %#02x", h[0], h[1])}
	}
	if h[2] != Version {
		return nil, &Violation{0, fmt.Sprintf("the peer speaks version %d, this is %d", h[2], Version)}
	}
	t := Type(h[3])
	k, known := kinds[t]
	if !known || k.event != event {
		return nil, &Violation{0, fmt.Sprintf("unexpected frame type %d", h[3])}
	}
	n := binary.BigEndian.Uint32(h[4:])
	if n > k.maxBody {
		return nil, &Violation{t, fmt.Sprintf("announces %d bytes, at most %d are allowed", n, k.maxBody)}
	}
	body, err := readBody(c.in, int(n))
	if err != nil {
		return nil, err
	}
	return decode(t, body)
}

// readBody reads n bytes, doubling its buffer as they come.
func readBody(r io.Reader, n int) ([]byte, error) {
	buf := make([]byte, min(n, firstRead))
	for read := 0; ; {
		m, err := io.ReadFull(r, buf[read:])
		if read += m; err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if read == n {
			return buf, nil
		}
		grown := make([]byte, min(n, 2*len(buf)))
		copy(grown, buf)
		buf = grown
	}
}
