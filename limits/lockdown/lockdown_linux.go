package lockdown

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// Remedies that several steps have.
const (
	remedyProc       = "mount /proc where the supervisor runs"
	remedyNamespaces = "allow user namespaces: user.max_user_namespaces above 0, and where they exist kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0"
	remedyCgo        = "build qjs-worker with CGO_ENABLED=0"
	remedyKernel     = "run Linux 6.12 or newer, which has all layers"
)

var errCgo = remedied{errors.New("the worker was built with cgo, in which not every thread can be reached"), remedyCgo}

// Begin does what must come first, and returns the lock-down to be finished. It closes inherited
// descriptors from first on.
func Begin(p Plan, first int) *Lockdown {
	// The first use of local time would open /etc/localtime, and a locked process dies of that.
	time.Local = time.UTC
	l := &Lockdown{plan: p}
	l.apply(isolation.Environment, "start the worker with an empty environment", checkEnvironment)
	l.apply(isolation.Descriptors, remedyProc, func() error { return CloseInherited(first) })
	l.apply(isolation.OOMScore, remedyProc, setOOMScore)
	if !p.without(isolation.Capabilities) {
		l.begun = emptyBoundingSet()
	}
	return l
}

// Finish applies all other layers, to all threads, and reports each. It never fails: who reads
// the report decides whether that is enough. It is to be called once, when nothing is left to be
// opened.
func (l *Lockdown) Finish() isolation.Report {
	p := l.plan
	if p.User {
		// The host reports the namespace; a worker that kept its parent's uid is not alone in it.
		if err := becomeRoot(); err != nil {
			l.unavailable(isolation.UserNamespace, err, "map uid and gid 0 of the worker's user namespace, and let it have CAP_SETUID and CAP_SETGID there")
		}
	}
	if p.ParentDeath {
		l.apply(isolation.ParentDeath, remedyCgo, armParentDeath)
	}
	l.apply(isolation.EmptyRoot, remedyNamespaces, func() error {
		if !p.Mount {
			return errors.New("the worker has no mount namespace of its own")
		}
		return emptyRoot(swapRoot)
	})
	l.apply(isolation.Rlimits, "start the supervisor with hard limits that can be lowered", func() error { return setRlimits(p) })
	l.apply(isolation.Capabilities, remedyNamespaces, func() error { return dropCapabilities(l.begun) })
	l.apply(isolation.NoNewPrivs, remedyKernel, setNoNewPrivs)
	l.landlock()
	l.apply(isolation.Seccomp, "run a kernel with CONFIG_SECCOMP_FILTER, on amd64 or arm64", installFilter)
	return l.report
}

// allThreads makes a prctl(2) on every thread.
func allThreads(name string, option, arg uintptr) error {
	if cgo {
		return errCgo
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, option, arg, 0); errno != 0 {
		return fmt.Errorf("prctl(%s, %#x): %w", name, arg, errno)
	}
	return nil
}

// prctl asks the kernel something about this thread.
func prctl(option int, arg uintptr) (int, error) {
	r, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, uintptr(option), arg, 0, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}
