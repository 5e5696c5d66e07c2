package toolfile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// self is the command line of this binary as a child.
func self(t testing.TB, args ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{exe, "child"}, args...)
}

// SPEC 20: command.
func TestCommand(t *testing.T) {
	t.Setenv("TOOLFILE_TEST", "inherited")
	big := `{"s":"` + strings.Repeat("x", 1<<20) + `"}`
	tests := []struct {
		name  string
		argv  []string
		input string
		want  string // the result, or
		code  string // the code of the error
		text  string // and a part of its text
	}{
		{"cat", []string{"cat"}, `{"n":9007199254740993,"s":"\ud800"}`, `{"n":9007199254740993,"s":"\ud800"}`, "", ""},
		{"big input and output", self(t, "echo"), big, big, "", ""},
		{"sh", []string{"sh", "-c", "cat >/dev/null; echo ' [1, 2] '"}, `{}`, `[1, 2]`, "", ""},
		{"nothing printed", self(t, "silent"), big, `null`, "", ""},
		{"ignores stdin", self(t, "ignores-stdin"), big, `{"ok":true}`, "", ""},
		{"environment", self(t, "env"), `{}`, `"inherited"`, "", ""},
		{"floods stderr", self(t, "floods-stderr"), `{}`, `1`, "", ""},
		{"fails", self(t, "fails"), `{}`, "", CodeFailed, "ended with status 3: line 995\nline 996\nline 997\nline 998\nline 999"},
		{"crashes", self(t, "crashes"), `{}`, "", CodeFailed, "signal 9"},
		{"no JSON", self(t, "no-json"), `{}`, "", CodeInvalidOutput, `begin with "hello` + "\ufffd"},
		{"two values", self(t, "two-values"), `{}`, "", CodeInvalidOutput, "no JSON"},
		{"floods", self(t, "floods"), `{}`, "", CodeInvalidOutput, "more than 8388608 bytes"},
		{"not found", []string{"no-such-program-here"}, `{}`, "", CodeStart, "no-such-program-here"},
		{"no program", []string{t.TempDir()}, `{}`, "", CodeStart, "could not be started"},
		{"a word is no shell", []string{"echo", "$HOME;", "1"}, `{}`, "", CodeInvalidOutput, "$HOME;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			got, err := runCommand(t.Context(), tt.argv, json.RawMessage(tt.input))
			goleak.VerifyNone(t, before)
			reaped(t)
			if tt.code == "" {
				if err != nil || string(got) != tt.want {
					t.Fatalf("got %.100s, %v; want %.100s", got, err, tt.want)
				}
				return
			}
			var failed *ToolError
			if !errors.As(err, &failed) || failed.Code != tt.code || !strings.Contains(failed.Message, tt.text) || len(failed.Message) > 2000 {
				t.Fatalf("got %.100s, %.500v; want the code %s and %q", got, err, tt.code, tt.text)
			}
		})
	}
}

// pipeTo returns a named pipe for the children of a test, and a function that
// waits for the pid of one.
func pipeTo(t *testing.T) (path string, pid func() int) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pid")
	for _, p := range []string{path, path + ".seen"} {
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path, func() int {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		line, err := bufio.NewReader(f).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// reaped fails the test if this process has a child, dead or alive.
func reaped(t *testing.T) {
	t.Helper()
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("wait4 gives process %d, %v; want no children", pid, err)
	}
}

// gone fails the test unless the process is dead. A grandchild is reaped by init,
// when it comes to it: a zombie is dead, too.
func gone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		runtime.Gosched()
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d is alive", pid)
}

// SPEC 20: killed on abort, with all that it started.
func TestCommandAbort(t *testing.T) {
	for _, mode := range []string{"hangs", "forks-and-hangs"} {
		t.Run(mode, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			pipe, pid := pipeTo(t)
			reason := errors.New("the run was aborted")
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error)
			go func() {
				_, err := runCommand(ctx, self(t, mode, pipe), json.RawMessage(`{}`))
				done <- err
			}()
			child := pid()
			cancel(reason)
			if err := <-done; !errors.Is(err, reason) {
				t.Errorf("got %v, want the reason of the abort", err)
			}
			reaped(t)
			gone(t, child)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runCommand(ctx, []string{"cat"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled before anything starts", err)
	}
}

// A program that ends leaves nobody behind, and a grandchild that holds the pipes
// does not hold the call.
func TestCommandForks(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	pipe, pid := pipeTo(t)
	seen := make(chan int)
	go func() {
		grandchild := pid()
		if f, err := os.OpenFile(pipe+".seen", os.O_WRONLY, 0); err == nil {
			f.Close()
		}
		seen <- grandchild
	}()
	got, err := runCommand(t.Context(), self(t, "forks", pipe), json.RawMessage(`{}`))
	if err != nil || string(got) != `"parent is done"` {
		t.Errorf("got %s, %v", got, err)
	}
	gone(t, <-seen)
}
