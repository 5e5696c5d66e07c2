//go:build unix

package process

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// SPEC 16.3: what a killed supervisor left goes, what a living one has stays, and nothing
// that is not ours is ever touched.
func TestSweep(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		os.Chtimes(filepath.Dir(path), old, old)
	}
	kept := []string{
		"codemode-supervisor/src/a.go",
		"codemode-x/lock",
		"codemode-run-mine/data",                      // our name, and no lock
		"codemode-run-other/codemode-supervisor.lock", // a lock that somebody else wrote
	}
	for _, path := range kept {
		write(path, "precious")
	}
	write("codemode-run-dead/"+lockName, lockText)
	write("codemode-new-dead/"+lockName, lockText) // an hour old
	write("codemode-new-half/"+lockName, "")
	kept = append(kept, "codemode-new-mine/data") // our name, and something else in it
	write("codemode-new-mine/data", "precious")
	if err := os.Mkdir(filepath.Join(base, "codemode-new-fresh"), 0o700); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, name := range []string{"codemode-new-dead", "codemode-new-half"} {
			if _, err := os.Stat(filepath.Join(base, name)); err == nil {
				t.Errorf("%s is still there: somebody was killed in the middle of making it", name)
			}
		}
		if _, err := os.Stat(filepath.Join(base, "codemode-new-fresh")); err != nil {
			t.Error("what somebody is making was removed")
		}
	}()
	write("codemode-run-dead/plugin-dir1/plugin2", "")
	if err := os.Symlink(filepath.Join(base, "codemode-supervisor"), filepath.Join(base, "codemode-run-link")); err != nil {
		t.Fatal(err)
	}

	living, livingLock, err := runtimeDir()
	if err != nil {
		t.Fatal(err)
	}
	defer livingLock.Close()
	dir, lock, err := runtimeDir()
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	for _, path := range append(kept, filepath.Base(living)+"/"+lockName, filepath.Base(dir)) {
		if _, err := os.Stat(filepath.Join(base, path)); err != nil {
			t.Errorf("gone: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(base, "codemode-run-dead")); err == nil {
		t.Error("what a dead supervisor left is there")
	}
	if sweep(base); exists(dir) {
		t.Error("a directory whose lock is free is there")
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// Supervisors that start at the same time leave each other's directories alone.
func TestRuntimeDirsAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				dir, lock, err := runtimeDir()
				if err != nil {
					t.Error(err)
					return
				}
				if !exists(filepath.Join(dir, lockName)) {
					t.Error("swept while its owner lives")
				}
				os.RemoveAll(dir)
				lock.Close()
			}
		})
	}
	wg.Wait()
}
