package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"golang.org/x/sys/unix"
)

// namespace is a kind of namespace: its layer, its flag for clone(2) and its name in
// /proc/PID/ns (namespaces(7)).
type namespace struct {
	layer isolation.Layer
	flag  uintptr
	file  string
}

var namespaces = []namespace{
	{isolation.UserNamespace, unix.CLONE_NEWUSER, "user"},
	{isolation.MountNamespace, unix.CLONE_NEWNS, "mnt"},
	{isolation.PIDNamespace, unix.CLONE_NEWPID, "pid"},
	{isolation.NetworkNamespace, unix.CLONE_NEWNET, "net"},
	{isolation.IPCNamespace, unix.CLONE_NEWIPC, "ipc"},
	{isolation.UTSNamespace, unix.CLONE_NEWUTS, "uts"},
	{isolation.CgroupNamespace, unix.CLONE_NEWCGROUP, "cgroup"},
}

// way is one way to fork a worker.
type way struct {
	user   bool // in a user namespace of its own
	mapped bool // whose root is a uid of its own, which takes a supervisor that is root
	others []namespace
	born   bool // in its cgroup, by CLONE_INTO_CGROUP (Linux 5.7)
	why    error
}

func (w way) has(layer isolation.Layer) bool {
	return slices.ContainsFunc(w.others, func(n namespace) bool { return n.layer == layer })
}

// ways lists the ways to fork, the best one first. Which of them this kernel, this user and
// this container allow is found by trying.
func (s *Spawner) ways() []way {
	var others []namespace
	user := false
	for _, n := range namespaces {
		if _, err := os.Stat("/proc/self/ns/" + n.file); err != nil || slices.Contains(s.cfg.Without, n.layer) {
			continue
		}
		if n.layer == isolation.UserNamespace {
			user = true
		} else {
			others = append(others, n)
		}
	}
	root := os.Geteuid() == 0
	var all []way
	add := func(w way) {
		all = append(all, w)
		all[len(all)-1].born = true
		all = append(all, w)
	}
	if user && root {
		add(way{user: true, mapped: true, others: others})
	}
	if uid, gid := s.cfg.Policy.Identity(); uid != 0 || gid != 0 {
		return all // an identity that was asked for and cannot be had is no identity
	}
	if user {
		add(way{user: true, others: others})
	}
	if root {
		add(way{others: others})
	}
	add(way{})
	return all
}

// attributes are what clone(2) and exec need for it.
func (w way) attributes(cgroupFD int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	for _, n := range w.others {
		a.Cloneflags |= n.flag
	}
	if w.born {
		a.UseCgroupFD, a.CgroupFD = true, cgroupFD
	}
	if w.user {
		a.Cloneflags |= unix.CLONE_NEWUSER
		// It begins as our uid, which is none inside, so that it can still read the code cache;
		// these are for becoming the root of its namespace, and for emptying its file system. It
		// gives them up with the rest (capabilities(7), "ambient").
		a.AmbientCaps = []uintptr{unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}
	}
	return a
}

// identify says who root of the worker's user namespace is outside (user_namespaces(7)). The
// worker becomes it when it has loaded its engine. SysProcAttr.UidMappings would do this before
// exec, and leave a pipe open each time that clone(2) fails (Go 1.26).
func (w way) identify(pid, uid, gid int) error {
	if !w.user {
		return nil
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	if !w.mapped {
		uid, gid = os.Geteuid(), os.Getegid()
		// Without it the kernel lets only a privileged parent map groups (Linux 3.19).
		if err := os.WriteFile(dir+"setgroups", []byte("deny"), 0); err != nil {
			return err
		}
	}
	if err := os.WriteFile(dir+"uid_map", fmt.Appendf(nil, "0 %d 1\n", uid), 0); err != nil {
		return err
	}
	return os.WriteFile(dir+"gid_map", fmt.Appendf(nil, "0 %d 1\n", gid), 0)
}

// refused tells that the kernel did not want to fork in this way; a worse one may do.
func refused(err error) bool {
	for _, no := range []error{
		unix.EPERM, unix.EACCES, // not allowed: sysctl, seccomp, AppArmor, the cgroup's owner
		unix.ENOSPC, unix.EUSERS, // /proc/sys/user/max_*_namespaces, nesting
		unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EBUSY, unix.EBADF, // not in this kernel, not into this cgroup
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// report says which namespaces the way has, and why it lacks the others.
func (w way) report(s *Spawner) isolation.Report {
	var r isolation.Report
	for _, n := range namespaces {
		switch {
		case slices.Contains(s.cfg.Without, n.layer):
		case n.layer == isolation.UserNamespace && w.user, w.has(n.layer):
			r.On(n.layer)
		default:
			status := isolation.Status{Layer: n.layer, State: isolation.Unavailable, Remedy: namespaceRemedy()}
			if _, err := os.Stat("/proc/self/ns/" + n.file); err != nil {
				status.Reason, status.Remedy = "this kernel was built without it", "use a kernel that has it (namespaces(7))"
			} else if w.why != nil {
				status.Reason = fmt.Sprintf("clone(2) for it failed: %v", w.why)
			}
			r.Set(status)
		}
	}
	return r
}

// namespaceRemedy looks for the switch that is off.
func namespaceRemedy() string {
	read := func(path string) string {
		b, _ := os.ReadFile(path)
		return strings.TrimSpace(string(b))
	}
	switch {
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "sysctl -w user.max_user_namespaces=10000"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "sysctl -w kernel.unprivileged_userns_clone=1"
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "allow user namespaces for the supervisor in an AppArmor profile (userns,), or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	}
	return "in a container, allow clone(2) with namespaces in its seccomp profile, or run the supervisor outside of it"
}

// checkHost finds what would only show later, as something else.
func checkHost() error {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return fmt.Errorf("reading /proc/self: %w: mount /proc where the supervisor runs", err)
	}
	if self != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("/proc is of another PID namespace (it calls this process %s, which is %d): mount /proc anew", self, os.Getpid())
	}
	// The Go runtime makes a system call on all threads by a queued signal each.
	const signals = 64
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_SIGPENDING, &limit); err == nil && limit.Cur < signals {
		return fmt.Errorf("RLIMIT_SIGPENDING is %d, and a worker needs %d to lock itself up: raise it (ulimit -i)", limit.Cur, signals)
	}
	return nil
}

// parentLayers are the layers that every fork here has.
func parentLayers() isolation.Report {
	var r isolation.Report
	r.On(isolation.ProcessGroup)
	r.On(isolation.ParentDeath)
	return r
}

// limitData lowers a worker's RLIMIT_DATA from outside (prlimit(2)): behind its seccomp
// filter it cannot do so itself.
func limitData(pid int, bytes uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &old); err != nil {
		return fmt.Errorf("reading RLIMIT_DATA of worker %d: %w", pid, err)
	}
	bytes = min(bytes, old.Max) // the supervisor itself may have less
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil); err != nil {
		return fmt.Errorf("setting RLIMIT_DATA of worker %d to %d: %w", pid, bytes, err)
	}
	return nil
}

// verify compares a worker's report, and the uid that it should have if that is not 0, with
// what the kernel says of the process (proc(5), /proc/PID/status). A /proc that does not show it, as one mounted with hidepid, shows no
// contradiction.
func verify(pid, uid int, r isolation.Report) error {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return nil
	}
	status := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			status[name] = strings.TrimSpace(value)
		}
	}
	if got := strings.Fields(status["Uid"]); uid > 0 {
		for _, id := range got { // real, effective, saved, file system
			if id != strconv.Itoa(uid) {
				return fmt.Errorf("the worker should be user %d, and /proc/%d/status has Uid: %s", uid, pid, got)
			}
		}
	}
	const none = "0000000000000000"
	for _, c := range []struct {
		layer isolation.Layer
		field string
		want  string
	}{
		{isolation.Seccomp, "Seccomp", "2"},
		{isolation.NoNewPrivs, "NoNewPrivs", "1"},
		{isolation.Capabilities, "CapEff", none},
		{isolation.Capabilities, "CapPrm", none},
		{isolation.Capabilities, "CapBnd", none},
	} {
		if got, ok := status[c.field]; ok && r.Get(c.layer).State == isolation.On && got != c.want {
			return fmt.Errorf("the worker says that %s is on, and /proc/%d/status has %s: %s, not %s", c.layer, pid, c.field, got, c.want)
		}
	}
	return nil
}
