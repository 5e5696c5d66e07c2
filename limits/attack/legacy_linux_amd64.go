package attack

import (
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

const sysFstatat = unix.SYS_NEWFSTATAT

// int80 makes a system call of the 32-bit kind; the result is negative for an errno.
func int80(nr uint32) int32

// compat calls getpid(2) by the entry that 32-bit programs use: numbers mean other calls there,
// so a filter must look at the architecture. A kernel without the entry raises a fault.
func compat() (e syscall.Errno) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			e = syscall.ENOSYS
		}
	}()
	if r := int80(20); r < 0 {
		return syscall.Errno(-r)
	}
	return 0
}

// legacy are the calls that only amd64 has, most of them older names of others.
func legacy() []Attack {
	const x32 = 0x40000000
	shut := by()
	shut[isolation.Seccomp] = append(shut[isolation.Seccomp], "ENOSYS") // no such entry, no hole
	return []Attack{
		{"open /etc/passwd by open(2)", "the host's users", by(noFiles, noSuchFile), call(unix.SYS_OPEN, text("/etc/passwd"), unix.O_RDONLY)},
		{"stat /etc/passwd by stat(2)", "learn what is there", by(noSuchFile), call(unix.SYS_STAT, text("/etc/passwd"), room())},
		{"fork by fork(2)", "go on after the worker is killed", by(), func() syscall.Errno {
			pid, e := fork(unix.SYS_FORK, 0, 0, 0, 0, 0)
			if e == 0 {
				raw(unix.SYS_WAIT4, pid, 0, 0, 0)
			}
			return e
		}},
		{"getpid by the 32-bit entry", "calls that a filter takes for others", shut, compat},
		{"getpid of x32", "calls that a filter does not know", by(), call(x32 | unix.SYS_GETPID)},
		{"execve of x32", "another program", by(), call(x32|520, text(""), 0, 0)},
		{"ptrace of x32", "the supervisor's memory", by(), call(x32|521, none, parent, 0, 0)},         // no such request
		{"arch_prctl", "another base for addresses", by(), call(unix.SYS_ARCH_PRCTL, 0x1004, room())}, // ARCH_GET_GS
		{"modify_ldt", "segments, a source of kernel bugs", by(), call(unix.SYS_MODIFY_LDT, 0, room(), 16)},
		{"ioperm", "devices, without a driver", by(noCaps, notHere), call(unix.SYS_IOPERM, 0x80, 1, 1)}, // the port that BIOSes show their progress on
		{"iopl", "devices, without a driver", by(noCaps, notHere), call(unix.SYS_IOPL, 3)},
		{"access by access(2)", "learn what is there", by(noSuchFile), call(unix.SYS_ACCESS, text("/etc/passwd"), unix.R_OK)},
		{"dup2", "replace the channel", by(), call(unix.SYS_DUP2, 2, 2)},
		{"epoll_wait", "an older way", by(), call(unix.SYS_EPOLL_WAIT, none, 0, 0, 0)},
		{"time", "an older clock", by(), call(unix.SYS_TIME, 0)},
		{"uselib", "load a library", by(), call(unix.SYS_USELIB, text(""))},
		{"sysfs", "learn the kernel's file systems", by(), call(unix.SYS_SYSFS, 3)},
	}
}
