package attack

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ofParent is the attack that needs a pidfd of the supervisor, which is the first argument.
func ofParent(nr uintptr, args ...uintptr) func() syscall.Errno {
	return prepared(nr, func() syscall.Errno {
		fd, e := raw(unix.SYS_PIDFD_OPEN, parent, 0)
		if e != 0 {
			return e
		}
		_, e = raw(nr, append([]uintptr{fd}, args...)...)
		return e
	})
}

// executed forks a child that runs a program, which ends at once.
func executed() syscall.Errno {
	argv := [...]uintptr{text("sh"), text("-c"), text("exit 0"), 0}
	pid, e := fork(unix.SYS_CLONE, uintptr(unix.SIGCHLD), unix.SYS_EXECVE, text("/bin/sh"), uintptr(unsafe.Pointer(&argv)), at(uintptr(0)))
	if e != 0 {
		return e
	}
	var status unix.WaitStatus
	if _, e := raw(unix.SYS_WAIT4, pid, uintptr(unsafe.Pointer(&status)), 0, 0); e != 0 {
		return e
	}
	return syscall.Errno(status.ExitStatus())
}

func processes() []Attack {
	// One byte of the supervisor's, at an address that holds nothing in any process: the
	// permission is asked before.
	type vector struct{ base, length uintptr }
	mine, theirs := at(vector{room(), 1}), at(vector{8, 1})
	queued := at(unix.Siginfo{Code: -1}) // SI_QUEUE
	newThread := uintptr(unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD | unix.CLONE_SETTLS)
	mount := uintptr(unix.CLONE_NEWNS)

	return []Attack{
		{"fork", "go on after the worker is killed", by(), forked(0)},
		{"clone into a user namespace", "all capabilities, over much kernel code", by(), forked(unix.CLONE_NEWUSER)},
		{"clone into a mount namespace", "another view of the files", by(noCaps), forked(mount)},
		{"clone into a PID namespace", "processes of its own", by(noCaps), forked(unix.CLONE_NEWPID)},
		{"clone into a network namespace", "packets of its own", by(noCaps), forked(unix.CLONE_NEWNET)},
		{"clone into an IPC namespace", "kernel code for the privileged", by(noCaps), forked(unix.CLONE_NEWIPC)},
		{"clone into a UTS namespace", "kernel code for the privileged", by(noCaps), forked(unix.CLONE_NEWUTS)},
		{"clone into a cgroup namespace", "another view of the limits", by(noCaps), forked(unix.CLONE_NEWCGROUP)},
		{"clone with a pidfd", "a handle that outlives the number", by(), call(unix.SYS_CLONE, unix.CLONE_PIDFD|unix.CLONE_THREAD, 0, room())},          // EINVAL: no child
		{"clone a thread and a user namespace", "what hides behind a thread's flags", by(), call(unix.SYS_CLONE, newThread|unix.CLONE_NEWUSER, 0)},      // EINVAL
		{"clone a thread and a mount namespace", "what hides behind a thread's flags", by(), call(unix.SYS_CLONE, newThread|mount, 0)},                  // EINVAL
		{"clone with flags above 32 bits", "a filter that looks at the lower half", by(), call(unix.SYS_CLONE, newThread&^unix.CLONE_SIGHAND|1<<32, 0)}, // EINVAL
		{"clone3", "flags that no filter can see", answered("ENOSYS"), call(unix.SYS_CLONE3, 0, 0)},
		{"execve", "another program", by(), call(unix.SYS_EXECVE, text(""), 0, 0)},
		{"execveat", "another program, from memory", by(), call(unix.SYS_EXECVEAT, none, text(""), 0, 0, unix.AT_EMPTY_PATH)},
		{"run /bin/sh", "a shell", by(noFiles, noSuchFile), prepared(unix.SYS_EXECVE, executed)},
		{"ptrace the supervisor", "its memory, its code", by(outside, stranger, noSuchProcess), call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, parent, 0, 0)},
		{"read the supervisor's memory", "its secrets", by(outside, stranger, noSuchProcess), call(unix.SYS_PROCESS_VM_READV, parent, mine, 1, theirs, 1, 0)},
		{"write the supervisor's memory", "its code", by(outside, stranger, noSuchProcess), call(unix.SYS_PROCESS_VM_WRITEV, parent, mine, 1, theirs, 1, 0)},
		{"compare the supervisor's descriptors", "what it has open", by(outside, stranger, noSuchProcess), call(unix.SYS_KCMP, parent, parent, 0, 1, 1)},
		{"find the supervisor's robust futexes", "addresses in its memory", by(outside, stranger, noSuchProcess), call(unix.SYS_GET_ROBUST_LIST, parent, room(), room())},
		{"open a pidfd of the supervisor", "a handle on it", by(noSuchProcess), call(unix.SYS_PIDFD_OPEN, parent, 0)},
		{"take a descriptor of the supervisor", "its files and sockets", by(outside, stranger, noSuchProcess), ofParent(unix.SYS_PIDFD_GETFD, 0, 0)},
		{"advise on the supervisor's memory", "slow it down", by(noSuchProcess), ofParent(unix.SYS_PROCESS_MADVISE, 0, 0, unix.MADV_COLD, 0)},
		{"reap the supervisor's memory", "crash it", by(noSuchProcess), ofParent(unix.SYS_PROCESS_MRELEASE, 1)}, // no such flag
		{"signal the supervisor", "end it", by(noSignals, noSuchProcess), call(unix.SYS_KILL, parent, 0)},
		{"signal the supervisor's thread", "end it", by(noSignals, noSuchProcess), call(unix.SYS_TGKILL, parent, parent, 0)},
		{"signal the supervisor's thread by tkill", "end it", by(noSignals, noSuchProcess), call(unix.SYS_TKILL, parent, 0)},
		{"signal the supervisor by pidfd", "end it", by(noSignals, noSuchProcess), ofParent(unix.SYS_PIDFD_SEND_SIGNAL, 0, 0, 0)},
		{"signal the supervisor with a value", "mislead its handlers", by(noSignals, noSuchProcess), call(unix.SYS_RT_SIGQUEUEINFO, parent, 0, queued)},
		{"signal the supervisor's thread with a value", "mislead its handlers", by(noSignals, noSuchProcess), call(unix.SYS_RT_TGSIGQUEUEINFO, parent, parent, 0, queued)},
		{"signal every process", "end the session", by(noSuchProcess), call(unix.SYS_KILL, none, 0)}, // with Landlock the answer is 0, and nobody gets the signal
		{"limits of the supervisor", "cut its resources", by(noSuchProcess), call(unix.SYS_PRLIMIT64, parent, unix.RLIMIT_CPU, 0, room())},
		{"scheduling of the supervisor", "starve it", by(noSuchProcess), call(unix.SYS_SCHED_GETSCHEDULER, parent)},
		{"processors of the supervisor", "starve it", by(noSuchProcess), call(unix.SYS_SCHED_GETAFFINITY, parent, 4096, room())},
		{"session of the supervisor", "join its terminal", by(noSuchProcess), call(unix.SYS_GETSID, parent)},
		{"supervisor's process id", "a target", by(), call(unix.SYS_GETPPID)},
		{"setpgid", "leave the group that is killed", by(), call(unix.SYS_SETPGID, none, 0)},
		{"setsid", "leave the group that is killed", by(), call(unix.SYS_SETSID)},
		{"wait4", "take the end of a child from the runtime", by(), call(unix.SYS_WAIT4, none, 0, unix.WNOHANG, 0)},
		{"rt_sigaction", "survive SIGSYS by a handler", by(), call(unix.SYS_RT_SIGACTION, uintptr(unix.SIGSYS), 0, room(), 8)},
		{"setitimer", "signals without end", by(), call(unix.SYS_SETITIMER, 0, 0, room())},
		{"timer_create", "kernel memory", by(), call(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, 0, room())},
		{"sched_setscheduler", "all of the processor", by(), call(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_BATCH, room())},
		{"sched_setaffinity", "choose a neighbour's processor", by(), call(unix.SYS_SCHED_SETAFFINITY, 0, 0, 0)},
		{"setpriority -20", "all of the processor", by(), call(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, ^uintptr(19))},
	}
}
