package attack

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// scratch is a name in /tmp that nothing has.
func scratch() uintptr { return text(fmt.Sprintf("/tmp/codemode-attack-%016x", rand.Uint64())) }

// victim makes an empty file, has try attack it, and removes what is left of it.
func victim(nr uintptr, try func(name uintptr) syscall.Errno) func() syscall.Errno {
	name := scratch()
	return prepared(nr, func() syscall.Errno {
		fd, e := raw(unix.SYS_OPENAT, cwd, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
		if e != 0 {
			return e
		}
		e = try(name)
		raw(unix.SYS_UNLINKAT, cwd, name, 0)
		raw(unix.SYS_CLOSE, fd)
		return e
	})
}

// makes is the attack that puts something new into /tmp, which is removed again.
func makes(remove uintptr, nr uintptr, args func(name uintptr) []uintptr) func() syscall.Errno {
	name := scratch()
	return func() syscall.Errno {
		_, e := raw(nr, args(name)...)
		if e == 0 {
			raw(unix.SYS_UNLINKAT, cwd, name, remove)
		}
		return e
	}
}

func files() []Attack {
	open := func(path string, flags uintptr) func() syscall.Errno {
		return call(unix.SYS_OPENAT, cwd, text(path), flags)
	}
	// A handle of a kind that any file system may have, of no file.
	handle := struct {
		bytes uint32
		kind  int32
		id    [8]byte
	}{8, 1, [8]byte{}}
	return []Attack{
		{"open /etc/passwd", "the host's users", by(noFiles, noSuchFile), open("/etc/passwd", unix.O_RDONLY)},
		{"open /proc/self/mem", "write to memory that is read-only", by(noFiles, noSuchFile), open("/proc/self/mem", unix.O_RDWR)},
		{"open /proc/self/environ", "secrets of the environment", by(noFiles, noSuchFile), open("/proc/self/environ", unix.O_RDONLY)},
		{"open /proc/cmdline", "how the host was started", by(noFiles, noSuchFile), open("/proc/cmdline", unix.O_RDONLY)},
		{"open /dev/tty", "type on the operator's terminal", by(noFiles, noSuchFile, answers(isolation.ProcessGroup, "ENXIO")), open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY)},
		{"open / to list it", "the names of all files", by(noFiles), open("/", unix.O_RDONLY|unix.O_DIRECTORY)},
		{"open / by path only", "a handle to walk from", by(), open("/", unix.O_PATH)},
		{"openat2 /etc/passwd", "a newer way to open", by(noFiles, noSuchFile), call(unix.SYS_OPENAT2, cwd, text("/etc/passwd"), at(unix.OpenHow{}), unix.SizeofOpenHow)},
		{"create a file", "leave something behind", by(noFiles, noSuchFile), victim(unix.SYS_OPENAT, func(uintptr) syscall.Errno { return 0 })},
		{"create a nameless file in /", "fill the disk unseen", by(answers(isolation.EmptyRoot, "EROFS")), open("/", unix.O_TMPFILE|unix.O_WRONLY)},
		{"stat /etc/passwd", "learn what is there", by(noSuchFile), call(sysFstatat, cwd, text("/etc/passwd"), room(), 0)},
		{"statx /etc/passwd", "learn what is there", by(noSuchFile), call(unix.SYS_STATX, cwd, text("/etc/passwd"), 0, unix.STATX_BASIC_STATS, room())},
		{"statfs /", "learn the host's disks", by(), call(unix.SYS_STATFS, text("/"), room())},
		{"access /etc/passwd", "learn what is there", by(noSuchFile), call(unix.SYS_FACCESSAT, cwd, text("/etc/passwd"), unix.R_OK)},
		{"readlink /proc/self/exe", "where the worker is installed", by(noSuchFile), call(unix.SYS_READLINKAT, cwd, text("/proc/self/exe"), room(), 4096)},
		{"getcwd", "where the worker was started", by(), call(unix.SYS_GETCWD, room(), 4096)},
		{"chdir /etc", "walk the host's directories", by(noSuchFile), call(unix.SYS_CHDIR, text("/etc"))},
		{"delete a file", "destroy data", by(noFiles, noSuchFile), victim(unix.SYS_UNLINKAT, func(name uintptr) syscall.Errno {
			_, e := raw(unix.SYS_UNLINKAT, cwd, name, 0)
			return e
		})},
		{"rename a file", "replace a program", by(noFiles, noSuchFile), victim(unix.SYS_RENAMEAT2, func(name uintptr) syscall.Errno {
			_, e := raw(unix.SYS_RENAMEAT2, cwd, name, cwd, name, 0)
			return e
		})},
		{"truncate a file", "destroy data", by(), call(unix.SYS_TRUNCATE, text(""), 0)},
		{"chmod a file", "make a program of it", by(), call(unix.SYS_FCHMODAT, cwd, text(""), 0o700)},
		{"chown a file", "give a program to another user", by(noCaps, answers(isolation.UserNamespace, "EINVAL")), prepared(unix.SYS_FCHOWN, func() syscall.Errno {
			var pipe [2]int32 // as good as a file: anybody may own it
			if _, e := raw(unix.SYS_PIPE2, uintptr(unsafe.Pointer(&pipe)), 0); e != 0 {
				return e
			}
			_, e := raw(unix.SYS_FCHOWN, uintptr(pipe[0]), elsewhere, none)
			return e
		})},
		{"set an attribute of a file", "mark a program", by(), call(unix.SYS_SETXATTR, text(""), text("user.x"), text("x"), 1, 0)},
		{"change the times of a file", "hide what was done", by(), call(unix.SYS_UTIMENSAT, cwd, text(""), 0, 0)},
		{"make a directory", "leave something behind", by(noFiles, noSuchFile), makes(unix.AT_REMOVEDIR, unix.SYS_MKDIRAT, func(name uintptr) []uintptr { return []uintptr{cwd, name, 0o700} })},
		{"make a symbolic link", "mislead another program", by(noFiles, noSuchFile), makes(0, unix.SYS_SYMLINKAT, func(name uintptr) []uintptr { return []uintptr{text("/"), cwd, name} })},
		{"make a named pipe", "talk to another program", by(noFiles, noSuchFile), makes(0, unix.SYS_MKNODAT, func(name uintptr) []uintptr { return []uintptr{cwd, name, unix.S_IFIFO | 0o600, 0} })},
		{"make a device", "reach the disks", by(noFiles, noSuchFile, noCaps, notHere), makes(0, unix.SYS_MKNODAT, func(name uintptr) []uintptr { return []uintptr{cwd, name, unix.S_IFCHR | 0o600, 0x103} })}, // 1:3, /dev/null
		{"link a file", "keep a file that is deleted", by(), call(unix.SYS_LINKAT, cwd, text(""), cwd, text(""), 0)},
		{"name_to_handle_at /", "a name that passes walls", by(), call(unix.SYS_NAME_TO_HANDLE_AT, cwd, text("/"), room(), room(), 0)},
		{"open_by_handle_at", "open files past any wall of paths", by(noCaps), call(unix.SYS_OPEN_BY_HANDLE_AT, cwd, at(handle), unix.O_RDONLY)},
		{"duplicate the channel", "keep it when it is closed", by(), call(unix.SYS_DUP, 3)},
		{"duplicate stderr to a high number", "more descriptors", by(answers(isolation.Rlimits, "EBADF")), call(unix.SYS_DUP3, 2, 1000, 0)},
		{"duplicate descriptors that nobody gave", "use what was left open", by(answers(isolation.Descriptors, "EBADF")), func() syscall.Errno {
			var e syscall.Errno
			for fd := uintptr(16); fd < 64; fd++ { // the runtime's own are below
				if _, e = raw(unix.SYS_DUP, fd); e == 0 {
					break
				}
			}
			return e
		}},
		{"fcntl F_DUPFD of stderr", "more descriptors", by(), call(unix.SYS_FCNTL, 2, unix.F_DUPFD, 0)},
		{"fcntl F_SETOWN of the channel", "have the kernel signal others", by(), call(unix.SYS_FCNTL, 3, unix.F_SETOWN, 0)},
		{"ioctl TIOCSTI on stdin", "type on the operator's terminal", by(), call(unix.SYS_IOCTL, 0, unix.TIOCSTI, 0)}, // no character to type: EFAULT on a terminal
		{"pread64 of stdin", "read where write-only is meant", by(), call(unix.SYS_PREAD64, 0, room(), 0, 0)},
		{"writev to stderr", "more than the rate that is allowed", by(), call(unix.SYS_WRITEV, 2, 0, 0)},
		{"lseek of stdin", "read again", by(), call(unix.SYS_LSEEK, 0, 0, unix.SEEK_CUR)},
		{"fstat of stdin", "learn the host's devices", by(), call(unix.SYS_FSTAT, 0, room())},
		{"flock of stderr", "lock others out", by(), call(unix.SYS_FLOCK, 2, unix.LOCK_UN)},
		{"fallocate", "fill the disk", by(), call(unix.SYS_FALLOCATE, none, 0, 0, 1)},
		{"sendfile", "copy between descriptors", by(), call(unix.SYS_SENDFILE, none, none, 0, 1)},
		{"copy_file_range", "copy between descriptors", by(), call(unix.SYS_COPY_FILE_RANGE, none, 0, none, 0, 1, 0)},
		{"splice", "a source of kernel bugs", by(), call(unix.SYS_SPLICE, none, 0, none, 0, 1, 0)},
		{"vmsplice", "a source of kernel bugs", by(), call(unix.SYS_VMSPLICE, none, 0, 0, 0)},
		{"tee", "a source of kernel bugs", by(), call(unix.SYS_TEE, none, none, 1, 0)},
		{"pipe2", "more descriptors", by(), call(unix.SYS_PIPE2, room(), 0)},
		{"inotify_init1", "watch the host's files", by(), call(unix.SYS_INOTIFY_INIT1, 0)},
		{"fanotify_init", "watch and hold up the host's files", by(noCaps, notHere), call(unix.SYS_FANOTIFY_INIT, unix.FAN_CLASS_CONTENT, 0)},
		{"cachestat", "learn what others read", by(), call(unix.SYS_CACHESTAT, 0, room(), room(), 0)},
	}
}
