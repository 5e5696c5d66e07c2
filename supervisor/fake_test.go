package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process/fakeworker"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	fakeworker.Main()
	os.Exit(m.Run())
}

// fake makes a supervisor whose worker is this test binary with a behaviour, and checks
// at the end that nothing of it is left.
func fake(t *testing.T, behaviour string) *Supervisor {
	t.Helper()
	return fakeWith(t, behaviour, Options{})
}

// fakeIn is fake with a state directory; "" is none.
func fakeIn(t *testing.T, behaviour, dir string) *Supervisor {
	t.Helper()
	return fakeWith(t, behaviour, Options{StateDir: dir})
}

func fakeWith(t *testing.T, behaviour string, opts Options) *Supervisor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	leaks := goleak.IgnoreCurrent()
	before := descriptors(t)
	opts.Worker, opts.CacheDir = self, fakeworker.Cache(t, behaviour)
	if opts.Pool == 0 {
		opts.Pool = -1
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	// Some fakes send signals to themselves, which the first process of a PID namespace cannot.
	s.without = []isolation.Layer{isolation.PIDNamespace}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		goleak.VerifyNone(t, leaks)
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
		if kids := children(t); len(kids) > 0 {
			t.Errorf("processes are left: %v", kids)
		}
	})
	return s
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	return len(entries)
}

// children lists our child processes.
func children(t *testing.T) []string {
	var pids []string
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	for _, task := range tasks {
		b, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		pids = append(pids, strings.Fields(string(b))...)
	}
	return pids
}

// tools is a catalog with an executor whose tool "big" returns a megabyte.
func tools(t *testing.T) (*catalog.Catalog, Executor) {
	t.Helper()
	cat, _, err := catalog.Build([]catalog.Entry{{Name: "echo", Source: catalog.Client}, {Name: "big", Source: catalog.Client}}, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cat, ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
		if call.Tool.Name == "big" {
			return json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`), nil
		}
		return call.Input, nil
	})
}

func short() limits.Limits {
	l := limits.Default()
	l.Timeout = 500 * time.Millisecond
	return l
}

// SPEC 11.2, 15.5, 16.1, 16.2, 16.4: each way in which a worker can fail has its code,
// costs its own run only, and leaves nothing behind.
func TestWorkerFailures(t *testing.T) {
	for _, c := range []struct {
		behaviour string
		code      Code
		phase     Phase
		text      string // in the error
		slow      bool   // the deadline ends it
	}{
		{"hang", Timeout, PhaseLimit, "starting a worker", true},
		{"not-ready", Timeout, PhaseLimit, "starting a worker", true},
		{"early-exit", RuntimeUnavailable, PhaseHost, "cannot find my engine", false},
		{"garbage", RuntimeUnavailable, PhaseHost, "Welcome to the worker", false},
		{"endless-line", RuntimeUnavailable, PhaseHost, "", false},
		{"plugin-version", RuntimeUnavailable, PhaseHost, "version", false},
		{"frame-version", RuntimeUnavailable, PhaseHost, "version 9, this is 1", false},
		{"evil-socket", RuntimeUnavailable, PhaseHost, "not its socket", false},
		{"ready-fault", RuntimeUnavailable, PhaseHost, "make deps", false},
		{"ready-lie", RuntimeUnavailable, PhaseHost, "first event must be ready", false},
		{"crash", InternalError, PhaseHost, "exit code 2", false}, // the Go runtime turns the signal into this
		{"killed", InternalError, PhaseHost, "signal 9", false},   // nothing says that it was memory
		{"go-oom", MemoryLimitExceeded, PhaseLimit, "memoryLimitBytes", false},
		{"exit-0", InternalError, PhaseHost, "without a result", false},
		{"exit-early", InternalError, PhaseHost, "without a result", false},
		{"transform", TypeScriptTransformFailed, PhaseInput, "transformer did not survive", false},
		{"half-frame", InternalError, PhaseHost, "", false},
		{"huge-frame", InternalError, PhaseHost, "announces 1073741824 bytes", false},
		{"garbage-frame", InternalError, PhaseHost, "a frame begins with", false},
		{"flood-idle", InternalError, PhaseHost, "idle without anything having happened", false},
		{"flood-calls", InternalError, PhaseHost, "calls are open", false},
		{"flood-output", InternalError, PhaseHost, "output over the limit", false},
		{"flood-stderr", InternalError, PhaseHost, "signal 13", false},
		{"flood-stdout", InternalError, PhaseHost, "signal 13", false},
		{"wrong-id", InternalError, PhaseHost, "call id 7, the next one is 1", false},
		{"same-id", InternalError, PhaseHost, "call id 1, the next one is 2", false},
		{"bad-json", InternalError, PhaseHost, "not JSON", false},
		{"bad-output", InternalError, PhaseHost, "not JSON of its kind", false},
		{"too-much", InternalError, PhaseHost, "output over the limit", false},
		{"done-early", InternalError, PhaseHost, "done while work is left", false},
		{"bad-code", InternalError, PhaseHost, "unknown error code", false},
		{"flood-missed", InternalError, PhaseHost, "a missed event out of turn", false},
		{"missed-early", InternalError, PhaseHost, "a missed event out of turn", false},
		{"unprepared", InternalError, PhaseHost, "before the source was prepared", false},
		{"deaf", Timeout, PhaseLimit, "timeoutMs", true},
		{"ignores-interrupt", Timeout, PhaseLimit, "timeoutMs", true},
		{"stopped", Timeout, PhaseLimit, "timeoutMs", true},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			s := fake(t, c.behaviour)
			p := Program{Code: "1"}
			p.Catalog, p.Executor = tools(t)
			if p.Limits = limits.Default(); c.slow {
				p.Limits = short()
			}
			began := time.Now()
			res := s.Exec(context.Background(), p)
			got := struct {
				Status Status
				Code   Code
				Phase  Phase
			}{res.Status, res.Code, res.Phase}
			want := got
			want.Status, want.Code, want.Phase = Failed, c.code, c.phase
			if d := cmp.Diff(want, got); d != "" || !strings.Contains(res.Error, c.text) {
				t.Errorf("want error with %q; -want +got:\n%s\n%s", c.text, d, res.JSON())
			}
			// SPEC 13.2: the answer comes no later than timeoutMs + 500 ms.
			if took := time.Since(began); took > p.Limits.Timeout+slack {
				t.Errorf("the answer took %v", took)
			}
			if kids := children(t); len(kids) > 0 {
				t.Errorf("the result is here and processes are left: %v", kids)
			}
		})
	}
}

// Every behaviour is used by a test: a fake that nobody runs proves nothing.
func TestBehavioursAreUsed(t *testing.T) {
	var src []byte
	for _, file := range []string{"fake_test.go", "park_test.go", "pool_test.go", "scopes_test.go"} {
		more, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		src = append(src, more...)
	}
	for _, b := range fakeworker.Behaviours() {
		if !strings.Contains(string(src), strconv.Quote(b)) {
			t.Errorf("no test uses %q", b)
		}
	}
}

func TestHonestWorker(t *testing.T) {
	res := fake(t, "ok").Exec(context.Background(), Program{Code: "1"})
	if res.Status != Completed || string(res.Value) != "42" || len(res.Output) != 1 || res.Output[0].Text() != "hello" {
		t.Errorf("got %s", res.JSON())
	}
}

// Limits of which only some are set are completed from the options.
func TestFill(t *testing.T) {
	base := limits.Default()
	if got := fill(limits.Limits{}, base); got != base {
		t.Errorf("got %+v", got)
	}
	want := base
	want.Timeout, want.QueuedToolCalls = time.Second, 0
	if d := cmp.Diff(want, fill(limits.Limits{Timeout: time.Second}, base)); d != "" {
		t.Error(d)
	}
	res := fake(t, "ok").Exec(context.Background(), Program{Code: "1", Limits: limits.Limits{Timeout: 5 * time.Second}})
	if res.Status != Completed {
		t.Errorf("got %s", res.JSON())
	}
}

// SPEC 10.1: what an executor is told, and 11.3: what telemetry says of the call.
func TestCallReachesExecutor(t *testing.T) {
	s := fake(t, "call")
	cat, _ := tools(t)
	var got *Call
	res := s.Exec(context.Background(), Program{
		Code: "1", Catalog: cat, Scope: Scope{AgentID: "a", SessionID: "s"}, ParentCallID: "exec-1",
		Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
			got = call
			return call.Input, nil
		}),
	})
	if string(res.Value) != `{"v":1}` || got == nil {
		t.Fatalf("got %s", res.JSON())
	}
	want := &Call{ID: res.RunID + ":1", RunID: res.RunID, ParentCallID: "exec-1", Scope: Scope{AgentID: "a", SessionID: "s"}, Tool: cat.Get("client:app:echo"), Input: json.RawMessage(`{"v":1}`)}
	if got.ID != want.ID || got.RunID != want.RunID || got.ParentCallID != want.ParentCallID || got.Scope != want.Scope || got.Tool != want.Tool || string(got.Input) != string(want.Input) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	calls := res.Telemetry.Calls
	if len(calls) != 1 || calls[0].State != Done || calls[0].ToolID != "client:app:echo" || calls[0].ID != want.ID {
		t.Errorf("got calls %+v", calls)
	}
}

// SPEC 17.2, 15.1: environment, stdin and descriptors of ours do not reach the worker.
func TestSurroundings(t *testing.T) {
	t.Setenv("CODEMODE_SECRET", "s3cr3t")
	f, err := os.CreateTemp(t.TempDir(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// A careless library would leave this one open in every child.
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
	res := fake(t, "surroundings").Exec(context.Background(), Program{Code: "1"})
	var got struct {
		Environ           int
		Home              bool
		Stdin, FDs, Argv0 string
	}
	if err := json.Unmarshal(res.Value, &got); err != nil {
		t.Fatalf("%v in %s", err, res.JSON())
	}
	if got.Home || got.Environ != 0 || !strings.HasPrefix(got.Stdin, "pipe:") || got.Argv0 != "codemode-worker" {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(res.Error, "s3cr3t") {
		t.Errorf("the secret is in %s", res.JSON())
	}
}

// SPEC 16.2, 14.2: what a worker forked dies with it, also what left its session, holds its
// channel and its stderr, and is in no PID namespace that would end it.
func TestGrandchildDies(t *testing.T) {
	for _, behaviour := range []string{"forks", "forks-away"} {
		s := fake(t, behaviour)
		if report, err := s.Examine(context.Background()); err != nil || behaviour == "forks-away" && report.Get(isolation.CgroupPids).State != isolation.On {
			t.Logf("without a cgroup nothing follows a process that goes away: %v", err)
			continue
		}
		res := s.Exec(context.Background(), Program{Code: "1"})
		pid, err := strconv.Atoi(string(res.Value))
		if err != nil {
			t.Fatalf("%s: got %s", behaviour, res.JSON())
		}
		deadline := time.Now().Add(2 * time.Second)
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the worker's child %d is alive", behaviour, pid)
			}
		}
	}
	// In a PID namespace the kernel does it, whatever else there is.
	s := fake(t, "forks-away")
	s.without = []isolation.Layer{isolation.CgroupMemory, isolation.CgroupPids, isolation.CgroupCPU}
	if report, err := s.Examine(context.Background()); err != nil || report.Get(isolation.PIDNamespace).State != isolation.On {
		t.Skipf("there is no PID namespace here: %v", err)
	}
	before := sleepers(t)
	if res := s.Exec(context.Background(), Program{Code: "1"}); res.Status != Completed {
		t.Fatalf("got %s", res.JSON())
	}
	for deadline := time.Now().Add(2 * time.Second); sleepers(t) > before; {
		if time.Now().After(deadline) {
			t.Fatal("what the worker forked is alive")
		}
	}
}

// sleepers counts the processes that the fake worker leaves.
func sleepers(t *testing.T) int {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		if b, _ := os.ReadFile(name); string(b) == "/bin/sleep\x001000\x00" {
			n++
		}
	}
	return n
}

// SPEC 15.1, 16.3: a worker's parent-death signal belongs to a thread that lives as long as the
// supervisor, and not to the one that asked for the run.
func TestThreadsThatEnd(t *testing.T) {
	s := fake(t, "call")
	cat, _ := tools(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	done := make(chan *Result, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		done <- s.Exec(context.Background(), Program{Code: "1", Catalog: cat, Executor: ExecutorFunc(func(context.Context, *Call) (json.RawMessage, error) {
			close(arrived)
			<-release
			return json.RawMessage(`7`), nil
		})})
	}()
	<-arrived
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(runtime.LockOSThread)
	}
	wg.Wait()
	close(release)
	if res := <-done; string(res.Value) != "7" {
		t.Errorf("got %s", res.JSON())
	}
}

// SPEC 16.4: zombies and descriptors of a worker's are gone with it; descriptors that it sends
// along with a frame do not arrive.
func TestHoards(t *testing.T) {
	for _, behaviour := range []string{"zombies", "hoards"} {
		s := fake(t, behaviour) // it compares descriptors and processes at the end
		before := descriptors(t)
		run42(t, s)
		for deadline := time.Now().Add(2 * time.Second); descriptors(t) > before+5; { // the spawner's own
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d descriptors before, %d after", behaviour, before, descriptors(t))
			}
		}
	}
}

// alive tells whether pid runs; a zombie that init has not reaped yet does not.
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	after := string(b[strings.LastIndexByte(string(b), ')')+1:])
	return !strings.HasPrefix(strings.TrimSpace(after), "Z")
}

// Must hold: a frame of 1 GiB costs the supervisor nothing. The fake announces it and
// goes on to send it.
func TestHugeFrameMemory(t *testing.T) {
	s := fake(t, "huge-frame")
	before := residentBytes(t)
	s.Exec(context.Background(), Program{Code: "1"})
	if grown := residentBytes(t) - before; grown > 64<<20 {
		t.Errorf("the supervisor grew by %d bytes", grown)
	}
}

func residentBytes(t *testing.T) int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// SPEC 14.2: the caller's context and Close both end a run as aborted.
func TestAbort(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		s := fake(t, "ignores-interrupt")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("the user left")) })
		res := s.Exec(ctx, Program{Code: "1"})
		if res.Code != Aborted || res.Phase != PhaseHost || !strings.Contains(res.Error, "the user left") {
			t.Errorf("got %s", res.JSON())
		}
	})
	t.Run("already", func(t *testing.T) {
		s := fake(t, "ok")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if res := s.Exec(ctx, Program{Code: "1"}); res.Code != Aborted {
			t.Errorf("got %s", res.JSON())
		}
	})
	t.Run("close", func(t *testing.T) {
		s := fake(t, "ignores-interrupt")
		started := make(chan struct{})
		done := make(chan *Result)
		go func() { close(started); done <- s.Exec(context.Background(), Program{Code: "1"}) }()
		<-started
		for len(children(t)) == 0 { // until the worker is there
		}
		s.Close()
		if res := <-done; res.Code != Aborted {
			t.Errorf("got %s", res.JSON())
		}
		if res := s.Exec(context.Background(), Program{Code: "1"}); res.Code != Aborted {
			t.Errorf("after Close: got %s", res.JSON())
		}
	})
}

// SPEC 13.5: who cannot start in time never starts.
func TestQueueTimesOut(t *testing.T) {
	s := fake(t, "ignores-interrupt")
	s.places = make(chan struct{}, 1)
	first := make(chan *Result)
	l := limits.Default()
	l.Timeout = 1500 * time.Millisecond
	go func() { first <- s.Exec(context.Background(), Program{Code: "1", Limits: l}) }()
	for len(s.places) == 0 {
	}
	res := s.Exec(context.Background(), Program{Code: "1", Limits: short()})
	if res.Code != Timeout || !strings.Contains(res.Error, "waiting for a free worker") || res.Telemetry.Timings.Start != 0 {
		t.Errorf("got %s", res.JSON())
	}
	if res := <-first; res.Code != Timeout {
		t.Errorf("got %s", res.JSON())
	}
}

// SPEC 3.1, 3.2: input is refused before a worker is started.
func TestInput(t *testing.T) {
	js := limits.Default()
	js.Languages = limits.JavaScript
	for _, c := range []struct {
		name string
		p    Program
		code Code
		text string
	}{
		{"nothing", Program{}, InvalidInput, "empty"},
		{"blank", Program{Code: " \n\t"}, InvalidInput, "empty"},
		{"two sources", Program{Code: "1", Command: "2"}, InvalidInput, "equal"},
		{"language", Program{Code: "1", Language: "bash"}, UnsupportedLanguage, `"bash"`},
		{"language by case", Program{Code: "1", Language: "JavaScript"}, UnsupportedLanguage, "javascript"},
		{"switched off", Program{Code: "1", Language: "typescript", Limits: js}, UnsupportedLanguage, "switched off"},
		{"not UTF-8", Program{Code: "\xff"}, InvalidInput, "UTF-8"},
		{"too long", Program{Code: strings.Repeat(" ", 8<<20) + "1"}, InvalidInput, "8388608"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(Options{Worker: "/nonexistent/worker"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			res := s.Exec(context.Background(), c.p)
			if res.Code != c.code || res.Phase != PhaseInput || !strings.Contains(res.Error, c.text) {
				t.Errorf("got %s", res.JSON())
			}
		})
	}
	t.Run("command alone", func(t *testing.T) {
		if res := fake(t, "ok").Exec(context.Background(), Program{Command: "1"}); res.Status != Completed {
			t.Errorf("got %s", res.JSON())
		}
	})
}

// SPEC 15.4 and the "must hold": a worker that cannot be had is said so, with
// what to do.
func TestWorkerFile(t *testing.T) {
	dir := t.TempDir()
	plain := dir + "/not-executable"
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	open := dir + "/open-cache"
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    Options
		text string
	}{
		{"missing", Options{Worker: dir + "/none"}, "make build"},
		{"not executable", Options{Worker: plain}, "chmod +x"},
		{"directory", Options{Worker: dir}, "not a file"},
		{"not in PATH", Options{}, "supervisor.worker"},
		{"pin", Options{Worker: self, WorkerSHA256: strings.Repeat("0", 64)}, "pins"},
		{"open cache", Options{Worker: self, CacheDir: open}, "chmod 700"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", dir)
			s, err := New(c.o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			res := s.Exec(context.Background(), Program{Code: "1"})
			if res.Code != RuntimeUnavailable || res.Phase != PhaseHost || !strings.Contains(res.Error, c.text) {
				t.Errorf("want %q, got %s", c.text, res.JSON())
			}
		})
	}
}
