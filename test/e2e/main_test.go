package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/test/e2e/mcpserver"
	"github.com/openclaw/codemode-supervisor/test/shipped"
	"github.com/rogpeppe/go-internal/testscript"
)

// roles are what this test binary can be instead of a test: by the environment variable that has
// its arguments.
var roles = map[string]func(args string){
	gatewayEnv:    gatewayToKill,
	mcpserver.Env: func(name string) { check(mcpserver.Serve(context.Background(), name)) },
}

// TestMain also is the tools of the stories: this binary, under another name in PATH,
// is a real program that a tool file's `command` starts.
func TestMain(m *testing.M) {
	for name, role := range roles {
		if args := os.Getenv(name); args != "" {
			role(args)
			os.Exit(0)
		}
	}
	testscript.Main(testMain{m}, map[string]func(){
		"tool-count": toolCount,
		"tool-peak":  toolPeak,
	})
}

// testMain removes what the tests of this package share.
type testMain struct{ *testing.M }

func (m testMain) Run() int {
	defer func() {
		if built.dir != "" {
			os.RemoveAll(built.dir)
		}
	}()
	return m.M.Run()
}

// built is what the tests share: both binaries and the cache of compiled code.
var built struct {
	once sync.Once
	err  error
	dir  string // of our own, removed at the end
	bin  string // holds supervisor and qjs-worker
}

// binaries gives the folder of the two real binaries, which it builds once.
// CODEMODE_BIN names a folder with prebuilt ones instead.
func binaries(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "e2e"); built.err != nil {
			return
		}
		if built.bin = os.Getenv("CODEMODE_BIN"); built.bin != "" {
			built.bin, built.err = filepath.Abs(built.bin)
			return
		}
		built.bin = filepath.Join(built.dir, "bin")
		built.err = shipped.Build(built.bin+"/", nil, "cmd/supervisor", "cmd/qjs-worker")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.bin
}

// cacheHome is the XDG_CACHE_HOME of everything here, so that the engine is compiled once.
func cacheHome(t testing.TB) string {
	binaries(t)
	return filepath.Join(built.dir, "cache")
}

// codeCache is the folder that is the first argument of all workers of ours.
func codeCache(t testing.TB) string {
	return filepath.Join(cacheHome(t), "codemode-supervisor", "code")
}

// workers lists the processes that are workers of ours.
func workers(t testing.TB) (pids []int) {
	t.Helper()
	cache := codeCache(t)
	if runtime.GOOS != "linux" {
		out, err := exec.Command("ps", "-axo", "pid=,args=").Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) >= 3 && f[1] == "codemode-worker" && f[2] == cache {
				pid, _ := strconv.Atoi(f[0])
				pids = append(pids, pid)
			}
		}
		return pids
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it is gone
		}
		if argv := strings.Split(string(b), "\x00"); len(argv) > 1 && argv[0] == "codemode-worker" && argv[1] == cache {
			pids = append(pids, pid)
		}
	}
	return pids
}

// noWorkers fails the test if a worker is alive at the end of grace.
func noWorkers(t testing.TB, grace time.Duration) {
	t.Helper()
	deadline := time.Now().Add(grace)
	for {
		pids := workers(t)
		if len(pids) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, pid := range pids {
				status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
				t.Errorf("worker %d is alive %v later:\n%.400s", pid, grace, status)
				syscall.Kill(pid, syscall.SIGKILL) // the next story must not suffer
			}
			return
		}
		pollPause()
	}
}

// pollPause gives up the CPU between two looks at the world.
func pollPause() { time.Sleep(2 * time.Millisecond) }

// await polls until done, at most for limit.
func await(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); pollPause() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen within %v", what, limit)
		}
	}
}

// baseline is what it takes to start the program and have it say something, with no cell.
var baseline = sync.OnceValue(func() time.Duration {
	best := time.Hour
	for range 5 {
		began := time.Now()
		if err := exec.Command(filepath.Join(built.bin, "supervisor"), "version").Run(); err == nil {
			best = min(best, time.Since(began))
		}
	}
	return best
})

// serially runs the stories one after the other: they measure time, and two at once would
// measure each other.
type serially struct{ *testing.T }

func (t serially) Parallel()     {}
func (t serially) Verbose() bool { return testing.Verbose() }
func (t serially) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(serially{t}) })
}

// TestStories runs the stories of testdata. Each has a HOME and a TMPDIR of its own, and
// must leave no worker and no directory of ours behind.
func TestStories(t *testing.T) {
	bin := binaries(t)
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d stories, %v", len(files), err)
	}
	t.Setenv("GOTMPDIR", built.dir) // testscript leaves a folder there for each story that -run leaves out
	for _, file := range files {
		testscript.RunT(serially{t}, testscript.Params{
			Files:              []string{file},
			Deadline:           time.Now().Add(2 * time.Minute), // a hung program costs its own story
			ContinueOnError:    true,
			RequireUniqueNames: true,
			Cmds:               commands,
			Setup: func(env *testscript.Env) error {
				home := filepath.Join(env.WorkDir, ".home")
				if err := os.Mkdir(home, 0o700); err != nil {
					return err
				}
				env.Setenv("HOME", home)
				tmp, err := os.MkdirTemp("", "story") // short: the story about long ones is tmpdir.txtar
				if err != nil {
					return err
				}
				env.Setenv("TMPDIR", tmp)
				env.Setenv("XDG_CACHE_HOME", cacheHome(t))
				env.Setenv("BIN", bin)
				env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
				t := env.T().(serially).T
				env.Values[storyKey{}] = &story{t: t}
				env.Defer(func() {
					noWorkers(t, 0)
					left, err := os.ReadDir(tmp)
					if err != nil || len(left) > 0 {
						t.Errorf("left in TMPDIR: %v, %v", left, err)
					}
					os.RemoveAll(tmp)
				})
				return nil
			},
		})
	}
}

// toolCount appends its input to the file of its argument and answers how often that
// happened: {"count": n}.
func toolCount() {
	input, err := io.ReadAll(os.Stdin)
	check(err)
	var n int
	locked(os.Args[1], func(f *os.File) {
		old, err := io.ReadAll(f)
		check(err)
		n = bytes.Count(old, []byte("\n")) + 1
		_, err = fmt.Fprintf(f, "%s\n", bytes.TrimSpace(input))
		check(err)
	})
	fmt.Printf("{\"count\": %d}\n", n)
}

// toolPeak keeps in the file of its first argument how many of it run, and how many ran at
// once at most. It ends when the number of its second argument was reached once (or cannot
// be any more), so that a supervisor that runs fewer at once is found as well as one that
// runs more.
func toolPeak() {
	input, err := io.ReadAll(os.Stdin)
	check(err)
	want, err := strconv.Atoi(os.Args[2])
	check(err)
	update := func(delta int) (peak int) {
		locked(os.Args[1], func(f *os.File) {
			var now, most int
			fmt.Fscan(f, &now, &most)
			now += delta
			peak = max(most, now)
			check(f.Truncate(0))
			_, err := f.WriteAt(fmt.Appendf(nil, "%d %d\n", now, peak), 0)
			check(err)
		})
		return peak
	}
	update(1)
	for deadline := time.Now().Add(4 * time.Second); update(0) < want && time.Now().Before(deadline); {
		pollPause()
	}
	for range 10 { // those that are too many get the time to show up
		pollPause()
	}
	update(-1)
	os.Stdout.Write(input)
}

// locked calls do with the file while no other process has it.
func locked(name string, do func(*os.File)) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	check(err)
	defer f.Close()
	check(syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	do(f)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// firstLine gives the first line that a stream says. The rest of the stream is lost.
func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}
