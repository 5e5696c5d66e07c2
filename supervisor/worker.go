package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// workerName is the worker's file name.
const workerName = "qjs-worker"

// workerFile finds the worker's binary and checks its pin.
type workerFile struct {
	path   string // as configured, "" to look for it
	sha256 string // as configured, "" for any

	mu      sync.Mutex
	checked os.FileInfo // guarded by mu: the file whose hash was right
}

// find gives the absolute path of the worker (SPEC 15.4).
func (w *workerFile) find() (string, error) {
	path, err := w.locate()
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return path, w.check(path)
}

func (w *workerFile) locate() (string, error) {
	if w.path != "" {
		return w.path, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), workerName)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(workerName)
	if err != nil {
		return "", fmt.Errorf("no %s beside the program or in PATH: build it with \"make build\", or name it with supervisor.worker", workerName)
	}
	return path, nil
}

// check compares the pinned hash. A file that has not changed since is not read again.
func (w *workerFile) check(path string) error {
	if w.sha256 == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the worker for its pinned hash: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if c := w.checked; c != nil && os.SameFile(c, info) && c.Size() == info.Size() && c.ModTime().Equal(info.ModTime()) {
		return nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("reading the worker for its pinned hash: %w", err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, w.sha256) {
		return fmt.Errorf("the worker %q has SHA-256 %s, and supervisor.workerSHA256 pins %s; it is not started", path, got, w.sha256)
	}
	w.checked = info
	return nil
}

// cacheDir makes the directory of compiled code, and refuses one that somebody else
// could write to: the worker executes what it finds there (SPEC 15.4).
func cacheDir(dir string) (string, error) {
	own := dir == ""
	if own {
		base, err := os.UserCacheDir()
		if err == nil {
			_, err = os.Stat(filepath.Dir(base)) // the home directory, as a rule: it is not ours to make
		}
		if err != nil {
			return "", nil // no home directory, as system users have none: the spawner's own will do
		}
		dir = filepath.Join(base, "codemode-supervisor", "code")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if own {
			return "", nil // a home directory that is not the user's to write to
		}
		return "", fmt.Errorf("making the code cache: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("the code cache %q is not a directory", dir)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("the code cache %q has mode %04o and others could put code there: chmod 700 it, or choose another directory", dir, mode)
	}
	return dir, checkOwner(dir, info)
}
