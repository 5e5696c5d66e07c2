package attack

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// elsewhere is a user id that hardly any process has, and that no worker's user namespace maps.
const elsewhere = 0xfffffffe

// answered are the refusals of a call that seccomp does not kill for.
func answered(errno string) map[isolation.Layer][]string {
	return map[isolation.Layer][]string{isolation.Seccomp: {errno}}
}

// capable asks for capabilities that every set of root's has, and for no others.
func capable() syscall.Errno {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_KILL, Permitted: 1 << unix.CAP_KILL}}
	_, e := raw(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)))
	return e
}

// entered joins a namespace that the process is in already, which needs the same rights as any.
func entered() syscall.Errno {
	self, _ := raw(unix.SYS_GETPID)
	fd, e := raw(unix.SYS_PIDFD_OPEN, self, 0)
	if e != 0 {
		return e
	}
	_, e = raw(unix.SYS_SETNS, fd, unix.CLONE_NEWUTS)
	return e
}

func privileges() []Attack {
	unshare := func(flag uintptr) func() syscall.Errno { return call(unix.SYS_UNSHARE, flag) }
	prctl := func(option int, args ...uintptr) func() syscall.Errno {
		return call(unix.SYS_PRCTL, append([]uintptr{uintptr(option)}, args...)...)
	}
	long := text("a name that is longer than the 64 bytes which hosts and domains may have at most")
	tooLong := uintptr(65)
	noexec := at(unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC})
	change := answered("EINVAL") // what the kernel says about options that it does not know

	return []Attack{
		{"setresuid to another user", "that user's files", by(noCaps, answers(isolation.UserNamespace, "EINVAL")), call(unix.SYS_SETRESUID, elsewhere, elsewhere, elsewhere)},
		{"setresgid to another group", "that group's files", by(noCaps, answers(isolation.UserNamespace, "EINVAL")), call(unix.SYS_SETRESGID, elsewhere, elsewhere, elsewhere)},
		{"setuid to root", "root's files", by(), call(unix.SYS_SETUID, 0)},
		{"setgroups", "other groups' files", by(noCaps), call(unix.SYS_SETGROUPS, 0, 0)},
		{"setfsuid", "another user's files", by(), call(unix.SYS_SETFSUID, none)},
		{"capset", "a capability", by(noCaps), capable},
		{"capget", "learn its capabilities", by(), call(unix.SYS_CAPGET, at(unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), room())},
		{"unshare the user namespace", "all capabilities, over much kernel code", by(), unshare(unix.CLONE_NEWUSER)},
		{"unshare the mount namespace", "another view of the files", by(noCaps), unshare(unix.CLONE_NEWNS)},
		{"unshare the PID namespace", "processes of its own", by(noCaps), unshare(unix.CLONE_NEWPID)},
		{"unshare the network namespace", "packets of its own", by(noCaps), unshare(unix.CLONE_NEWNET)},
		{"unshare the IPC namespace", "kernel code for the privileged", by(noCaps), unshare(unix.CLONE_NEWIPC)},
		{"unshare the UTS namespace", "kernel code for the privileged", by(noCaps), unshare(unix.CLONE_NEWUTS)},
		{"unshare the cgroup namespace", "another view of the limits", by(noCaps), unshare(unix.CLONE_NEWCGROUP)},
		{"unshare the time namespace", "another clock", by(noCaps), unshare(unix.CLONE_NEWTIME)},
		{"unshare descriptors", "descriptors of its own", by(), unshare(unix.CLONE_FILES)},
		{"setns", "another process's namespaces", by(noCaps), prepared(unix.SYS_SETNS, entered)},
		{"mount", "another view of the files", by(noCaps, noMounts), call(unix.SYS_MOUNT, text("none"), text("/"), text("no such file system"), 0, 0)},
		{"umount2 /", "what is mounted over", by(noCaps, noMounts), call(unix.SYS_UMOUNT2, text("/"), unix.MNT_EXPIRE)}, // never the root directory: EINVAL
		{"pivot_root", "out of the empty root", by(noCaps, noMounts), call(unix.SYS_PIVOT_ROOT, text("/"), text("/"))},
		{"chroot", "out of the empty root", by(noCaps), call(unix.SYS_CHROOT, text("/"))},
		{"fsopen", "a file system of its own", by(noCaps), call(unix.SYS_FSOPEN, text("tmpfs"), 0)},
		{"fsconfig", "a file system of its own", by(), call(unix.SYS_FSCONFIG, none, 0, 0, 0, 0)},
		{"fsmount", "a file system of its own", by(noCaps), call(unix.SYS_FSMOUNT, none, 0, 0)},
		{"fspick", "other options of a mount", by(noCaps), call(unix.SYS_FSPICK, cwd, text("/"), 0)},
		{"open_tree", "a copy of the mounts", by(noCaps), call(unix.SYS_OPEN_TREE, cwd, text("/"), unix.OPEN_TREE_CLONE)},
		{"move_mount", "another view of the files", by(noCaps), call(unix.SYS_MOVE_MOUNT, none, text(""), none, text(""), unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)},
		{"mount_setattr", "a writable root", by(noCaps), call(unix.SYS_MOUNT_SETATTR, none, text(""), unix.AT_EMPTY_PATH, noexec, unsafe.Sizeof(unix.MountAttr{}))},
		{"statmount", "learn the host's mounts", by(), call(unix.SYS_STATMOUNT, 0, 0, 0, 0)},
		{"listmount", "learn the host's mounts", by(), call(unix.SYS_LISTMOUNT, 0, 0, 0, 0)},
		{"sethostname", "rename the host", by(noCaps), call(unix.SYS_SETHOSTNAME, long, tooLong)},
		{"setdomainname", "rename the host", by(noCaps), call(unix.SYS_SETDOMAINNAME, long, tooLong)},
		{"raise an own limit", "what the limits keep from others", by(noCaps, notHere), call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_RTPRIO, at(unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}), 0)},
		{"read an own limit", "how far it may go", by(), call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 0, room())},
		{"ioprio_set to real time", "all of the disk", by(noCaps, notHere), call(unix.SYS_IOPRIO_SET, 1, 0, 1<<13)}, // IOPRIO_WHO_PROCESS, IOPRIO_CLASS_RT
		{"personality", "memory at known addresses", by(), call(unix.SYS_PERSONALITY, 0x40000)},                     // ADDR_NO_RANDOMIZE (personality(2))
		{"prctl PR_SET_DUMPABLE", "let others look into it", change, prctl(unix.PR_SET_DUMPABLE, 1)},
		{"prctl PR_SET_NAME", "hide in a list of processes", change, prctl(unix.PR_SET_NAME, text("x"))},
		{"prctl PR_SET_PDEATHSIG", "live on without the supervisor", change, prctl(unix.PR_SET_PDEATHSIG, 0)},
		{"prctl PR_SET_CHILD_SUBREAPER", "keep what it forked", change, prctl(unix.PR_SET_CHILD_SUBREAPER, 0)},
		{"prctl PR_GET_SECCOMP", "learn what is around it", change, prctl(unix.PR_GET_SECCOMP)},
		{"prctl PR_GET_NO_NEW_PRIVS", "learn what is around it", change, prctl(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)},
		{"prctl PR_CAPBSET_READ", "learn what it could have", change, prctl(unix.PR_CAPBSET_READ, 0)},
		{"seccomp", "a filter that lets more through", by(), call(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, at(uint32(unix.SECCOMP_RET_ALLOW)))},
		{"landlock_create_ruleset", "learn what is around it", by(), call(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)},
		{"landlock_restrict_self", "rules of its own", by(), call(unix.SYS_LANDLOCK_RESTRICT_SELF, none, 0)},
		{"lsm_get_self_attr", "learn what is around it", by(), call(unix.SYS_LSM_GET_SELF_ATTR, 0, 0, 0, 0)},
		{"lsm_set_self_attr", "another security profile", by(), call(unix.SYS_LSM_SET_SELF_ATTR, 0, 0, 0, 0)},
		{"getuid", "who runs it", by(), call(unix.SYS_GETUID)},
	}
}
