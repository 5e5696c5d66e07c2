package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long we wait for killed processes to be gone. A process that dies has at most its
// memory to give back; one that takes longer hangs in the kernel.
const patience = 2 * time.Second

// until calls done, again and again and ever slower, until it is true or patience is over.
func until(done func() bool) bool {
	wait := 20 * time.Microsecond
	for end := time.Now().Add(patience); ; wait = min(2*wait, 10*time.Millisecond) {
		if done() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(wait)
	}
}

// remove removes one group without children, which is busy (EBUSY) as long as a process of it has not
// quite exited. Zombies do not count (cgroup-v2.rst, "Populated Notification").
func remove(dir string) error {
	var err error
	until(func() bool {
		err = unix.Rmdir(dir)
		return !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EINTR)
	})
	if err != nil && !gone(err) {
		return fmt.Errorf("removing cgroup %q: %w", dir, err)
	}
	return nil
}

// removeTree removes a group with all groups in it.
func removeTree(dir string) error {
	var errs []error
	for _, child := range children(dir) {
		errs = append(errs, removeTree(child))
	}
	return errors.Join(append(errs, remove(dir))...)
}

// children lists the groups in a group.
func children(dir string) []string {
	entries, _ := os.ReadDir(dir) // a group that is gone has none
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	return dirs
}

// killTree kills all processes in a group and in the groups in it, and waits for their end.
func killTree(dir string) error {
	dirs := []string{dir}
	for i := 0; i < len(dirs); i++ {
		dirs = append(dirs, children(dirs[i])...)
	}
	_ = writeFile(filepath.Join(dir, "cgroup.kill"), "1") // where there is one; it reaches the children
	return killEach(dirs)
}

// killEach kills the processes in the groups one by one, until the groups are empty.
func killEach(dirs []string) error {
	for _, dir := range dirs {
		_ = writeFile(filepath.Join(dir, "pids.max"), "0") // where there is one: now no fork outruns us
	}
	left := 0
	if until(func() bool {
		left = 0
		for _, dir := range dirs {
			left += killOnce(dir)
		}
		return left == 0
	}) {
		return nil
	}
	return fmt.Errorf("killing the processes of %q: %d are still there after %v", dirs, left, patience)
}

// killOnce sends SIGKILL to the processes that are in the group now, and tells how many were.
//
// A pid that was read may be another process's a moment later. A pidfd (Linux 5.3) stays with the process
// that it was opened for; if the pid is still in the group after that, it is the right one.
func killOnce(dir string) int {
	pids, _ := processes(dir) // a group that is gone is empty
	count := len(pids)
	if count == 0 {
		return 0
	}
	pids = pids[:min(count, 200)] // the rest in the next round: each takes a descriptor
	fds := make([]int, len(pids))
	for i, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			fd = -1 // it is gone, or in a pid namespace that we do not see (pid 0)
		}
		if errors.Is(err, unix.ENOSYS) {
			fd = noPidfd
		}
		fds[i] = fd
	}
	still, _ := processes(dir)
	for i, pid := range pids {
		if in := slices.Contains(still, pid); in && fds[i] >= 0 {
			_ = unix.PidfdSendSignal(fds[i], unix.SIGKILL, nil, 0) // the next round sees whether it helped
		} else if in && fds[i] == noPidfd && pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if fds[i] >= 0 {
			unix.Close(fds[i])
		}
	}
	return count
}

const noPidfd = -2 // in place of a descriptor: the kernel has none

// processes lists the pids in a group; 0 stands for one that our pid namespace does not show.
func processes(dir string) ([]int, error) {
	text, err := readFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, word := range strings.Fields(text) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%q in %q is no pid", word, dir)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
