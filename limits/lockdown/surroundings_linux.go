package lockdown

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// checkEnvironment looks at what execve(2) brought: os.Clearenv changes only Go's copy.
func checkEnvironment() error {
	env, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	if n := bytes.Count(env, []byte{0}); n > 0 {
		return fmt.Errorf("the worker was started with %d environment variables", n)
	}
	return nil
}

// CloseInherited closes the descriptors from first on that execve(2) left open: those without
// FD_CLOEXEC. All that the Go runtime opened before main, an epoll, an eventfd and perhaps a
// cgroup's cpu.max, has it and stays.
func CloseInherited(first int) error {
	return closeEach(func(fd int) bool {
		if fd < first {
			return false
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return err == nil && flags&unix.FD_CLOEXEC == 0
	})
}

const fdDir = "/proc/self/fd/"

// closeEach closes the descriptors for which which is true. It is also asked about that of the
// listing itself, which is gone by then.
func closeEach(which func(fd int) bool) error {
	entries, err := os.ReadDir(fdDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || !which(fd) {
			continue
		}
		if err := unix.Close(fd); err != nil && err != unix.EINTR { // close(2): EINTR has closed it
			return fmt.Errorf("closing descriptor %d: %w", fd, err)
		}
	}
	return nil
}

// setOOMScore makes the worker the first to go. Raising the score needs no capability (proc_pid_oom_score_adj(5)).
func setOOMScore() error {
	const file, most = "/proc/self/oom_score_adj", "1000"
	if err := os.WriteFile(file, []byte(most), 0); err != nil {
		return err
	}
	got, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if string(bytes.TrimSpace(got)) != most {
		return fmt.Errorf("%s is %q after %s was written", file, got, most)
	}
	return nil
}

// becomeRoot takes the user namespace's uid and gid 0, which are the host's unprivileged ones,
// and gives up all supplementary groups where that is allowed. Package syscall reaches all threads.
func becomeRoot() error {
	// An unprivileged user's namespace has "deny" there: to drop a group can give rights
	// (user_namespaces(7)). A parent with privileges must not leave its groups to the worker.
	if err := syscall.Setgroups(nil); err != nil {
		denied, readErr := os.ReadFile("/proc/self/setgroups")
		if readErr != nil || strings.TrimSpace(string(denied)) != "deny" {
			return fmt.Errorf("setgroups([]): %w", err)
		}
	}
	if err := syscall.Setresgid(0, 0, 0); err != nil {
		return fmt.Errorf("setresgid(0, 0, 0): %w", err)
	}
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		return fmt.Errorf("setresuid(0, 0, 0): %w", err)
	}
	ruid, euid, suid := unix.Getresuid()
	rgid, egid, sgid := unix.Getresgid()
	if ruid|euid|suid|rgid|egid|sgid != 0 {
		return fmt.Errorf("uids are %d %d %d and gids %d %d %d after both became 0", ruid, euid, suid, rgid, egid, sgid)
	}
	return nil
}

// armParentDeath asks for SIGKILL when the thread that forked the worker ends. The kernel looks
// at each thread's setting and kills the process for the first; threads that are made later have none.
func armParentDeath() error {
	if err := allThreads("PR_SET_PDEATHSIG", unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)); err != nil {
		return err
	}
	var got int32 // the kernel writes an int
	if _, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&got)), 0, 0, 0, 0); errno != 0 || got != int32(unix.SIGKILL) {
		return fmt.Errorf("PR_GET_PDEATHSIG gives %d, %v after SIGKILL was set", got, errno)
	}
	return nil
}

// emptyRoot swaps the root for an empty, read-only tmpfs and lets go of the old tree. Descriptors
// that are open stay open.
func emptyRoot(swap func() error) error {
	// Nothing may travel between this namespace and the host's, nor may pivot_root(2) find a
	// shared mount.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making / a private mount: %w", err)
	}
	// Any directory does. This one is there, or Begin could not have done its work.
	const at = "/proc"
	if err := unix.Mount("none", at, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,nr_inodes=2,mode=0555"); err != nil {
		return fmt.Errorf("mounting a tmpfs over %s: %w", at, err)
	}
	if err := unix.Chdir(at); err != nil {
		return fmt.Errorf("chdir(%s): %w", at, err)
	}
	if err := swap(); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("chdir to the empty root: %w", err)
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return fmt.Errorf("reading the empty root: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("the empty root has %d entries", len(entries))
	}
	if err := unix.Mkdir("/x", 0o700); err != unix.EROFS {
		return fmt.Errorf("mkdir in the empty root: %v, want EROFS", err)
	}
	return nil
}

// swapRoot makes the working directory, a mount, the root of all threads.
func swapRoot() error {
	// pivot_root(".", ".") puts the old root on top of the new one: pivot_root(2), NOTES.
	err := unix.PivotRoot(".", ".")
	if err == unix.EINVAL {
		return moveRoot()
	}
	if err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detaching the old root: %w", err)
	}
	return nil
}

// moveRoot is swapRoot for an initramfs, which cannot be unmounted and so not be pivoted away.
func moveRoot() error {
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("pivot_root: %w; moving the empty root over /: %w", unix.EINVAL, err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("pivot_root: %w; chroot into the empty root, which needs CAP_SYS_CHROOT: %w", unix.EINVAL, err)
	}
	return nil
}
