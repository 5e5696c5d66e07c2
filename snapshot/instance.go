package snapshot

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An instance is an open store, as other processes see it: a file with our pid in it, and a
// lock on it that the kernel frees when the process is gone, however it went (flock(2)). A
// pid alone would not do: it is used again.
type instance struct {
	name string
	file *os.File
}

const lockSuffix = ".lock"

// newInstance needs the directory's lock. dir is the directory of the instances.
func newInstance(dir string, f fault) (*instance, error) {
	name := randomName()
	file, err := os.OpenFile(filepath.Join(dir, name+lockSuffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	in := &instance{name, file}
	if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = f.write(file, fmt.Appendf(nil, "%d\n", os.Getpid()))
	}
	if err != nil {
		in.end()
		return nil, fmt.Errorf("locking %q: %w", file.Name(), err)
	}
	return in, nil
}

// end frees the lock and removes the file. What it held is nobody's from then on.
func (in *instance) end() error {
	return errors.Join(os.Remove(in.file.Name()), in.file.Close())
}

// aliveInstance tells whether an instance's process still has its store open, and which
// process it is; pid is 0 if that cannot be told. If in doubt it is alive: two processes
// that go on with one run would do everything twice.
func aliveInstance(dir, name string) (pid int, alive bool) {
	f, err := os.OpenFile(filepath.Join(dir, name+lockSuffix), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, !errors.Is(err, os.ErrNotExist)
	}
	defer f.Close()
	// A shared lock: two that ask at once must not take each other for the owner.
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		return 0, false
	}
	text, _ := io.ReadAll(io.LimitReader(f, 32))
	pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, true
}

// sweepInstances removes the files of instances that are gone. It needs the directory's
// lock: under it no instance is being made.
func sweepInstances(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), lockSuffix)
		if !ok || !validName(name) || !e.Type().IsRegular() {
			continue // it is not ours
		}
		if _, alive := aliveInstance(dir, name); !alive {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// randomName gives 128 random bits in hex.
func randomName() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// validName tells whether randomName could have made a name.
func validName(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 32 && name == strings.ToLower(name)
}
