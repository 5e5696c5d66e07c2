package gatewayrpc

import (
	"io"
	"os"
	"sync"
	"time"
)

// Stdio makes a transport of two streams that cannot be interrupted, such as standard input and
// output: a Read or a Write that is under way is left behind when the transport is closed or
// the time is up, on a goroutine that ends with the stream, or the process.
func Stdio(in io.Reader, out io.Writer) Transport {
	s := &stdio{out: out, parts: make(chan part), taken: make(chan struct{}), closed: make(chan struct{})}
	go s.read(in)
	return s
}

type stdio struct {
	out      io.Writer
	parts    chan part
	rest     []byte
	taken    chan struct{} // rest was used up: the reader may read again
	once     sync.Once
	closed   chan struct{}
	deadline time.Time // the writer's
}

type part struct {
	b   []byte
	err error
}

// read goes ahead of Read by one buffer.
func (s *stdio) read(in io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			select {
			case s.parts <- part{buf[:n], nil}:
			case <-s.closed:
				return
			}
			select {
			case <-s.taken:
			case <-s.closed:
				return
			}
		}
		if err != nil {
			select {
			case s.parts <- part{nil, err}:
			case <-s.closed:
			}
			return
		}
	}
}

func (s *stdio) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		select {
		case part := <-s.parts:
			if part.err != nil {
				return 0, part.err
			}
			s.rest = part.b
		case <-s.closed:
			return 0, os.ErrClosed
		}
	}
	n := copy(p, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		select {
		case s.taken <- struct{}{}:
		case <-s.closed:
		}
	}
	return n, nil
}

// Write gives up at the deadline, and then b may still be read.
func (s *stdio) Write(b []byte) (int, error) {
	done := make(chan error, 1)
	own := append([]byte(nil), b...)
	go func() { // ends with the write, or with the process
		_, err := s.out.Write(own)
		done <- err
	}()
	timer := time.NewTimer(time.Until(s.deadline))
	defer timer.Stop()
	select {
	case err := <-done:
		return len(b), err
	case <-timer.C:
		return 0, os.ErrDeadlineExceeded
	case <-s.closed:
		return 0, os.ErrClosed
	}
}

// SetWriteDeadline is for the writes to come.
func (s *stdio) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

func (s *stdio) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
