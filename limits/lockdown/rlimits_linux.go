package lockdown

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// rlimits are the limits that a plan means.
func rlimits(p Plan) []rlimit {
	all := []rlimit{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},                // a dump would hold the guest's data
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, 0},              // no file grows; pipes and sockets do not count
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 0},          // also stops io_uring_setup, with ENOMEM
		{"RLIMIT_MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0},        // no POSIX message queues
		{"RLIMIT_RTPRIO", unix.RLIMIT_RTPRIO, 0},            // no real-time scheduling
		{"RLIMIT_NICE", unix.RLIMIT_NICE, 0},                // no better nice value
		{"RLIMIT_LOCKS", unix.RLIMIT_LOCKS, 0},              // no leases
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, maxFiles},     // Landlock's ruleset and its proofs need a few
		{"RLIMIT_STACK", unix.RLIMIT_STACK, 8 << 20},        // of the first thread; the others' are heap
		{"RLIMIT_SIGPENDING", unix.RLIMIT_SIGPENDING, 1024}, // syscall.AllThreadsSyscall queues one a thread and waits for ever for one that was not queued
	}
	if p.User && nprocIsLocal() {
		// Threads count. A Go program has one per processor and one per blocking call.
		all = append(all, rlimit{"RLIMIT_NPROC", unix.RLIMIT_NPROC, uint64(64 + runtime.GOMAXPROCS(0))})
	}
	if p.DataBytes > 0 {
		all = append(all, rlimit{"RLIMIT_DATA", unix.RLIMIT_DATA, p.DataBytes})
	}
	if p.CPUSeconds > 0 {
		all = append(all, rlimit{"RLIMIT_CPU", unix.RLIMIT_CPU, p.CPUSeconds})
	}
	return all
}

// nprocIsLocal tells whether RLIMIT_NPROC counts within the user namespace. Before Linux 5.14 it
// counts all that the user runs anywhere, and a limit that fits a worker would stop it at once.
func nprocIsLocal() bool {
	var u unix.Utsname
	var major, minor int
	if err := unix.Uname(&u); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
}
