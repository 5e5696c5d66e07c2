package process

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dirPrefix = "codemode-"
	lockName  = "lock"

	// socketRoom is what go-plugin puts behind our directory for its socket:
	// /plugin-dir and /plugin, each with up to ten digits.
	socketRoom = len("/plugin-dir0123456789/plugin0123456789")

	// maxSocketPath is what a unix socket's address holds, NUL excluded, on the system
	// with the least of it (unix(7): 108 bytes on Linux, 104 on Darwin).
	maxSocketPath = 103
)

// runtimeDir makes a directory of our own, in TMPDIR or, where a socket's path would be too
// long there, in /tmp. It holds a lock for as long as its owner lives. Directories whose
// owners were killed are removed (SPEC 16.3).
func runtimeDir() (dir string, lock *os.File, err error) {
	base := os.TempDir()
	if len(base)+len("/"+dirPrefix+"0123456789")+socketRoom > maxSocketPath {
		base = "/tmp"
	}
	sweep(base)
	if dir, err = os.MkdirTemp(base, dirPrefix); err != nil {
		return "", nil, err
	}
	if lock, err = lockDir(dir, os.O_CREATE); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, lock, nil
}

// lockDir takes a directory's lock, which is free again when the process is gone
// (flock(2)). A worker does not inherit it.
func lockDir(dir string, flag int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %q: %w", f.Name(), err)
	}
	return f, nil
}

// sweep removes what killed supervisors left behind. One that has not come to locking its
// directory yet is given a minute.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, dirPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !ours(info) {
			continue
		}
		lock, err := lockDir(dir, 0)
		switch {
		case err == nil:
			os.RemoveAll(dir)
			lock.Close()
		case os.IsNotExist(err) && time.Since(info.ModTime()) > time.Minute:
			os.RemoveAll(dir)
		}
	}
}
