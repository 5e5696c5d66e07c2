package process

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dirPrefix begins the names of runtime directories that are in use. While one is made
	// it has another name, so that what a sweep sees always has its lock.
	dirPrefix    = "codemode-run-"
	makingPrefix = "codemode-new-"

	// A directory with such a file is ours to remove; nothing else ever is.
	lockName = "codemode-supervisor.lock"
	lockText = "This directory belongs to a running codemode-supervisor, which holds a lock on this file.\n"

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
	making, err := os.MkdirTemp(base, makingPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("%w (set TMPDIR to a directory that exists and can be written)", err)
	}
	if err = os.WriteFile(filepath.Join(making, lockName), []byte(lockText), 0o600); err == nil {
		if lock, err = lockDir(making); err == nil {
			dir = filepath.Join(base, dirPrefix+filepath.Base(making)[len(makingPrefix):])
			err = os.Rename(making, dir) // a name that was random is free
		}
	}
	if err != nil {
		os.RemoveAll(making)
		return "", nil, err
	}
	return dir, lock, nil
}

// lockDir takes a directory's lock, which is free again when the process is gone
// (flock(2)). A worker does not inherit it.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	text := make([]byte, len(lockText)+1)
	if n, _ := io.ReadFull(f, text); string(text[:n]) != lockText {
		f.Close()
		return nil, fmt.Errorf("%q is not a lock of ours", f.Name())
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %q: %w", f.Name(), err)
	}
	return f, nil
}

// makingTime is how long a directory may have been half made before its maker is taken for dead.
const makingTime = time.Minute

// sweep removes the directories whose owners are gone: those with a lock of ours that is
// free, and those that somebody was killed in the middle of making.
func sweep(base string) {
	entries, _ := os.ReadDir(base)
	for _, e := range entries {
		making := strings.HasPrefix(e.Name(), makingPrefix)
		if !e.IsDir() || !making && !strings.HasPrefix(e.Name(), dirPrefix) {
			continue
		}
		dir := filepath.Join(base, e.Name())
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !ours(info) || making && time.Since(info.ModTime()) < makingTime {
			continue
		}
		if making { // killed before the lock's text was written: nothing else can be in there
			if lock, err := os.Lstat(filepath.Join(dir, lockName)); err == nil && lock.Mode().IsRegular() && lock.Size() == 0 {
				os.Remove(filepath.Join(dir, lockName))
			}
			os.Remove(dir) // only if it is empty
		}
		if lock, err := lockDir(dir); err == nil {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
}
