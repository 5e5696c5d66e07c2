//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package process

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func rawSocketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // no SOCK_CLOEXEC
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "worker channel"), nil
}

// awaitExit returns when pid is dead, and leaves it a zombie (kevent(2), NOTE_EXIT).
func awaitExit(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(kq)
	event := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&event, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	for {
		_, err := unix.Kevent(kq, []unix.Kevent_t{event}, make([]unix.Kevent_t, 1), nil)
		if !errors.Is(err, unix.EINTR) {
			return // an exit, or ESRCH: it is dead already
		}
	}
}

// usage of a process that is alive is not known here.
func usage(int) (cpu time.Duration, peak int64, ok bool) { return 0, 0, false }

func peakBytes(state *os.ProcessState) int64 {
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss) // bytes on Darwin
	}
	return 0
}

// oomKills is not known here.
func oomKills() int64 { return 0 }
