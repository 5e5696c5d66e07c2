package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// killedProgram has all kinds of calls, before, across and after suspensions.
const killedProgram = `
const unknown = e => { if (e.started !== "unknown") throw e; return "unknown" };
text("a");
const first = (await tools.effect({k: 1})).k;
await yield_control("one");
text("b");
const some = await Promise.all([
	tools.ask({k: 2}).then(r => r.k, unknown),
	tools.read({k: 3}).then(r => r.k),
	tools.slow({k: 4}).then(r => r.k, unknown),
	tools.effect({k: 5}).then(r => r.k, unknown),
]);
text("c");
const last = await tools.effect({k: 6}).then(r => r.k, unknown);
await yield_control("two");
return [first, ...some, last];
`

// racingProgram makes calls that must not be repeated at the moment at which it is parked.
const racingProgram = `
const unknown = e => { if (e.started !== "unknown") throw e; return "unknown" };
await yield_control("one");
const p = tools.read({k: 3}).then(() => tools.effect({k: 1})).then(r => r.k, unknown);
const q = tools.slow({k: 4}).then(() => tools.effect({k: 2})).then(r => r.k, unknown);
await yield_control("two");
return [await p, await q];
`

// gatewayEnv makes this test binary a gateway that is killed at one of its steps: the
// number of the step, and a directory.
const gatewayEnv = "CODEMODE_E2E_GATEWAY"

// killer ends the process at a step, as a crash would.
type killer struct {
	mu   sync.Mutex
	left int
	log  *os.File
}

func (k *killer) step(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left--; k.left == 0 {
		fmt.Fprintf(k.log, "killed before %s\n", what)
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// Write makes each event of the trajectory a step.
func (k *killer) Write(e trajectory.Event) error { k.step("event " + string(e.Kind)); return nil }

// gatewayToKill runs the program to its end, over a kill if there was one, and prints the result.
func gatewayToKill(args string) {
	step, rest, _ := strings.Cut(args, ":")
	which, dir, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(step)
	check(err)
	code := killedProgram
	if which == "racing" {
		code = racingProgram
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	check(err)
	k := &killer{left: n, log: log}
	s, err := supervisor.New(supervisor.Options{
		Worker: os.Getenv("CODEMODE_E2E_WORKER"), CacheDir: os.Getenv("CODEMODE_E2E_CACHE"), StateDir: filepath.Join(dir, "state"), Pool: -1,
		StoreFault: func(op snapshot.Op, file string) error { k.step(string(op) + " " + filepath.Base(file)); return nil },
	})
	check(err)
	note := func(what string, call *supervisor.Call) {
		k.step(what + " of " + call.Tool.Name)
		fmt.Fprintf(log, "%s %s %s\n", what, call.Tool.Name, call.Input)
		k.step("after the " + what + " of " + call.Tool.Name)
	}
	executor := supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
		switch call.Tool.Name {
		case "ask":
			call.Hold("approval")
			note("question", call)
			if err := call.Release(); err != nil {
				return nil, err
			}
		case "slow":
			call.Park("slow")
		}
		note("effect", call)
		return call.Input, nil
	})
	var entries []catalog.Entry
	for _, name := range []string{"effect", "ask", "read", "slow"} {
		entries = append(entries, catalog.Entry{Name: name, Source: catalog.Client, Annotations: catalog.Annotations{ReadOnly: name == "read"}})
	}
	cat, _, err := catalog.Build(entries, catalog.Options{})
	check(err)
	rec := trajectory.New(k, trajectory.Policy{})
	lim := limits.Default()
	lim.Timeout = 20 * time.Second
	runs, err := s.Runs()
	check(err)
	var res *supervisor.Result
	if len(runs) == 0 {
		res = s.Exec(context.Background(), supervisor.Program{Code: code, Catalog: cat, Executor: executor, Trajectory: rec, Limits: lim})
	} else {
		res = s.Wait(context.Background(), supervisor.WaitRequest{RunID: runs[0].ID, Executor: executor, Trajectory: rec})
	}
	for res.Status == supervisor.Waiting {
		k.step("wait")
		res = s.Wait(context.Background(), supervisor.WaitRequest{RunID: res.RunID})
	}
	k.step("result")
	check(s.Close())
	fmt.Printf("%s\n", res.JSON())
}

// SPEC 14.5, 16.3, issue 3: a supervisor that is killed at any step of a run leaves one
// that goes on exactly where it was, or one that says why it cannot; no side effect
// happens twice, and no worker stays alive.
func TestKilledAtEveryStep(t *testing.T) {
	t.Run("all kinds of calls", func(t *testing.T) { killedAtEveryStep(t, "all", 6, 60, 3) })
	t.Run("calls while it is parked", func(t *testing.T) { killedAtEveryStep(t, "racing", 2, 30, 1) })
}

func killedAtEveryStep(t *testing.T, which string, values, least, leastUnknown int) {
	if testing.Short() {
		t.Skip("starts real workers")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "CODEMODE_E2E_WORKER="+filepath.Join(binaries(t), "qjs-worker"), "CODEMODE_E2E_CACHE="+codeCache(t))
	run := func(dir string, step int) (result *supervisor.Result, killed bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(env, fmt.Sprintf("%s=%d:%s:%s", gatewayEnv, step, which, dir))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signal() == syscall.SIGKILL && ctx.Err() == nil {
				return nil, true
			}
			t.Fatalf("step %d: %v\n%s", step, err, stderr.Bytes())
		}
		result = new(supervisor.Result)
		if err := json.Unmarshal(out, result); err != nil {
			t.Fatalf("step %d: %v in %s", step, err, out)
		}
		return result, false
	}
	steps, resumed, lost, unknowns := 0, 0, 0, 0
	for step := 1; ; step++ {
		dir := t.TempDir()
		res, killed := run(dir, step)
		if killed {
			noWorkers(t, time.Second)
			steps++
			res, _ = run(dir, 0)
		}
		b, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		log := string(b)
		runs := 0
		if which == "all" {
			runs = strings.Count(log, `effect effect {"k":1}`)
		}
		// A run that nobody knew of yet begins anew: its gateway has no id to wait for.
		anew := runs > 1
		counts := map[int]int{}
		for line := range strings.Lines(log) {
			var k int
			if _, in, ok := strings.Cut(line, `{"k":`); ok && strings.HasPrefix(line, "effect ") && !strings.HasPrefix(line, "effect read") {
				fmt.Sscan(strings.TrimSuffix(strings.TrimSpace(in), "}"), &k)
				counts[k]++
			}
		}
		for k, n := range counts {
			if n > 1 && !(anew && k == 1 && n == 2) {
				t.Errorf("step %d: effect %d happened %d times:\n%s", step, k, n, log)
			}
		}
		var value []any
		switch {
		case res.Status == supervisor.Completed:
			if err := json.Unmarshal(res.Value, &value); err != nil || len(value) != values {
				t.Errorf("step %d: %s", step, res.JSON())
				break
			}
			for i, v := range value {
				k := i + 1
				switch v {
				case "unknown":
					unknowns++
				case float64(k):
					if counts[k] == 0 && !strings.Contains(log, fmt.Sprintf(`effect read {"k":%d}`, k)) {
						t.Errorf("step %d: value %d without its effect:\n%s", step, k, log)
					}
				default:
					t.Errorf("step %d: value %d is %v", step, k, v)
				}
			}
			if killed && !anew {
				resumed++
			}
		case res.Code == supervisor.Aborted && strings.Contains(res.Error, "must not be repeated"):
			lost++
		default:
			t.Errorf("step %d: %s\n%s", step, res.JSON(), log)
		}
		if !killed {
			break
		}
	}
	t.Logf("%d steps: %d resumed (%d calls of unknown outcome), %d could not go on", steps, resumed, unknowns, lost)
	if steps < least || resumed < steps*2/3 || unknowns < leastUnknown || lost > 0 {
		t.Errorf("of %d steps %d resumed, with %d calls of unknown outcome, and %d were lost", steps, resumed, unknowns, lost)
	}
}
