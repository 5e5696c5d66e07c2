package lockdown

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// securebits are SECBIT_NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE with their locks, and the
// lock of KEEP_CAPS: uid 0 has no capabilities for being 0, a change of uid neither gives nor
// keeps any, and none is ambient (capabilities(7), "The securebits flags").
const securebits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// eachCapability calls f for all that the kernel knows: reading the first unknown one is EINVAL.
func eachCapability(f func(c uintptr, bounding bool) error) error {
	for c := uintptr(0); ; c++ {
		in, err := prctl(unix.PR_CAPBSET_READ, c)
		if err == unix.EINVAL && c > 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("prctl(PR_CAPBSET_READ, %d): %w", c, err)
		}
		if err := f(c, in == 1); err != nil {
			return err
		}
	}
}

// emptyBoundingSet takes from all threads what an execve(2) could give them.
func emptyBoundingSet() error {
	return eachCapability(func(c uintptr, bounding bool) error {
		if !bounding {
			return nil
		}
		err := allThreads("PR_CAPBSET_DROP", unix.PR_CAPBSET_DROP, c)
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("the bounding set can be emptied only with CAP_SETPCAP, which the worker has in a user namespace: %w", err)
		}
		return err
	})
}

// dropCapabilities empties all other sets and makes the process one that nobody of the same uid
// may look into (PR_SET_DUMPABLE(2const)). begun is how emptyBoundingSet went: without it the
// layer is not whole, but what can be dropped is.
func dropCapabilities(begun error) error {
	if cgo {
		return errCgo
	}
	// Without CAP_SETPCAP there is nothing to lock: a process that has none gains none.
	if err := allThreads("PR_SET_SECUREBITS", unix.PR_SET_SECUREBITS, securebits); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	// The ambient set is always within the inheritable one, so this empties it too.
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		return fmt.Errorf("capset to none: %w", errno)
	}
	if _, err := prctl(unix.PR_SET_DUMPABLE, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_DUMPABLE, 0): %w", err)
	}
	if begun != nil {
		return begun
	}
	return checkCapabilities()
}

func checkCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if have != [2]unix.CapUserData{} {
		return fmt.Errorf("capabilities are %+v after all were dropped", have)
	}
	if d, err := prctl(unix.PR_GET_DUMPABLE, 0); d != 0 || err != nil {
		return fmt.Errorf("PR_GET_DUMPABLE gives %d, %v after it was set to 0", d, err)
	}
	return eachCapability(func(c uintptr, bounding bool) error {
		ambient, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, c, 0, 0, 0)
		if bounding || ambient != 0 || errno != 0 {
			return fmt.Errorf("capability %d after all were dropped: in the bounding set %t, PR_CAP_AMBIENT_IS_SET %d, %v", c, bounding, ambient, errno)
		}
		return nil
	})
}

// setNoNewPrivs makes set-uid bits and file capabilities mean nothing to the worker.
func setNoNewPrivs() error {
	if err := allThreads("PR_SET_NO_NEW_PRIVS", unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return err
	}
	if on, err := prctl(unix.PR_GET_NO_NEW_PRIVS, 0); on != 1 || err != nil {
		return fmt.Errorf("PR_GET_NO_NEW_PRIVS gives %d, %v after it was set", on, err)
	}
	return nil
}

// installFilter puts the filter on all threads, or on none.
func installFilter() error {
	if cgo {
		return errCgo
	}
	program, err := filter(runtime.GOARCH, unix.Getpid())
	if err != nil {
		return err
	}
	raw, err := assemble(program)
	if err != nil {
		return err
	}
	// TSYNC copies this thread's no_new_privs to the others as well.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	prog := unix.SockFprog{Len: uint16(len(raw)), Filter: &raw[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(raw)
	if errno != 0 {
		return fmt.Errorf("seccomp(SECCOMP_SET_MODE_FILTER): %w", errno)
	}
	if r != 0 {
		return fmt.Errorf("seccomp(SECCOMP_SET_MODE_FILTER): thread %d has a filter of its own and could not be given this one", r)
	}
	// Without the filter the answer is 0 or 2; only the filter says that there is no such call.
	if mode, err := prctl(unix.PR_GET_SECCOMP, 0); err != unix.EINVAL {
		return fmt.Errorf("prctl(PR_GET_SECCOMP) under the filter: %d, %v, want EINVAL", mode, err)
	}
	return nil
}
