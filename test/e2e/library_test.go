package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"go.uber.org/goleak"
)

// embed gives a supervisor with the real worker, as a gateway makes one. At the end of the
// test it is closed, and no process, file or goroutine may be left.
func embed(t *testing.T, opts supervisor.Options) *supervisor.Supervisor {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real workers")
	}
	opts.Worker, opts.CacheDir = filepath.Join(binaries(t), "qjs-worker"), codeCache(t)
	if opts.Pool == 0 {
		opts.Pool = -1 // tests count workers
	}
	before := goleak.IgnoreCurrent()
	tmp, err := os.MkdirTemp("", "e2e") // t.TempDir gives names that are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	s, err := supervisor.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close, once more: %v", err)
		}
		noWorkers(t, 0)
		goleak.VerifyNone(t, before)
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("left in TMPDIR: %v, %v", left, err)
		}
		os.RemoveAll(tmp)
		if res := s.Exec(context.Background(), supervisor.Program{Code: "1"}); res.Code != supervisor.Aborted {
			t.Errorf("Exec after Close: %s", res.JSON())
		}
	})
	return s
}

// tools gives a catalog of tools with these names.
func tools(t *testing.T, names ...string) *catalog.Catalog {
	t.Helper()
	var entries []catalog.Entry
	for _, name := range names {
		entries = append(entries, catalog.Entry{ID: "client:app:" + name, Name: name, Source: catalog.Client, SourceName: "app"})
	}
	c, warnings, err := catalog.Build(entries, catalog.Options{})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Build: %v, %v", warnings, err)
	}
	return c
}

// completed fails the test unless the run completed with this value.
func completed(t *testing.T, res *supervisor.Result, want string) {
	t.Helper()
	if res.Status != supervisor.Completed || string(res.Value) != want {
		t.Errorf("got %s, want the value %s", res.JSON(), want)
	}
}

// SPEC 1.2, 16.4, R37, R87: a worker that crashes costs its own run only.
func TestCrashCostsOneRun(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			const runs = 10
			s := embed(t, supervisor.Options{MaxWorkers: runs})
			release := make(chan struct{})
			arrived := make(chan struct{}, runs)
			hold := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
				arrived <- struct{}{}
				select {
				case <-release:
					return call.Input, nil
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			})
			cat := tools(t, "hold")
			results := make(chan *supervisor.Result, runs)
			for i := range runs {
				go func() {
					results <- s.Exec(t.Context(), supervisor.Program{
						Code: fmt.Sprintf("text(%d); (await tools.hold({v: %d})).v", i, i), Catalog: cat, Executor: hold,
						Limits: limitsWith(func(l *limits.Limits) { l.Timeout = 30 * time.Second }),
					})
				}()
			}
			for range runs {
				select {
				case <-arrived:
				case res := <-results:
					t.Fatalf("a run ended before it was let: %s", res.JSON())
				case <-time.After(30 * time.Second):
					t.Fatal("the runs did not get to their call")
				}
			}
			pids := workers(t)
			if len(pids) != runs {
				t.Fatalf("%d workers, want %d", len(pids), runs)
			}
			if err := syscall.Kill(pids[3], sig); err != nil {
				t.Fatal(err)
			}
			var dead *supervisor.Result
			select {
			case dead = <-results:
			case <-time.After(2 * time.Second):
				t.Fatal("the run of the dead worker did not end")
			}
			if dead.Code != supervisor.InternalError || dead.Phase != supervisor.PhaseHost || dead.Error == "" {
				t.Errorf("the run of the dead worker: %s", dead.JSON())
			}
			if sig == syscall.SIGKILL && !strings.Contains(dead.Error, "killed") && !strings.Contains(dead.Error, "signal") {
				t.Errorf("the error does not name the signal: %s", dead.Error)
			}
			if len(dead.Output) != 1 || len(dead.Telemetry.Calls) != 1 || dead.Telemetry.Calls[0].State != supervisor.InFlight {
				t.Errorf("the dead run's output and calls: %s", dead.JSON())
			}
			close(release)
			var values []string
			for range runs - 1 {
				res := <-results
				if res.Status != supervisor.Completed {
					t.Errorf("another run: %s", res.JSON())
				}
				values = append(values, string(res.Value))
			}
			slices.Sort(values)
			if len(slices.Compact(values)) != runs-1 {
				t.Errorf("values %v, want %d different ones", values, runs-1)
			}
			completed(t, s.Exec(t.Context(), supervisor.Program{Code: "1+1"}), "2")
		})
	}
}

// SPEC 10.7, 11.3: the telemetry and the executor name a call alike, whatever came before it.
func TestCallIDs(t *testing.T) {
	s := embed(t, supervisor.Options{})
	var told []string
	res := s.Exec(t.Context(), supervisor.Program{
		Code:    `await tools.search("echo"); await tools.echo({}); await tools.describe("echo"); await tools.echo({}); 1`,
		Catalog: tools(t, "echo"),
		Executor: supervisor.ExecutorFunc(func(_ context.Context, call *supervisor.Call) (json.RawMessage, error) {
			told = append(told, call.ID)
			return call.Input, nil
		}),
	})
	completed(t, res, "1")
	var listed []string
	for _, info := range res.Telemetry.Calls {
		listed = append(listed, info.ID)
	}
	if want := []string{res.RunID + ":2", res.RunID + ":4"}; !slices.Equal(told, want) || !slices.Equal(listed, want) {
		t.Errorf("the executor was told %v, the telemetry has %v, want %v", told, listed, want)
	}
}

// limitsWith changes the default limits.
func limitsWith(change func(*limits.Limits)) limits.Limits {
	l := limits.Default()
	change(&l)
	return l
}

// SPEC 9.4: items come as they are emitted, in order, before the run ends.
func TestOutputStreams(t *testing.T) {
	s := embed(t, supervisor.Options{})
	items := make(chan supervisor.Item, 100)
	gate := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
		select { // what was emitted before the call is here before the call
		case item := <-items:
			return json.Marshal(item.Text())
		case <-ctx.Done():
			return nil, errors.New("no output came before the call")
		}
	})
	var got []string
	res := s.Exec(t.Context(), supervisor.Program{
		Code:    `text("a"); const a = await tools.gate({}); json({b: 1}); const b = await tools.gate({}); console.warn("c"); text("d"); [a, b]`,
		Catalog: tools(t, "gate"), Executor: gate,
		Output: func(item supervisor.Item) { got = append(got, item.Text()); items <- item },
	})
	completed(t, res, `["a","{\"b\":1}"]`)
	var inResult []string
	for _, item := range res.Output {
		inResult = append(inResult, item.Text())
	}
	if diff := cmp.Diff([]string{"a", `{"b":1}`, "[warn] c", "d"}, got); diff != "" {
		t.Errorf("streamed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, inResult); diff != "" {
		t.Errorf("streamed and in the result (-streamed +result):\n%s", diff)
	}
}

// SPEC 2.4, openclaw P115458: a run sees the tools of its own catalog and of no other.
func TestCatalogsOfRuns(t *testing.T) {
	s := embed(t, supervisor.Options{})
	var mu sync.Mutex
	called := map[string][]string{}
	var both sync.WaitGroup
	both.Add(2)
	executor := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
		mu.Lock()
		called[call.Scope.SessionID] = append(called[call.Scope.SessionID], call.Tool.ID)
		mu.Unlock()
		both.Done() // the runs are at it at the same time
		both.Wait()
		return []byte(`1`), nil
	})
	code := func(own, other string) string {
		return fmt.Sprintf(`await tools.%[1]s({});
			let error; try { await tools.call("client:app:%[2]s", {}) } catch (e) { error = e.code }
			[ALL_TOOLS.map(t => t.name), %[2]q in tools, error, (await tools.search(%[2]q)).length]`, own, other)
	}
	results := make([]*supervisor.Result, 2)
	var runs sync.WaitGroup
	for i, own := range []string{"alpha", "beta"} {
		other := []string{"beta", "alpha"}[i]
		runs.Go(func() {
			results[i] = s.Exec(t.Context(), supervisor.Program{
				Code: code(own, other), Catalog: tools(t, own), Executor: executor, Scope: supervisor.Scope{SessionID: own},
			})
		})
	}
	runs.Wait()
	completed(t, results[0], `[["alpha"],false,"unknown_tool",0]`)
	completed(t, results[1], `[["beta"],false,"unknown_tool",0]`)
	want := map[string][]string{"alpha": {"client:app:alpha"}, "beta": {"client:app:beta"}}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Errorf("called by session (-want +got):\n%s", diff)
	}
}

// SPEC 10.1: what a call carries, whichever way the guest named the tool.
func TestCallCarries(t *testing.T) {
	s := embed(t, supervisor.Options{})
	scope := supervisor.Scope{AgentID: "agent", SessionID: "session", SessionKey: "key", Sender: "sender", Channel: "channel"}
	ids := map[string]bool{}
	n := 0
	executor := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
		n++ // the calls come one after the other
		ids[call.ID] = true
		if call.Scope != scope || call.ParentCallID != "exec-1" || call.RunID == "" || call.Tool.ID != "client:app:one" || string(call.Input) != `{}` {
			t.Errorf("call %+v", call)
		}
		return nil, nil
	})
	res := s.Exec(t.Context(), supervisor.Program{
		Code:    `await tools.one(); await tools.call("one"); await tools.call("client:app:one", {}); const {one} = tools; await one()`,
		Catalog: tools(t, "one"), Executor: executor, Scope: scope, ParentCallID: "exec-1",
	})
	completed(t, res, "null")
	if n != 4 || len(ids) != 4 {
		t.Errorf("%d calls with %d ids, want 4", n, len(ids))
	}
}

// SPEC 14.2, openclaw P102494, P109290: an abort kills the worker and ends the calls, and is no timeout.
func TestAbort(t *testing.T) {
	for _, code := range []string{`for(;;);`, `await tools.hold({})`, `tools.hold({}); for(;;);`, `"a".repeat(2e7).indexOf("a".repeat(1e7)+"b")`} {
		t.Run(code, func(t *testing.T) {
			s := embed(t, supervisor.Options{})
			ended := make(chan struct{}, 1)
			executor := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
				<-ctx.Done()
				ended <- struct{}{}
				return nil, context.Cause(ctx)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan *supervisor.Result, 1)
			running := make(chan struct{}, 1)
			go func() {
				result <- s.Exec(ctx, supervisor.Program{
					Code: `text("ready"); ` + code, Catalog: tools(t, "hold"), Executor: executor,
					Output: func(supervisor.Item) { running <- struct{}{} },
				})
			}()
			<-running
			cancel()
			began := time.Now()
			res := <-result
			if res.Code != supervisor.Aborted || res.Phase != supervisor.PhaseHost || len(res.Output) != 1 {
				t.Errorf("got %s", res.JSON())
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("the answer came %v after the abort", took)
			}
			noWorkers(t, 0)
			if res.Telemetry.Counts.Call == 1 {
				<-ended
			}
		})
	}
}

// SPEC 14.2: Close ends what runs.
func TestCloseEndsRuns(t *testing.T) {
	s := embed(t, supervisor.Options{MaxWorkers: 4})
	running := make(chan struct{}, 4)
	results := make(chan *supervisor.Result, 4)
	for range 4 {
		go func() {
			results <- s.Exec(t.Context(), supervisor.Program{Code: `text("ready"); for(;;);`, Output: func(supervisor.Item) { running <- struct{}{} }})
		}()
	}
	for range 4 {
		<-running
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	noWorkers(t, 0)
	for range 4 {
		if res := <-results; res.Code != supervisor.Aborted {
			t.Errorf("got %s", res.JSON())
		}
	}
}

// SPEC 16.1: a start that hangs once in a thousand times is one that hangs. The worker's
// first wait once kept go-plugin's last goroutine from the only processor.
func TestManyStarts(t *testing.T) {
	s := embed(t, supervisor.Options{MaxWorkers: 4})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				completed(t, s.Exec(context.Background(), supervisor.Program{Code: "1 + 2"}), "3")
			}
		})
	}
	wg.Wait()
}

// Issue: a clone without the engine builds, and its worker says which command to run.
func TestWorkerWithoutEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a worker")
	}
	dir := t.TempDir()
	embedded, err := filepath.Abs("../../cmd/qjs-worker/internal/assets/dist/embed.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{embedded: ""}}) // as if it were not there
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	worker := filepath.Join(dir, "qjs-worker")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", worker, "../../cmd/qjs-worker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s, err := supervisor.New(supervisor.Options{Worker: worker, CacheDir: codeCache(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 5 { // it ends at once, and what it said must not be lost
		res := s.Exec(context.Background(), supervisor.Program{Code: "1"})
		if res.Code != supervisor.RuntimeUnavailable || !strings.Contains(res.Error, "make deps build") {
			t.Errorf("got %s", res.JSON())
		}
	}
}
