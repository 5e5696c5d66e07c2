package attack

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func kernel() []Attack {
	// Each of these has the permission asked before an argument that cannot be.
	west := at([2]int32{10000})                  // minutes west; 15 hours is the most
	tick := at(unix.Timex{Modes: unix.ADJ_TICK}) // of 0 µs

	type createMap struct{ kind, keyBytes, valueBytes, entries uint32 }
	nextID := [3]uint32{} // start, next, flags
	array := at(createMap{unix.BPF_MAP_TYPE_ARRAY, 4, 4, 1})
	clock := at(unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))})

	return []Attack{
		{"bpf to make a map", "kernel memory, the verifier", by(), call(unix.SYS_BPF, unix.BPF_MAP_CREATE, array, unsafe.Sizeof(createMap{}))},
		{"bpf to list programs", "what the host watches", by(noCaps, notHere), call(unix.SYS_BPF, unix.BPF_PROG_GET_NEXT_ID, at(nextID), unsafe.Sizeof(nextID))},
		{"perf_event_open of a processor", "what others compute", by(), call(unix.SYS_PERF_EVENT_OPEN, clock, none, 0, none, 0)},
		{"perf_event_open of itself", "a source of kernel bugs", by(), call(unix.SYS_PERF_EVENT_OPEN, clock, 0, none, none, 0)},
		{"io_uring_setup", "system calls past a filter", by(), call(unix.SYS_IO_URING_SETUP, 4, room())},
		{"io_uring_enter", "system calls past a filter", by(), call(unix.SYS_IO_URING_ENTER, none, 0, 0, 0, 0, 0)},
		{"io_uring_register", "system calls past a filter", by(), call(unix.SYS_IO_URING_REGISTER, none, 0, 0, 0)},
		{"io_setup", "an older way around", by(), call(unix.SYS_IO_SETUP, 1, room())},
		{"keyctl", "the user's keys", by(), call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 1)},                       // KEY_SPEC_SESSION_KEYRING
		{"add_key", "kernel memory", by(), call(unix.SYS_ADD_KEY, text("user"), text("codemode-attack"), text("x"), 1, ^uintptr(1))}, // KEY_SPEC_PROCESS_KEYRING: ends with the worker
		{"request_key", "the user's keys", by(), call(unix.SYS_REQUEST_KEY, text("user"), text("codemode-attack"), 0, 0)},
		{"init_module", "code in the kernel", by(noCaps, notHere), call(unix.SYS_INIT_MODULE, 0, 0, text(""))},
		{"finit_module", "code in the kernel", by(noCaps, notHere), call(unix.SYS_FINIT_MODULE, none, text(""), 0)},
		{"delete_module", "less of the kernel", by(noCaps, notHere), call(unix.SYS_DELETE_MODULE, text("codemode_attack"), unix.O_NONBLOCK)},
		{"kexec_load", "another kernel", by(noCaps, notHere), call(unix.SYS_KEXEC_LOAD, 0, none, 0, 0)},
		{"kexec_file_load", "another kernel", by(noCaps, notHere), call(unix.SYS_KEXEC_FILE_LOAD, none, none, 0, 0, 0)},
		{"reboot", "stop the host", by(noCaps, notHere), call(unix.SYS_REBOOT, 0, 0, 0, 0)}, // no magic
		{"swapon", "write memory to a disk", by(noCaps, notHere), call(unix.SYS_SWAPON, text(""), 0)},
		{"swapoff", "memory for everybody", by(noCaps, notHere), call(unix.SYS_SWAPOFF, text(""))},
		{"acct", "write to any file", by(noCaps, notHere), call(unix.SYS_ACCT, text(""))},
		{"quotactl", "lift a limit on disks", by(), call(unix.SYS_QUOTACTL, none, 0, 0, 0)},
		{"settimeofday", "another time for everybody", by(noCaps, notHere), call(unix.SYS_SETTIMEOFDAY, 0, west)},
		{"clock_settime", "another time for everybody", by(), call(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, 0)},
		{"adjtimex", "another time for everybody", by(noCaps, notHere), call(unix.SYS_ADJTIMEX, tick)},
		{"clock_adjtime", "another time for everybody", by(noCaps, notHere), call(unix.SYS_CLOCK_ADJTIME, unix.CLOCK_REALTIME, tick)},
		{"syslog", "the kernel's messages", by(noCaps, notHere), call(unix.SYS_SYSLOG, 8, 0, 0)}, // SYSLOG_ACTION_CONSOLE_LEVEL, of no level
		{"sysinfo", "learn the host's load", by(), call(unix.SYS_SYSINFO, room())},
		{"uname", "learn the kernel's version", by(), call(unix.SYS_UNAME, room())},
		{"getcpu", "learn its neighbours", by(), call(unix.SYS_GETCPU, room(), room(), 0)},
		{"sync_file_range", "disk traffic", by(), call(unix.SYS_SYNC_FILE_RANGE, none, 0, 0, 0)},
		{"eventfd2", "more descriptors", by(), call(unix.SYS_EVENTFD2, 0, 0)},
		{"epoll_create1", "more descriptors", by(), call(unix.SYS_EPOLL_CREATE1, 0)},
		{"timerfd_create", "more descriptors", by(), call(unix.SYS_TIMERFD_CREATE, unix.CLOCK_MONOTONIC, 0)},
		{"signalfd4", "more descriptors", by(), call(unix.SYS_SIGNALFD4, none, room(), 8, 0)},
		{"a system call that does not exist", "those of kernels to come", by(), call(900)},
	}
}
