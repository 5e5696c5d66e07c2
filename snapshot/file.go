package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Op is something that can fail on the way to the disk; see [DiskOptions].
type Op string

const (
	OpWrite  Op = "write"
	OpSync   Op = "sync"   // of a file, or of the directory that names it
	OpRename Op = "rename" // of a finished file to its name
	OpCommit Op = "commit" // of the database
	OpRemove Op = "remove" // of an image that nothing names any more
)

// fault is DiskOptions.Fault; nil never fails.
type fault func(op Op, name string) error

func (f fault) at(op Op, path string) error {
	if f == nil {
		return nil
	}
	return f(op, filepath.Base(path))
}

// partSuffix ends the names of files that are not finished.
const partSuffix = ".part"

// writeFile makes a file that is there as a whole, and durable, or not at all. The caller
// holds a lock under which nobody else makes a file of this name.
func (f fault) writeFile(path string, data []byte) error {
	removePart(path) // only key and database have names that come again
	part := path + partSuffix
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err = f.write(file, data); err == nil {
		err = f.sync(file)
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = f.publish(part, path)
	}
	if err != nil {
		os.Remove(part)
	}
	return err
}

// publish gives a finished file its name, and makes the name durable.
func (f fault) publish(part, path string) error {
	if err := f.at(OpRename, path); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return f.syncDir(filepath.Dir(path))
}

func (f fault) write(file *os.File, data []byte) error {
	if err := f.at(OpWrite, file.Name()); err != nil {
		return err
	}
	_, err := file.Write(data)
	return err
}

func (f fault) sync(file *os.File) error {
	if err := f.at(OpSync, file.Name()); err != nil {
		return err
	}
	return file.Sync()
}

func (f fault) syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return f.sync(file)
}

// makeDir makes the state directory. It refuses one that others could read or change, and
// one that is somebody else's: what is not needed here is removed. That is said first, so
// that nobody is told to close a directory that we must not use.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	const what, remedy = "the state directory", "choose another directory"
	mode, err := ownDir(what, dir, remedy)
	if err == nil {
		err = noStrangers(dir)
	}
	if err == nil {
		err = closedDir(what, dir, remedy, mode)
	}
	return err
}

// makeSubDir makes a directory in the state directory, or sees whether what is there will
// do. Files are removed in it, so it must not lead elsewhere.
func makeSubDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	const what, remedy = "the directory", "put a directory of your own there"
	mode, err := ownDir(what, dir, remedy)
	if err == nil {
		err = closedDir(what, dir, remedy, mode)
	}
	return err
}

// ownDir refuses what is not a directory of ours.
func ownDir(what, dir, remedy string) (fs.FileMode, error) {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return 0, fmt.Errorf("looking at %s: %w", what, err)
	case !info.IsDir():
		return 0, fmt.Errorf("%s %q is not a directory, and a symbolic link will not do: %s", what, dir, remedy)
	case !ours(info):
		return 0, fmt.Errorf("%s %q belongs to another user, who could change runs: %s", what, dir, remedy)
	}
	return info.Mode(), nil
}

// closedDir refuses a directory that others can reach.
func closedDir(what, dir, remedy string, mode fs.FileMode) error {
	if mode.Perm()&0o077 != 0 {
		return fmt.Errorf("%s %q has mode %04o and others could reach runs in it: chmod 700 it, or %s", what, dir, mode.Perm(), remedy)
	}
	return nil
}

// noStrangers refuses a directory that is no state directory: without a database, and with
// other things in it than a process could have left that was killed while it made one.
func noStrangers(dir string) error {
	if isRegular(filepath.Join(dir, dbName)) {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("looking into the state directory: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("looking into the state directory: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		switch name {
		case keyName, keyName + partSuffix, dbName, dbName + partSuffix, imagesName, instancesName:
		default:
			return fmt.Errorf("the directory %q holds other things, as %q, and is no state directory: choose an empty or new directory", dir, name)
		}
	}
	return nil
}

// isRegular tells whether a regular file is there. A link is none.
func isRegular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// removePart removes what a process left that was killed while it wrote the file.
func removePart(path string) {
	if part := path + partSuffix; isRegular(part) {
		os.Remove(part)
	}
}

// ours tells whether the user that we run as owns a file.
func ours(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

const (
	lockTimeout = 5 * time.Second // for whoever else sets up the directory, or uses the database
	lockPause   = 10 * time.Millisecond
)

// lockDir makes the caller the only one that sets up a directory. The lock is on the
// directory itself (flock(2)), so that it needs no file that could be left behind.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for range lockTimeout / lockPause {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %q: %w", dir, err)
		}
		time.Sleep(lockPause) // flock has no timeout
	}
	f.Close()
	return nil, fmt.Errorf("%q has been locked by another process for %v: see who has it open, and try again", dir, lockTimeout)
}
