package sandbox

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// dataRoom is what the Go part of the worker may use beside the guest's memory: its
// heap, the TypeScript transformer's stack, and both sides' copies of a big frame.
const dataRoom = 320 << 20

// CloseInherited closes every descriptor from first on: what a careless parent left
// open without close-on-exec. The Go runtime's own, an epoll and an eventfd that it may
// have opened before main, stay.
func CloseInherited(first int) error {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing inherited descriptors: %w", err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		what, err := os.Readlink(dir + "/" + e.Name())
		if err != nil { // the descriptor of the listing itself
			continue
		}
		if what != "anon_inode:[eventpoll]" && what != "anon_inode:[eventfd]" {
			_ = unix.Close(fd)
		}
	}
	return nil
}

// Lock sets the limits that hold for every worker: no core dump, no file of any size
// but what a pipe takes, no locked memory.
func Lock() error {
	for _, l := range []struct {
		name  string
		which int
		value uint64
	}{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, 0},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, 64},
	} {
		if err := unix.Setrlimit(l.which, &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return fmt.Errorf("setting %s to %d: %w", l.name, l.value, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	return nil
}

// LimitData bounds the process's writable memory to the guest's and dataRoom: the third
// wall of SPEC 13.3. RLIMIT_AS cannot do it, since the guest's address space is
// reserved far beyond what it may use.
func LimitData(guestBytes uint64) error {
	v := guestBytes + guestBytes/8 + dataRoom
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: v, Max: v}); err != nil {
		return fmt.Errorf("setting RLIMIT_DATA to %d: %w", v, err)
	}
	return nil
}
