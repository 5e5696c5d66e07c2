package channel

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Open takes over the descriptor of a blocking stream socket.
func Open(fd uintptr) (Conn, error) {
	kind, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return nil, fmt.Errorf("descriptor %d is no stream socket: %v", fd, err)
	}
	if err := unix.SetNonblock(int(fd), false); err != nil {
		return nil, err
	}
	return &socket{fd: fd}, nil
}

type socket struct {
	fd       uintptr
	deadline time.Time
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

func (s *socket) Close() error { return unix.Close(int(s.fd)) }

// Read waits for the socket or the deadline, and reads. Without a deadline nothing is
// urgent, and other goroutines, go-plugin's last ones among them, may have something to
// do: that read is one that the scheduler sees.
func (s *socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		if s.deadline.IsZero() {
			n, err := syscall.Read(int(s.fd), b)
			switch {
			case err == syscall.EINTR:
				continue
			case err != nil:
				return 0, err
			case n == 0:
				return 0, io.EOF
			}
			return n, nil
		}
		switch ready, errno := s.await(time.Until(s.deadline)); {
		case errno == syscall.EINTR:
			// The runtime's monitor wants a goroutine that seems to run for long to let
			// others run. ppoll is never restarted (signal(7)), so it gets its way.
			runtime.Gosched()
			continue
		case errno != 0:
			return 0, errno
		case !ready:
			return 0, os.ErrDeadlineExceeded
		}
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, s.fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			return 0, errno
		case n == 0:
			return 0, io.EOF
		default:
			return int(n), nil
		}
	}
}

// await is ppoll(2) for reading.
func (s *socket) await(d time.Duration) (bool, syscall.Errno) {
	fds := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	timeout := unix.NsecToTimespec(int64(max(0, d)))
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), 1, uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
	return n > 0, errno
}

// Write writes all of b.
func (s *socket) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, s.fd, uintptr(unsafe.Pointer(&b[done])), uintptr(len(b)-done))
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			return done, errno
		default:
			done += int(n)
		}
	}
	return len(b), nil
}
