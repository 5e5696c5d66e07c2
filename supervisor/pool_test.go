package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process/fakeworker"
)

// warm fills the pool and gives the spares' pids.
func warm(t *testing.T, s *Supervisor) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	pids := children(t)
	slices.Sort(pids)
	return pids
}

func run42(t *testing.T, s *Supervisor) *Result {
	t.Helper()
	res := s.Exec(context.Background(), Program{Code: "1"})
	if res.Status != Completed || string(res.Value) != "42" {
		t.Fatalf("got %s", res.JSON())
	}
	return res
}

// SPEC 16.1: spares are started ahead, used for one run, and replaced.
func TestPool(t *testing.T) {
	s := fakeWith(t, "ok", Options{Pool: 2, MaxWorkers: 4})
	if kids := children(t); len(kids) != 0 {
		t.Errorf("New started workers: %v", kids)
	}
	used := map[string]bool{}
	for range 5 {
		pids := warm(t, s)
		if len(pids) != 2 || len(s.places) != 2 {
			t.Fatalf("spares %v hold %d places, want 2 and 2", pids, len(s.places))
		}
		for _, pid := range pids {
			if used[pid] {
				t.Errorf("spare %s had a run and is there again", pid)
			}
		}
		if res := run42(t, s); res.Telemetry.Timings.Start > 15 {
			t.Logf("the start of a spare took %v ms", res.Telemetry.Timings.Start)
		}
		gone := 0
		left := warm(t, s)
		for _, pid := range pids {
			if !slices.Contains(left, pid) {
				used[pid] = true
				gone++
			}
		}
		if gone != 1 {
			t.Errorf("a run used %d spares, want 1", gone)
		}
	}
}

// SPEC 13.5: the only place there is goes from run to spare to run.
func TestPoolWithOnePlace(t *testing.T) {
	s := fakeWith(t, "ok", Options{Pool: 1, MaxWorkers: 1})
	for range 10 {
		run42(t, s)
	}
	done := make(chan *Result)
	for range 10 {
		go func() { done <- s.Exec(context.Background(), Program{Code: "1"}) }()
	}
	for range 10 {
		if res := <-done; res.Status != Completed {
			t.Errorf("got %s", res.JSON())
		}
	}
}

// A spare that died in the meantime is replaced, and costs no run anything.
func TestPoolReplacesTheDead(t *testing.T) {
	s := fakeWith(t, "ok", Options{Pool: 1})
	for range 3 {
		pids := warm(t, s)
		pid, _ := strconv.Atoi(pids[0])
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for slices.Contains(children(t), pids[0]) { // once it was seen to be dead, no run may get it
		}
		run42(t, s)
	}
	pids := warm(t, s)
	pid, _ := strconv.Atoi(pids[0])
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for { // by itself, in the background
		kids := children(t)
		if len(kids) == 1 && kids[0] != pids[0] {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the dead spare %s was not replaced: %v", pids[0], kids)
		}
	}
}

// A spare of another binary or another policy is thrown away.
func TestPoolOfAnotherOrigin(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	path := filepath.Join(t.TempDir(), "worker")
	install := func() {
		t.Helper()
		if err := os.WriteFile(path+".new", self, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	install()
	s, err := New(Options{Worker: path, CacheDir: fakeworker.Cache(t, "ok"), Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := warm(t, s)
	install()
	run42(t, s) // with the new one
	second := warm(t, s)
	if slices.Contains(second, first[0]) {
		t.Errorf("spare %s is of a binary that is not there any more", first[0])
	}
	if err := s.SetIsolation(limits.IsolationConfig{Require: []string{"process_group"}}); err != nil {
		t.Fatal(err)
	}
	third := warm(t, s)
	if slices.Contains(third, second[0]) {
		t.Errorf("spare %s is of a policy that is not in force any more", second[0])
	}
	run42(t, s)
	if err := s.SetIsolation(limits.IsolationConfig{Preset: "lax"}); err == nil {
		t.Error("SetIsolation took a preset that does not exist")
	}
	run42(t, s)
}

// SPEC 16.4: starts that fail again and again are held back, said, and tried again.
func TestStartsBackOff(t *testing.T) {
	s := fake(t, "early-exit")
	for range breakerFree {
		res := s.Exec(context.Background(), Program{Code: "1"})
		if res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "cannot find my engine") {
			t.Errorf("got %s", res.JSON())
		}
	}
	res := s.Exec(context.Background(), Program{Code: "1"})
	if res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "the last 3 starts failed") || !strings.Contains(res.Error, "cannot find my engine") {
		t.Errorf("held back: got %s", res.JSON())
	}
	// What comes out of another binary is another story.
	s.opts.CacheDir = fakeworker.Cache(t, "ok")
	if err := s.SetIsolation(limits.IsolationConfig{Require: []string{"process_group"}}); err != nil {
		t.Fatal(err)
	}
	run42(t, s)
}

// SPEC 15.2: a required layer that the host does not give fails closed, and names the layer and
// the remedy; no worker is started.
func TestRequired(t *testing.T) {
	for _, layer := range []isolation.Layer{isolation.CgroupMemory, isolation.PIDNamespace} {
		s := fake(t, "ok")
		s.without = []isolation.Layer{layer}
		if err := s.SetIsolation(limits.IsolationConfig{Require: []string{string(layer)}}); err != nil {
			t.Fatal(err)
		}
		for range breakerFree + 2 { // it is no failure of the worker's, and nothing backs off
			res := s.Exec(context.Background(), Program{Code: "1"})
			if res.Code != RuntimeUnavailable || res.Phase != PhaseHost || !strings.Contains(res.Error, string(layer)+" is off") || !strings.Contains(res.Error, "doctor") {
				t.Errorf("without %s: got %s", layer, res.JSON())
			}
		}
	}
	// What a worker has to do itself it has to report.
	s := fake(t, "ok")
	if err := s.SetIsolation(limits.IsolationConfig{Require: []string{"seccomp"}}); err != nil {
		t.Fatal(err)
	}
	res := s.Exec(context.Background(), Program{Code: "1"})
	if res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "seccomp is unavailable (nothing was reported about it)") {
		t.Errorf("a worker without a report: got %s", res.JSON())
	}
}

// What a worker reports is compared with what the kernel says of it.
func TestReportIsVerified(t *testing.T) {
	res := fake(t, "says-locked").Exec(context.Background(), Program{Code: "1"})
	if res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "says that seccomp is on, and /proc/") {
		t.Errorf("got %s", res.JSON())
	}
	res = fake(t, "says-nonsense").Exec(context.Background(), Program{Code: "1"})
	if res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "no isolation layer") {
		t.Errorf("got %s", res.JSON())
	}
}

// SPEC 15.2: a wall that the first worker had and a later one has not is an error, whatever the
// policy; and a worker that kept the supervisor's user is none.
func TestWallsDoNotGetLower(t *testing.T) {
	t.Run("a layer", func(t *testing.T) {
		s := fake(t, "lowers")
		run42(t, s)
		res := s.Exec(context.Background(), Program{Code: "1"})
		if res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "landlock.files was on for the first worker and is unavailable now") {
			t.Errorf("got %s", res.JSON())
		}
	})
	t.Run("the user", func(t *testing.T) {
		s := fake(t, "not-itself")
		res := s.Exec(context.Background(), Program{Code: "1"})
		if res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "could not become the user that it should be: setresuid: no") {
			t.Errorf("got %s", res.JSON())
		}
	})
}

// SPEC 13.4: an identity that was asked for and cannot be had is no identity.
func TestIdentityThatCannotBeHad(t *testing.T) {
	s := fake(t, "ok")
	s.without = []isolation.Layer{isolation.UserNamespace}
	if err := s.SetIsolation(limits.IsolationConfig{UID: 1000}); err != nil {
		t.Fatal(err)
	}
	res := s.Exec(context.Background(), Program{Code: "1"})
	if res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "supervisor.isolation.uid and gid are 1000 and 0") {
		t.Errorf("got %s", res.JSON())
	}
}

func TestBreaker(t *testing.T) {
	var b breaker
	fail := errors.New("no engine")
	for i := range breakerFree {
		if err := b.enter(); err != nil {
			t.Fatalf("start %d is held back: %v", i, err)
		}
		if tripped := b.leave(fail); tripped != (i == breakerFree-1) {
			t.Errorf("failure %d: tripped is %t", i, tripped)
		}
	}
	if err := b.enter(); !errors.Is(err, fail) {
		t.Errorf("while it is held back: %v", err)
	}
	b.until = time.Now()
	if err := b.enter(); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	if err := b.enter(); err == nil {
		t.Error("a second start beside the one that tries")
	}
	b.abandon()
	if err := b.enter(); err != nil {
		t.Errorf("after a try that was given up: %v", err)
	}
	b.leave(fail)
	if w := b.wait(); w <= breakerFirst || w > 2*breakerFirst {
		t.Errorf("after %d failures the wait is %v, want %v", breakerFree+1, w, 2*breakerFirst)
	}
	for range 100 {
		b.leave(fail)
	}
	if w := b.wait(); w > breakerMost || w < breakerMost-time.Second {
		t.Errorf("the wait is %v, want at most %v", w, breakerMost)
	}
	b.until = time.Now()
	if err := b.enter(); err != nil {
		t.Fatal(err)
	}
	b.leave(nil)
	if err := b.enter(); err != nil || b.wait() != 0 {
		t.Errorf("after a success: %v, wait %v", err, b.wait())
	}
}
