package attack

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// parent is the supervisor's process id, asked before the worker is locked: getppid(2) is among
// what is refused. In a PID namespace of its own a worker has no number for its parent; then it
// is one that no process has, which is all an attacker could do, too.
var parent = func() uintptr {
	if pid := os.Getppid(); pid > 0 {
		return uintptr(pid)
	}
	return 1<<22 - 1 // PID_MAX_LIMIT - 1 (include/linux/threads.h)
}()

// Run makes the attack, in the worker. The outcome is "OK" if the kernel let it through, else the
// errno's name. It does not return if the kernel kills the process. The error is only for a name
// that is none.
func Run(name string) (outcome string, err error) {
	a, ok := Find(name)
	if !ok {
		return "", fmt.Errorf("there is no attack %q", name)
	}
	// What a call does to its thread must not be met by another goroutine: the thread ends
	// with this one.
	runtime.LockOSThread()
	e := a.try()
	if e == 0 {
		return "OK", nil
	}
	if s := unix.ErrnoName(e); s != "" {
		return s, nil
	}
	return "errno " + strconv.Itoa(int(e)), nil
}

func attacks() []Attack {
	return slices.Concat(files(), network(), processes(), memory(), privileges(), kernel(), legacy())
}

// answer is how one layer refuses.
type answer struct {
	layer  isolation.Layer
	errnos []string
}

func answers(layer isolation.Layer, errnos ...string) answer { return answer{layer, errnos} }

// The answers that many attacks share.
var (
	// The process has no capability at all.
	noCaps = answers(isolation.Capabilities, "EPERM")
	// The kernel asks for a capability in the first user namespace, which nobody in another
	// one has, whatever else.
	notHere = answers(isolation.UserNamespace, "EPERM")
	// A process in another user namespace may be looked into only with CAP_SYS_PTRACE there
	// (ptrace(2), "Ptrace access mode checking").
	stranger = answers(isolation.UserNamespace, "EPERM")
	// Landlock lets nobody trace processes outside of its domain.
	outside = answers(isolation.LandlockFiles, "EPERM")
	// Landlock denies every file access that it knows of. ABI 1 is enough for those attacks that
	// name it.
	noFiles = answers(isolation.LandlockFiles, "EACCES")
	// Landlock denies all changes of the mount tree to whom it denies files.
	noMounts = answers(isolation.LandlockFiles, "EPERM")
	// There is nothing but "/".
	noSuchFile = answers(isolation.EmptyRoot, "ENOENT")
	// Nobody but the worker itself has a number.
	noSuchProcess = answers(isolation.PIDNamespace, "ESRCH")
	// ABI 6: signals to processes outside of the domain.
	noSignals = answers(isolation.LandlockScopes, "EPERM")
	// Loopback is down, and there is no other interface.
	noNetwork = answers(isolation.NetworkNamespace, "ENETUNREACH")
	// ABI 4: TCP.
	noTCP = answers(isolation.LandlockNetwork, "EACCES")
)

// by gives the refusals of an attack: the kernel kills the worker, and who else says no.
func by(others ...answer) map[isolation.Layer][]string {
	refused := map[isolation.Layer][]string{isolation.Seccomp: {killed}}
	for _, o := range others {
		refused[o.layer] = append(refused[o.layer], o.errnos...)
	}
	return refused
}

// Arguments of many calls.
const (
	cwd  = ^uintptr(99) // AT_FDCWD, -100
	none = ^uintptr(0)  // a descriptor, cpu or id that is none
)

// pinned keeps what the numbers in the table point at. The collector does not move it.
var pinned []any

// text is the address of s as C has strings.
func text(s string) uintptr {
	b := append([]byte(s), 0)
	pinned = append(pinned, b)
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// at is the address of a value that the kernel reads or writes.
func at[T any](v T) uintptr {
	p := &v
	pinned = append(pinned, p)
	return uintptr(unsafe.Pointer(p))
}

// room is the address of zeroed memory for an answer.
func room() uintptr { return at([4096]byte{}) }

// raw makes one system call, without the runtime: nothing is retried, and no signal is masked.
func raw(nr uintptr, args ...uintptr) (uintptr, syscall.Errno) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := syscall.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, e
}

// call is the attack that is one system call.
func call(nr uintptr, args ...uintptr) func() syscall.Errno {
	return func() syscall.Errno {
		_, e := raw(nr, args...)
		return e
	}
}

// prepared is the attack that needs something first which is refused itself. A filter
// that looks at the number must decide about nr all the same, so nr is called before, with
// arguments that are nothing to anybody.
func prepared(nr uintptr, try func() syscall.Errno) func() syscall.Errno {
	return func() syscall.Errno {
		raw(nr, none, none, none, none, none, none)
		return try()
	}
}

// fork makes a process by a raw call of clone(2) or fork(2) and has the child call last, if it
// is not 0, then end with the errno as its status. The child is a copy with one thread and no
// Go runtime: it must neither allocate, nor grow its stack, nor be scheduled.
//
//go:norace
func fork(nr, flags uintptr, last uintptr, a1, a2, a3 uintptr) (pid uintptr, err syscall.Errno) {
	pid, _, err = syscall.RawSyscall6(nr, flags, 0, 0, 0, 0, 0)
	if err != 0 || pid != 0 {
		return pid, err
	}
	var status syscall.Errno
	if last != 0 {
		_, _, status = syscall.RawSyscall6(last, a1, a2, a3, 0, 0, 0)
	}
	for {
		syscall.RawSyscall6(unix.SYS_EXIT_GROUP, uintptr(status), 0, 0, 0, 0, 0)
	}
}

// forked is the attack that makes a process by clone(2).
func forked(flags uintptr) func() syscall.Errno {
	return func() syscall.Errno {
		pid, e := fork(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0)
		if e == 0 {
			raw(unix.SYS_WAIT4, pid, 0, 0, 0)
		}
		return e
	}
}
