package process

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func rawSocketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "worker channel"), nil
}

// awaitExit returns when pid is dead, and leaves it a zombie (waitid(2), WNOWAIT).
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// usage gives the processor time and the largest resident set of a process that is alive:
// clock_getcpuclockid(3) and /proc/PID/status. It is false where they cannot be had.
func usage(pid int) (cpu time.Duration, peak int64, ok bool) {
	const schedule = 2 // CPUCLOCK_SCHED, for the whole process
	var ts unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|schedule, &ts); err != nil {
		return 0, 0, false
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0, false
	}
	_, text, ok := strings.Cut(string(status), "\nVmHWM:")
	if !ok {
		return 0, 0, false
	}
	kib, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
	return time.Duration(ts.Nano()), kib << 10, err == nil
}

// peakBytes is the largest resident set; Linux counts it in KiB (getrusage(2)).
func peakBytes(state *os.ProcessState) int64 {
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss) << 10
	}
	return 0
}

// oomKills is how many processes the kernel's OOM killer has killed, on the whole
// system (/proc/vmstat, "oom_kill", since Linux 4.13). 0 if that cannot be read.
func oomKills() int64 {
	b, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			return n
		}
	}
	return 0
}
