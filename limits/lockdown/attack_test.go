//go:build linux

package lockdown

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// parent is the child's, from before it was locked.
var parent int

// raw makes a call with as many arguments as it needs.
func raw(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// fork makes a process with flags; one that comes to be ends at once.
func fork(flags uintptr) error {
	r, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if r == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

func address(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(p))
}

// block is memory for calls that want some.
var block [4096]byte

func at() uintptr { return uintptr(unsafe.Pointer(&block)) }

func socket(domain, kind int) error {
	fd, err := unix.Socket(domain, kind, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func openFile(path string, flags int) error {
	fd, err := unix.Open(path, flags, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func tcp(do func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

var loopback = &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}

// An attack is what a taken-over worker tries. Under the filter it ends in SIGSYS, unless refused
// says which error it gets instead.
type attack struct {
	name    string
	do      func() error
	refused error
}

// attacks holds all of SPEC 15.3, and what else the layers are for.
var attacks = []attack{
	{"open", func() error { return openFile("/etc/passwd", unix.O_RDONLY) }, nil},
	{"open-root", func() error { return openFile("/", unix.O_RDONLY|unix.O_DIRECTORY) }, nil},
	{"open-mem", func() error { return openFile("/proc/self/mem", unix.O_RDWR) }, nil},
	{"openat2", func() error { return raw(unix.SYS_OPENAT2, ^uintptr(99), address("/"), at(), 24) }, nil},
	{"create", func() error { return openFile("/lockdown-attack", unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL) }, nil},
	{"create-tmp", func() error {
		const name = "/dev/shm/lockdown-attack"
		err := openFile(name, unix.O_CREAT|unix.O_WRONLY)
		unix.Unlink(name)
		return err
	}, nil},
	{"stat", func() error { return unix.Stat("/etc", new(unix.Stat_t)) }, nil},
	{"readlink", func() error { _, err := unix.Readlink("/proc/self", block[:]); return err }, nil},
	{"unlink", func() error { return unix.Unlink("/dev/shm/lockdown-none") }, nil},
	{"chdir", func() error { return unix.Chdir("/") }, nil},
	{"getcwd", func() error { _, err := unix.Getcwd(block[:]); return err }, nil},
	{"name_to_handle_at", func() error { return raw(unix.SYS_NAME_TO_HANDLE_AT, ^uintptr(99), address("/"), at(), at()+1024, 0) }, nil},
	{"inotify", func() error { return raw(unix.SYS_INOTIFY_INIT1, 0) }, nil},
	{"exec", func() error { return unix.Exec("/bin/true", []string{"true"}, nil) }, nil},
	{"execveat", func() error { return raw(unix.SYS_EXECVEAT, 0, address(""), 0, 0, unix.AT_EMPTY_PATH) }, nil},
	{"fork", func() error { return fork(uintptr(unix.SIGCHLD)) }, nil},
	{"clone-newuser", func() error { return fork(unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)) }, nil},
	{"clone-shared", func() error { return fork(unix.CLONE_FILES | uintptr(unix.SIGCHLD)) }, nil},
	{"clone3", func() error { return raw(unix.SYS_CLONE3, at(), 88) }, unix.ENOSYS},
	{"unshare", func() error { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }, nil},
	{"setns", func() error { return raw(unix.SYS_SETNS, 0, 0) }, nil},
	{"tcp", func() error { return socket(unix.AF_INET, unix.SOCK_STREAM) }, nil},
	{"udp", func() error { return socket(unix.AF_INET, unix.SOCK_DGRAM) }, nil},
	{"unix", func() error { return socket(unix.AF_UNIX, unix.SOCK_STREAM) }, nil},
	{"netlink", func() error { return socket(unix.AF_NETLINK, unix.SOCK_RAW) }, nil},
	{"vsock", func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM) }, nil},
	{"alg", func() error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET) }, nil},
	{"packet", func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW) }, nil},
	{"tcp-connect", func() error { return tcp(func(fd int) error { return unix.Connect(fd, loopback) }) }, nil},
	{"tcp-bind", func() error {
		return tcp(func(fd int) error { return unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.Addr}) })
	}, nil},
	{"socketpair", func() error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err }, nil},
	{"sendmsg", func() error { return raw(unix.SYS_SENDMSG, 1, at(), 0) }, nil},
	{"recvmsg", func() error { return raw(unix.SYS_RECVMSG, 0, at(), 0) }, nil},
	{"kill-parent", func() error { return unix.Kill(parent, 0) }, nil},
	{"kill-all", func() error { return unix.Kill(-1, 0) }, nil},
	{"tgkill-parent", func() error { return unix.Tgkill(parent, parent, 0) }, nil},
	{"tkill", func() error { return raw(unix.SYS_TKILL, uintptr(unix.Gettid()), 0) }, nil},
	{"pidfd_open", func() error { return raw(unix.SYS_PIDFD_OPEN, uintptr(parent), 0) }, nil},
	{"ptrace", func() error { return raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(parent), 0, 0) }, nil},
	{"process_vm_readv", func() error { return raw(unix.SYS_PROCESS_VM_READV, uintptr(parent), 0, 0, 0, 0, 0) }, nil},
	{"kcmp", func() error { return raw(unix.SYS_KCMP, uintptr(parent), uintptr(parent), 0, 0, 0) }, nil},
	{"mmap-rwx", func() error { return raw(unix.SYS_MMAP, 0, 4096, 7, unix.MAP_PRIVATE|unix.MAP_ANON, ^uintptr(0), 0) }, nil},
	{"mmap-rx", func() error { return raw(unix.SYS_MMAP, 0, 4096, 5, unix.MAP_PRIVATE|unix.MAP_ANON, ^uintptr(0), 0) }, nil},
	{"mmap-shared", func() error { return raw(unix.SYS_MMAP, 0, 4096, 3, unix.MAP_SHARED|unix.MAP_ANON, ^uintptr(0), 0) }, nil},
	{"mmap-file", func() error { return raw(unix.SYS_MMAP, 0, 4096, 1, unix.MAP_PRIVATE, 0, 0) }, nil},
	{"mprotect", func() error { return raw(unix.SYS_MPROTECT, 0, 4096, unix.PROT_READ|unix.PROT_EXEC) }, nil},
	{"pkey_mprotect", func() error { return raw(unix.SYS_PKEY_MPROTECT, 0, 4096, 5, ^uintptr(0)) }, nil},
	{"mremap", func() error { return raw(unix.SYS_MREMAP, 0, 4096, 8192, 1) }, nil},
	{"remap_file_pages", func() error { return raw(unix.SYS_REMAP_FILE_PAGES, 0, 4096, 0, 0, 0) }, nil},
	{"mlock", func() error { return raw(unix.SYS_MLOCK, at(), 4096) }, nil},
	{"madvise-poison", func() error { return raw(unix.SYS_MADVISE, 0, 4096, unix.MADV_HWPOISON) }, nil},
	{"memfd_create", func() error { return raw(unix.SYS_MEMFD_CREATE, address("x"), 0) }, nil},
	{"memfd_secret", func() error { return raw(unix.SYS_MEMFD_SECRET, 0) }, nil},
	{"shmget", func() error { return raw(unix.SYS_SHMGET, 0, 4096, 0o1600) }, nil},
	{"userfaultfd", func() error { return raw(unix.SYS_USERFAULTFD, 1) }, nil},
	{"io_uring", func() error { return raw(unix.SYS_IO_URING_SETUP, 4, at()) }, nil},
	{"bpf", func() error { return raw(unix.SYS_BPF, 0, at(), 64) }, nil},
	{"keyctl", func() error { return raw(unix.SYS_KEYCTL, 0, ^uintptr(3), 1) }, nil},
	{"add_key", func() error { return raw(unix.SYS_ADD_KEY, address("user"), address("x"), at(), 1, ^uintptr(3)) }, nil},
	{"perf_event_open", func() error { return raw(unix.SYS_PERF_EVENT_OPEN, at(), 0, ^uintptr(0), ^uintptr(0), 0) }, nil},
	{"futex-pi", func() error { return raw(unix.SYS_FUTEX, at(), 6|128, 0, 0, 0, 0) }, nil},
	{"futex-requeue", func() error { return raw(unix.SYS_FUTEX, at(), 3|128, 0, 0, at()+4, 0) }, nil},
	{"mount", func() error { return unix.Mount("none", "/", "tmpfs", 0, "") }, nil},
	{"umount", func() error { return unix.Unmount("/", unix.MNT_DETACH) }, nil},
	{"pivot_root", func() error { return unix.PivotRoot("/", "/") }, nil},
	{"chroot", func() error { return unix.Chroot("/") }, nil},
	{"fsopen", func() error { return raw(unix.SYS_FSOPEN, address("tmpfs"), 0) }, nil},
	{"open_tree", func() error { return raw(unix.SYS_OPEN_TREE, ^uintptr(99), address("/"), 0) }, nil},
	{"setuid", func() error { return raw(unix.SYS_SETUID, 1) }, nil},
	{"setgroups", func() error { return raw(unix.SYS_SETGROUPS, 0, 0) }, nil},
	{"capset", func() error { return raw(unix.SYS_CAPSET, at(), at()) }, nil},
	{"sethostname", func() error { return unix.Sethostname([]byte("x")) }, nil},
	{"prlimit", func() error {
		return unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 10, Max: 1 << 10}, nil)
	}, nil},
	{"prctl-dumpable", func() error { return raw(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1) }, unix.EINVAL},
	{"prctl-seccomp", func() error { return raw(unix.SYS_PRCTL, unix.PR_GET_SECCOMP) }, unix.EINVAL},
	{"seccomp", func() error { return raw(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, at()) }, nil},
	{"landlock", func() error { return raw(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1) }, nil},
	{"personality", func() error { return raw(unix.SYS_PERSONALITY, 0xffffffff) }, nil},
	{"sched_setscheduler", func() error { return raw(unix.SYS_SCHED_SETSCHEDULER, 0, 0, at()) }, nil},
	{"sched_getaffinity", func() error { return raw(unix.SYS_SCHED_GETAFFINITY, 0, 128, at()) }, nil},
	{"setpriority", func() error { return unix.Setpriority(0, 0, -20) }, nil},
	{"init_module", func() error { return raw(unix.SYS_INIT_MODULE, at(), 1, address("")) }, nil},
	{"reboot", func() error { return raw(unix.SYS_REBOOT, 1, 2, 3, 0) }, nil}, // the wrong magic
	{"syslog", func() error { return raw(unix.SYS_SYSLOG, 10, 0, 0) }, nil},
	{"uname", func() error { return unix.Uname(new(unix.Utsname)) }, nil},
	{"sysinfo", func() error { return unix.Sysinfo(new(unix.Sysinfo_t)) }, nil},
	{"getuid", func() error { return raw(unix.SYS_GETUID) }, nil},
	{"dup", func() error { _, err := unix.Dup(0); return err }, nil},
	{"pipe2", func() error { return raw(unix.SYS_PIPE2, at(), 0) }, nil},
	{"fcntl", func() error { return raw(unix.SYS_FCNTL, 0, unix.F_GETFD) }, nil},
	{"ioctl-tiocsti", func() error { return raw(unix.SYS_IOCTL, 0, unix.TIOCSTI, at()) }, nil},
	{"epoll_create1", func() error { return raw(unix.SYS_EPOLL_CREATE1, 0) }, nil},
	{"timer_create", func() error { return raw(unix.SYS_TIMER_CREATE, 1, 0, at()) }, nil},
	{"rt_sigaction", func() error { return raw(unix.SYS_RT_SIGACTION, 10, 0, at(), 8) }, nil},
	{"x32", func() error { return raw(0x40000000 | unix.SYS_GETPID) }, nil},
	{"no-such-call", func() error { return raw(599) }, nil},
	{"files", func() error { // more descriptors than RLIMIT_NOFILE allows
		for range 2 * maxFiles {
			if _, err := unix.Dup(0); err != nil {
				return err
			}
		}
		return nil
	}, nil},
}

// harmless is what a worker needs, tried in the same way, so that a refusal says something.
var harmless = []attack{
	{"mmap-rw", func() error { return raw(unix.SYS_MMAP, 0, 4096, 3, unix.MAP_PRIVATE|unix.MAP_ANON, ^uintptr(0), 0) }, nil},
	{"tgkill-self", func() error { return unix.Tgkill(unix.Getpid(), unix.Gettid(), 0) }, nil},
	{"getrandom", func() error { return raw(unix.SYS_GETRANDOM, at(), 16, 0) }, nil},
	{"madvise", func() error { return raw(unix.SYS_MADVISE, 1<<40, 0, unix.MADV_DONTNEED) }, nil},
	{"ppoll", func() error { return raw(unix.SYS_PPOLL, 0, 0, uintptr(unsafe.Pointer(new(unix.Timespec)))) }, nil},
	{"clock_gettime", func() error { return raw(unix.SYS_CLOCK_GETTIME, 0, at()) }, nil},
	{"write", func() error { _, err := unix.Write(1, nil); return err }, nil},
}

func named(name string) attack {
	for _, a := range append(attacks, harmless...) {
		if a.name == name {
			return a
		}
	}
	panic("there is no attack " + name)
}

// try is the child's part: what each attack came to.
func try(names []string) int {
	runtime.LockOSThread()
	for _, name := range names {
		err := named(name).do()
		result := "done"
		var errno unix.Errno
		if errors.As(err, &errno) {
			result = unix.ErrnoName(errno)
		} else if err != nil {
			result = err.Error()
		}
		fmt.Printf("%s %s\n", name, result)
	}
	return 0
}

// SPEC 15.1, 15.3: with all layers on, every attack ends the process by SIGSYS, each in a process
// of its own, as root and as an unprivileged user (TestUnprivileged), with namespaces and without.
func TestAttacks(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			for _, a := range attacks {
				t.Run(a.name, func(t *testing.T) {
					c := m.start(t, "attack", m.plan(), a.name)
					line, end := c.line(), c.wait()
					if a.refused != nil {
						if want := a.name + " " + unix.ErrnoName(a.refused.(unix.Errno)); line != want || end.ExitStatus() != 0 {
							t.Errorf("got %q, %v; want %q", line, describe(end), want)
						}
						return
					}
					if line != "" || !end.Signaled() || end.Signal() != unix.SIGSYS {
						t.Errorf("got %q, %s; want SIGSYS", line, describe(end))
					}
				})
			}
			t.Run("harmless", func(t *testing.T) {
				var names []string
				for _, a := range harmless {
					names = append(names, a.name)
				}
				c := m.start(t, "attack", m.plan(), names...)
				for _, name := range names {
					if line := c.line(); line != name+" done" {
						t.Errorf("got %q, want %s done", line, name)
					}
				}
				if end := c.wait(); end.ExitStatus() != 0 {
					t.Error(describe(end))
				}
			})
		})
	}
}

func describe(end interface {
	Signaled() bool
	Signal() unix.Signal
	ExitStatus() int
}) string {
	if end.Signaled() {
		return "killed by " + unix.SignalName(end.Signal())
	}
	return fmt.Sprint("exit ", end.ExitStatus())
}

// SPEC 15.1: each layer refuses by itself what it is for. The row without any layer shows that the
// attack would have worked: a test that passes there as well proves nothing.
func TestSingleLayers(t *testing.T) {
	abi, _ := syscall.LandlockGetABIVersion()
	for _, c := range []struct {
		mode  mode
		layer isolation.Layer
		abi   int
		want  string // attack and result with the layer alone
		none  string // and with none; "" means done
	}{
		{plain, isolation.LandlockFiles, 1, "open EACCES", ""},
		{plain, isolation.LandlockFiles, 1, "open-root EACCES", ""},
		{plain, isolation.LandlockFiles, 1, "create-tmp EACCES", ""},
		{plain, isolation.LandlockFiles, 1, "exec EACCES", "-"},
		{plain, isolation.LandlockFiles, 1, "tcp-bind done", ""},
		{plain, isolation.LandlockNetwork, 4, "tcp-connect EACCES", "ECONNREFUSED"},
		{plain, isolation.LandlockNetwork, 4, "tcp-bind EACCES", ""},
		{plain, isolation.LandlockNetwork, 4, "open done", ""},
		{plain, isolation.LandlockScopes, 6, "kill-parent EPERM", ""},
		{plain, isolation.LandlockScopes, 6, "tgkill-parent EPERM", ""},
		{plain, isolation.LandlockScopes, 6, "open done", ""},
		{plain, isolation.LandlockScopes, 6, "tcp-bind done", ""},
		{namespaced, isolation.EmptyRoot, 0, "open ENOENT", ""},
		{namespaced, isolation.EmptyRoot, 0, "open-mem ENOENT", "-"},
		{namespaced, isolation.EmptyRoot, 0, "stat ENOENT", ""},
		{namespaced, isolation.EmptyRoot, 0, "exec ENOENT", "-"},
		{namespaced, isolation.EmptyRoot, 0, "create EROFS", "EACCES"},
		{namespaced, isolation.EmptyRoot, 0, "create-tmp ENOENT", ""},
		{namespaced, isolation.EmptyRoot, 0, "open-root done", ""},
		{namespaced, isolation.Capabilities, 0, "mount EPERM", ""},
		{namespaced, isolation.Capabilities, 0, "umount EPERM", "-"},
		{namespaced, isolation.Capabilities, 0, "fsopen EPERM", ""},
		{namespaced, isolation.Capabilities, 0, "sethostname EPERM", ""},
		{namespaced, isolation.Capabilities, 0, "setgroups EPERM", "-"},
		{namespaced, isolation.Rlimits, 0, "io_uring ENOMEM", ""},
		{namespaced, isolation.Rlimits, 0, "mlock EPERM", ""},
		{namespaced, isolation.Rlimits, 0, "prlimit EPERM", ""},
		{namespaced, isolation.Rlimits, 0, "files EMFILE", ""},
		{namespaced, isolation.Rlimits, 0, "setpriority EACCES", "-"},
	} {
		name, _, _ := strings.Cut(c.want, " ")
		t.Run(string(c.layer)+"/"+name, func(t *testing.T) {
			if c.abi > abi {
				t.Skipf("requires Landlock ABI %d, the kernel has %d", c.abi, abi)
			}
			r := c.mode.start(t, "attack", c.mode.only(c.layer), name)
			for _, l := range self {
				want := isolation.Off
				if l == c.layer || l == isolation.NoNewPrivs && c.abi > 0 {
					want = isolation.On
				}
				if s := r.report.Get(l); s.State != want {
					t.Errorf("%+v, want %s", s, want)
				}
			}
			if line := r.line(); line != c.want {
				t.Errorf("with %s alone: got %q, want %q", c.layer, line, c.want)
			}
			if c.none == "-" {
				return // that would change more than the child
			}
			if c.none == "" {
				c.none = "done"
			}
			if line := c.mode.start(t, "attack", c.mode.only(), name).line(); line != name+" "+c.none {
				t.Errorf("without any layer: got %q, want %q", line, name+" "+c.none)
			}
		})
	}
}

// seccomp alone, on a process that nothing else holds.
func TestSeccompAlone(t *testing.T) {
	for _, name := range []string{"open", "exec", "fork", "tcp", "mmap-rwx", "mount", "kill-parent", "ptrace", "x32"} {
		c := plain.start(t, "attack", plain.only(isolation.Seccomp), name)
		if s := c.report.Get(isolation.Seccomp); s.State != isolation.On {
			t.Fatalf("%+v", s)
		}
		if line, end := c.line(), c.wait(); line != "" || !end.Signaled() || end.Signal() != unix.SIGSYS {
			t.Errorf("%s: got %q, %s; want SIGSYS", name, line, describe(end))
		}
	}
}

// SPEC 15.1, second wall: where a kernel has no seccomp, all the others together still hold.
func TestWithoutSeccomp(t *testing.T) {
	abi, _ := syscall.LandlockGetABIVersion()
	if abi < 6 {
		t.Skipf("requires Landlock ABI 6, the kernel has %d", abi)
	}
	want := map[mode][]string{
		plain: {"open EACCES", "create-tmp EACCES", "exec EACCES", "tcp-connect EACCES", "tcp-bind EACCES", "kill-parent EPERM", "ptrace EPERM",
			"mount EPERM", "chroot EPERM", "io_uring ENOMEM", "mlock EPERM", "prlimit EPERM"},
		namespaced: {"open ENOENT", "create EROFS", "exec ENOENT", "tcp-connect EACCES", "tcp-bind EACCES", "mount EPERM", "umount EPERM", "chroot EPERM",
			"sethostname EPERM", "setgroups EPERM", "io_uring ENOMEM", "mlock EPERM", "prlimit EPERM", "open-root EACCES"},
	}
	for _, m := range modes {
		var names []string
		for _, w := range want[m] {
			name, _, _ := strings.Cut(w, " ")
			names = append(names, name)
		}
		c := m.start(t, "attack", m.plan(isolation.Seccomp), names...)
		for _, w := range want[m] {
			if line := c.line(); line != w {
				t.Errorf("%s: got %q, want %q", m.name, line, w)
			}
		}
	}
}

// The whole table as an unprivileged user, who has nothing that root could lend.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("requires root, to become somebody else")
	}
	rerun(t)
}
