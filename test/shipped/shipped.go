// Package shipped gives tests and benchmarks the two programs as `make build` makes them.
package shipped

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	module = "github.com/openclaw/codemode-supervisor/"

	// entry is the Makefile's ENTRY.
	entry = module + "cmd/qjs-worker=-E=" + module + "limits/lockdown.entry"
)

// Build builds packages of this module, named from its root ("cmd/qjs-worker"), static, into a
// file, or into a folder if output ends with a slash. flags go to go build, files of a program, too. The caller's directory
// must be inside of the module.
func Build(output string, flags []string, packages ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	args := append([]string{"build", "-trimpath", "-ldflags", entry, "-o", output}, flags...)
	for _, p := range packages {
		args = append(args, module+p)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %v\n%s", cmd, err, out)
	}
	return nil
}

// dir is the folder of this process, "" if it needed none.
var dir string

// Worker gives the worker, built once in this process, in a folder of its own in which there is
// room for a cache beside it. CODEMODE_BIN names a folder with one that is built already. Call
// [Remove] at the end.
var Worker = sync.OnceValues(func() (path string, err error) {
	if dir, err = os.MkdirTemp("", "shipped-"); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "qjs-worker")
	if bin := os.Getenv("CODEMODE_BIN"); bin != "" {
		if bin, err = filepath.Abs(bin); err != nil {
			return "", err
		}
		return path, os.Symlink(filepath.Join(bin, "qjs-worker"), path)
	}
	return path, Build(path, nil, "cmd/qjs-worker")
})

// Remove removes what Worker made.
func Remove() {
	if dir != "" {
		os.RemoveAll(dir)
	}
}
