package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/test/shipped"
)

// strict is what a host that gives every layer is asked for. This test host may not.
func strict(t testing.TB) limits.IsolationConfig {
	t.Helper()
	s, err := supervisor.New(supervisor.Options{Worker: filepath.Join(binaries(t), "qjs-worker"), CacheDir: codeCache(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := s.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if missing := report.Missing(); len(missing) > 0 {
		t.Skipf("this host does not give every layer: %+v", missing)
	}
	return limits.IsolationConfig{Preset: "strict"}
}

// holding runs a cell that waits for a tool until the test is done with its worker.
func holding(t *testing.T, s *supervisor.Supervisor, body func(pid int)) *supervisor.Result {
	t.Helper()
	arrived, release := make(chan struct{}), make(chan struct{})
	done := make(chan *supervisor.Result)
	go func() {
		done <- s.Exec(t.Context(), supervisor.Program{
			Code: "await tools.hold({})", Catalog: tools(t, "hold"),
			Executor: supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
				close(arrived)
				select {
				case <-release:
				case <-ctx.Done():
				}
				return json.RawMessage(`1`), nil
			}),
		})
	}()
	select {
	case <-arrived:
	case res := <-done:
		t.Fatalf("the run ended: %s", res.JSON())
	}
	pids := workers(t)
	if len(pids) != 1 {
		t.Fatalf("workers %v, want one", pids)
	}
	body(pids[0])
	close(release)
	return <-done
}

func proc(t *testing.T, pid int, name string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// SPEC 15.1, must hold: what the kernel says of a worker that has untrusted code in it.
func TestWorkerSeenFromOutside(t *testing.T) {
	config := strict(t)
	s := embed(t, supervisor.Options{Isolation: config, Pool: -1})
	var group string // as it ends everywhere: codemode-ID/wN
	completed(t, holding(t, s, func(pid int) {
		if environ := proc(t, pid, "environ"); environ != "" {
			t.Errorf("environ is %q, want nothing", environ)
		}
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		var fds []string
		for _, e := range entries {
			what, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			what, _, _ = strings.Cut(what, ":[")
			switch e.Name() + " " + what {
			case "2 pipe", "3 socket": // stderr, the channel
			default:
				if what != "anon_inode" { // the Go runtime's epoll and eventfd
					t.Errorf("descriptor %s is %s", e.Name(), what)
				}
			}
			fds = append(fds, what)
		}
		if len(fds) > 4 {
			t.Errorf("descriptors %q, want at most four", fds)
		}
		status := map[string]string{}
		for line := range strings.Lines(proc(t, pid, "status")) {
			name, value, _ := strings.Cut(line, ":")
			status[name] = strings.TrimSpace(value)
		}
		const none = "0000000000000000"
		for name, want := range map[string]string{
			"Seccomp": "2", "NoNewPrivs": "1", "CapBnd": none, "CapEff": none, "CapPrm": none, "CapInh": none, "CapAmb": none,
			"NStgid": fmt.Sprintf("%d\t1", pid), "Groups": "",
		} {
			if status[name] != want {
				t.Errorf("%s is %q, want %q", name, status[name], want)
			}
		}
		uid, _ := strconv.Atoi(strings.Fields(status["Uid"])[0])
		if os.Geteuid() == 0 && uid < 2_000_000_000 {
			t.Errorf("its uid is %d, want one of its own", uid)
		}
		for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
			theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, ns))
			ours, err2 := os.Readlink("/proc/self/ns/" + ns)
			if err != nil || err2 != nil || theirs == ours {
				t.Errorf("namespace %s: theirs %s, ours %s (%v, %v)", ns, theirs, ours, err, err2)
			}
		}
		root, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/", pid))
		if err != nil || len(root) != 0 {
			t.Errorf("its root holds %v (%v)", root, err)
		}
		if score := strings.TrimSpace(proc(t, pid, "oom_score_adj")); score != "1000" {
			t.Errorf("oom_score_adj is %s, want 1000", score)
		}
		for _, limit := range []string{"Max core file size        0", "Max file size             0", "Max locked memory         0"} {
			if !strings.Contains(proc(t, pid, "limits"), limit) {
				t.Errorf("limits lack %q:\n%s", limit, proc(t, pid, "limits"))
			}
		}
		// Not the default of 64 MiB and its room, which a spare has: the run's own.
		if !strings.Contains(proc(t, pid, "limits"), fmt.Sprintf("Max data size             %d", 72<<20+448<<20)) {
			t.Errorf("RLIMIT_DATA is not the run's:\n%s", proc(t, pid, "limits"))
		}
		in := 0
		for line := range strings.Lines(proc(t, pid, "cgroup")) {
			if i := strings.Index(line, "/codemode-"); i >= 0 {
				group = strings.TrimSpace(line[i:])
				in++
			}
		}
		if in == 0 {
			t.Errorf("it is in no group of its own:\n%s", proc(t, pid, "cgroup"))
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		if err != nil || len(threads) < 2 {
			t.Fatalf("threads %v, %v", threads, err)
		}
		for _, thread := range threads {
			b, _ := os.ReadFile(thread)
			for _, want := range []string{"Seccomp:\t2", "NoNewPrivs:\t1", "CapBnd:\t" + none} {
				if !strings.Contains(string(b), want) {
					t.Errorf("%s lacks %q", thread, want)
				}
			}
		}
	}), "1")
	await(t, 2*time.Second, "the end of the worker's groups", func() bool {
		return !slices.ContainsFunc(groups(t), func(path string) bool { return strings.HasSuffix(path, group) })
	})
}

// groups lists the cgroups of workers that any supervisor on this machine has.
func groups(t testing.TB) []string {
	t.Helper()
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "w") && strings.HasPrefix(filepath.Base(filepath.Dir(path)), "codemode-") {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// SPEC 11.3: telemetry says what is around the worker, and why not.
func TestIsolationInTelemetry(t *testing.T) {
	s := embed(t, supervisor.Options{Pool: -1})
	res := s.Exec(t.Context(), supervisor.Program{Code: "1"})
	completed(t, res, "1")
	var layers []isolation.Layer
	for _, l := range res.Telemetry.Worker.Isolation {
		layers = append(layers, isolation.Layer(l.Layer))
		if (l.State == "on") != (l.Reason == "") {
			t.Errorf("%+v: what is not on has a reason", l)
		}
	}
	if !slices.Equal(layers, isolation.Layers()) {
		t.Errorf("telemetry has %v, want every layer in order", layers)
	}
}

// SPEC 15.1: many starts at once, on processors that have other work, lock up as well as one; the
// first ones too, before it is known what this host gives.
func TestCrowdIsLockedUp(t *testing.T) {
	config := strict(t)
	for range 3 {
		s := embed(t, supervisor.Options{Isolation: config, MaxWorkers: 20})
		results := make(chan *supervisor.Result)
		for range 40 {
			go func() {
				results <- s.Exec(t.Context(), supervisor.Program{Code: "1+2", Limits: limitsWith(func(l *limits.Limits) { l.Timeout = time.Minute })})
			}()
		}
		for range 40 {
			completed(t, <-results, "3")
		}
		s.Close()
	}
}

// SPEC 13.2, 16.2: a worker that its SIGKILL does not end, since it is frozen, does not hold the answer.
func TestFrozenWorker(t *testing.T) {
	dir := "/sys/fs/cgroup/freezer/codemode-e2e-test"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skipf("no freezer of cgroup v1, in which a SIGKILL has to wait: %v", err)
	}
	freeze := func(state string) {
		t.Helper()
		if err := os.WriteFile(dir+"/freezer.state", []byte(state), 0); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Remove(dir)
	s := embed(t, supervisor.Options{})
	running := make(chan struct{}, 1)
	done := make(chan *supervisor.Result)
	began := time.Now()
	go func() {
		done <- s.Exec(t.Context(), supervisor.Program{
			Code: `text("ready"); for(;;);`, Output: func(supervisor.Item) { running <- struct{}{} },
			Limits: limitsWith(func(l *limits.Limits) { l.Timeout = 2 * time.Second }),
		})
	}()
	<-running
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(workers(t)[0])), 0); err != nil {
		t.Fatal(err)
	}
	freeze("FROZEN")
	res := <-done
	took := time.Since(began)
	freeze("THAWED")
	if res.Code != supervisor.Timeout || took > 2500*time.Millisecond+time.Second {
		t.Errorf("after %v: %s", took, res.JSON())
	}
	noWorkers(t, 2*time.Second)
}

// SPEC 15.4: users without a home directory that is theirs, as system users are, can run cells.
func TestNoHome(t *testing.T) {
	for _, home := range []string{"HOME=/nonexistent", "HOME=/", "HOME="} {
		cmd := exec.Command(filepath.Join(binaries(t), "supervisor"), "run", "-e", "1 + 2")
		nobody(t, cmd)
		cmd.Env[0] = home
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "3\n" {
			t.Errorf("%s: %v, %s", home, err, out)
		}
	}
}

// hungry is a worker whose guests have no memory limit.
var hungry = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built.dir, "hungry", "qjs-worker")
	return path, shipped.Build(path, []string{"-tags", "nomemorylimit"}, "cmd/qjs-worker")
})

// SPEC 13.3, 16.2, must hold: where engine and VM do not stop a guest, the cgroup does, and the
// run's end has that name.
// Validation 18: a memory limit ends the guest's VM
func TestMemoryLimitOfTheProcess(t *testing.T) {
	config := strict(t)
	path, err := hungry()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	for _, pool := range []int{-1, 1} {
		s, err := supervisor.New(supervisor.Options{Worker: path, CacheDir: codeCache(t), Isolation: config, Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		res := s.Exec(t.Context(), supervisor.Program{
			Code:   "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
			Limits: limitsWith(func(l *limits.Limits) { l.Timeout, l.MemoryBytes = 30*time.Second, 16<<20 }),
		})
		if res.Code != supervisor.MemoryLimitExceeded || res.Phase != supervisor.PhaseLimit || !slices.Contains(res.Telemetry.Limits, "memoryLimitBytes") {
			t.Errorf("with pool %d: got %s", pool, res.JSON())
		}
		if !strings.Contains(res.Error, "signal 9") {
			t.Errorf("with pool %d: it did not die by the cgroup: %s", pool, res.Error)
		}
		// 16 MiB, an eighth of it, and the room of the process.
		if peak := res.Telemetry.Worker.PeakMemoryBytes; peak > 360<<20 || peak < 200<<20 {
			t.Errorf("with pool %d: the worker had %d MiB at its peak", pool, peak>>20)
		}
		s.Close()
	}
}

// SPEC 16.3, must hold: SIGKILL of a supervisor in the middle of 20 runs leaves no worker a second
// later, and no group or directory after the next start.
func TestSupervisorKilled(t *testing.T) {
	bin := binaries(t)
	tmp, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	before := groups(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crowdEnv+"="+filepath.Join(bin, "qjs-worker")+":"+codeCache(t), "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range crowd { // a line for each run that has come to its call
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if pids := workers(t); len(pids) < crowd {
		t.Fatalf("%d workers, want %d and spares", len(pids), crowd)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	noWorkers(t, time.Second)
	cmd.Wait()
	if left, err := os.ReadDir(tmp); err != nil || len(left) == 0 {
		t.Fatalf("the killed supervisor left nothing: is this test still one? %v", err)
	}
	// The next one, wherever it is.
	next := exec.Command(filepath.Join(bin, "supervisor"), "run", "-e", "1 + 2")
	next.Env = append(os.Environ(), "TMPDIR="+tmp, "XDG_CACHE_HOME="+cacheHome(t))
	if out, err := next.CombinedOutput(); err != nil || string(out) != "3\n" {
		t.Errorf("the next start: %v, %s", err, out)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left after the next start: %v, %v", left, err)
	}
	if after := groups(t); len(after) > len(before) {
		t.Errorf("groups before %v, after %v", before, after)
	}
}

const (
	// crowdEnv makes this test binary a gateway with many runs: the worker and the cache.
	crowdEnv = "CODEMODE_E2E_CROWD"
	crowd    = 20
)

func init() { roles[crowdEnv] = crowded }

// crowded runs cells that do not end.
func crowded(args string) {
	worker, cache, _ := strings.Cut(args, ":")
	s, err := supervisor.New(supervisor.Options{Worker: worker, CacheDir: cache, MaxWorkers: crowd + 2, Pool: 2})
	check(err)
	var wg sync.WaitGroup
	var t testing.T
	for range crowd {
		wg.Go(func() {
			s.Exec(context.Background(), supervisor.Program{
				Code: "await tools.hold({})", Catalog: tools(&t, "hold"),
				Limits: limitsWith(func(l *limits.Limits) { l.Timeout = time.Minute }),
				Executor: supervisor.ExecutorFunc(func(ctx context.Context, _ *supervisor.Call) (json.RawMessage, error) {
					fmt.Print(".")
					<-ctx.Done()
					return nil, ctx.Err()
				}),
			})
		})
	}
	wg.Wait()
}

// Must hold: 500 runs in a row leave as many processes, descriptors, goroutines, groups and files
// as there were.
func TestManyRunsLeaveNothing(t *testing.T) {
	s := embed(t, supervisor.Options{Pool: 1})
	count := func() [5]int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		_ = filepath.WalkDir(os.TempDir(), func(string, os.DirEntry, error) error { files++; return nil })
		return [5]int{len(workers(t)), len(fds), runtime.NumGoroutine(), len(groups(t)), files}
	}
	settle := func() [5]int { // with the spare in its place, and the worker of the last run gone
		if err := s.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := count()
		await(t, 5*time.Second, "a moment at which nothing changes", func() bool {
			last := now
			now = count()
			return now == last && now[0] == 1
		})
		return now
	}
	run := func(i int) {
		completed(t, s.Exec(t.Context(), supervisor.Program{Code: fmt.Sprint(i, "+1")}), fmt.Sprint(i+1))
	}
	for i := range 5 {
		run(i)
	}
	before := settle()
	for i := range 500 {
		run(i)
	}
	if after := settle(); after != before {
		t.Errorf("processes, descriptors, goroutines, groups, files: before %v, after %v", before, after)
	}
}

// nobody makes cmd run as the user nobody, with a folder of its own for its cache.
func nobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	const id = 65534
	home, err := os.MkdirTemp("", "e2e-nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Chown(home, id, id); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{built.dir, filepath.Dir(cmd.Path)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.Dir = "/"
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	OK                bool
	Error             string
	Required, Missing []string
	Layers            isolation.Report
	Attacks           []struct{ Name, Outcome, Verdict string }
	Escapes           struct {
		Attempts       []supervisor.EscapeAttempt
		Added, Missing []string
	}
}

// doctor runs the command and gives what it found and its exit code.
func doctor(t *testing.T, asNobody bool, args ...string) (d diagnosis, code int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(binaries(t), "supervisor"), append([]string{"doctor", "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome(t))
	if asNobody {
		nobody(t, cmd)
	}
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return d, cmd.ProcessState.ExitCode()
}

// SPEC 15.3, must hold: as root with strict every layer is on and every attack is refused.
func TestDoctorStrict(t *testing.T) {
	strict(t)
	d, code := doctor(t, false, "--attack", "--set", "supervisor.isolation.preset=strict")
	if code != 0 || !d.OK || len(d.Missing) != 0 || len(d.Required) != len(isolation.Layers()) {
		t.Errorf("exit code %d, %+v", code, d)
	}
	for _, l := range d.Layers {
		if l.State != isolation.On {
			t.Errorf("%+v", l)
		}
	}
	if len(d.Attacks) < 80 {
		t.Errorf("%d attacks, want at least 80", len(d.Attacks))
	}
	for _, a := range d.Attacks {
		if a.Verdict != "refused" {
			t.Errorf("attack %q got %s: %s", a.Name, a.Outcome, a.Verdict)
		}
	}
	if len(d.Escapes.Attempts) < 20 || len(d.Escapes.Added)+len(d.Escapes.Missing) > 0 {
		t.Errorf("%d attempts to escape, added %q, missing %q", len(d.Escapes.Attempts), d.Escapes.Added, d.Escapes.Missing)
	}
	for _, a := range d.Escapes.Attempts {
		if a.Escaped {
			t.Errorf("%s escaped: %s", a.Name, a.Detail)
		}
	}
}

// SPEC 15.2, 15.3, must hold: an unprivileged user is told exactly what is missing, and what is on
// refuses attacks.
// Validation 16: import, require, and access to files, network and environment fail
func TestDoctorUnprivileged(t *testing.T) {
	d, code := doctor(t, true, "--attack")
	if code != 0 || !d.OK {
		t.Errorf("exit code %d, error %q", code, d.Error)
	}
	for _, l := range d.Layers {
		if l.State != isolation.On && (l.Reason == "" || l.Remedy == "") {
			t.Errorf("%+v: what is missing has a reason and a remedy", l)
		}
		if l.State != isolation.On && !strings.HasPrefix(string(l.Layer), "cgroup.") {
			t.Errorf("%+v: this host gives that to everybody", l)
		}
	}
	for _, a := range d.Attacks {
		if a.Verdict != "refused" {
			t.Errorf("attack %q got %s: %s", a.Name, a.Outcome, a.Verdict)
		}
	}
	if len(d.Attacks) < 80 {
		t.Errorf("%d attacks, want at least 80", len(d.Attacks))
	}
}

// SPEC 15.2, must hold: a layer that is required and cannot be had is runtime_unavailable, exit
// code 5, and no worker is started.
func TestRequiredCgroupUnprivileged(t *testing.T) {
	cmd := exec.Command(filepath.Join(binaries(t), "supervisor"))
	nobody(t, cmd)
	mark := filepath.Join(cmd.Env[0][len("HOME="):], "started")
	worker := filepath.Join(filepath.Dir(mark), "worker")
	if err := os.WriteFile(worker, []byte("#!/bin/sh\necho > "+mark+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Args = append(cmd.Args, "run", "--json", "--set", `supervisor.isolation.require=["cgroup.memory"]`, "--set", "supervisor.worker="+worker, "-e", "1")
	out, _ := cmd.Output()
	if _, err := os.Stat(mark); err == nil {
		t.Error("a worker was started")
	}
	var res supervisor.Result
	if err := json.Unmarshal(out, &res); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if code := cmd.ProcessState.ExitCode(); code != 5 || res.Code != supervisor.RuntimeUnavailable || !strings.Contains(res.Error, "cgroup.memory is unavailable") {
		t.Errorf("exit code %d, %s", code, out)
	}
	if !strings.Contains(res.Error, "cgroupParent") && !strings.Contains(res.Error, "Delegate") {
		t.Errorf("no remedy in %s", res.Error)
	}
	if d, code := doctor(t, true, "--set", `supervisor.isolation.require=["cgroup.memory"]`); code != 5 || d.OK || !slices.Equal(d.Missing, []string{"cgroup.memory"}) {
		t.Errorf("doctor: exit code %d, %+v", code, d)
	}
	// Without the requirement it runs.
	cmd = exec.Command(filepath.Join(binaries(t), "supervisor"), "run", "-e", "1 + 2")
	nobody(t, cmd)
	if out, err := cmd.Output(); err != nil || string(out) != "3\n" {
		t.Errorf("best-effort: %v, %s", err, out)
	}
}
