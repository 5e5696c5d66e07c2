package cgroup

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"golang.org/x/sys/unix"
)

// The test binary is the child, too: CGROUP_TEST_CHILD names what it does.
const childVariable = "CGROUP_TEST_CHILD"

// With CODEMODE_TEST_REQUIRE=1 (make e2e-vm) a test that cannot run here is a failure.
const requireVariable = "CODEMODE_TEST_REQUIRE"

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(childVariable)); len(args) > 0 {
		behaviours[args[0]](args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The behaviours of children. Those that wait for "go" are in their groups by then.
var behaviours = map[string]func(args []string){
	"hog":       hog,
	"fork-bomb": forkBomb,
	"spin":      spin,
	"family":    family,
	"where":     where,
	"instance":  instance,
	"nobody":    nobody,
}

// waitForGo reads the byte that the test writes.
func waitForGo() { _, _ = io.ReadFull(os.Stdin, make([]byte, 1)) }

// hog uses so many MiB.
func hog(args []string) {
	waitForGo()
	mib, _ := strconv.Atoi(args[0])
	b, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		fmt.Println("mmap:", err)
		return
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	fmt.Println("survived")
}

// forkBomb forks until it may not, and says why.
func forkBomb([]string) {
	runtime.LockOSThread()
	waitForGo()
	for n := 0; ; n++ {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			// Not one allocation more: the runtime would die of the thread that it cannot have.
			if errno == unix.EAGAIN && n > 0 {
				_, _ = unix.Write(1, []byte("EAGAIN\n"))
			}
			unix.Exit(0)
		}
		for pid == 0 {
			_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
}

// spin uses a CPU for half a second.
func spin([]string) {
	waitForGo()
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
	}
}

// family has a child in a session of its own, which has one, which has none. The last one says so.
func family(args []string) {
	waitForGo()
	if n, _ := strconv.Atoi(args[0]); n > 0 {
		c := exec.Command("/proc/self/exe")
		c.Env = append(os.Environ(), childVariable+"=family "+strconv.Itoa(n-1))
		c.Stdin = strings.NewReader("g")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			fmt.Println(err)
		}
	} else {
		fmt.Println("complete")
	}
	for {
		_ = unix.Pause()
	}
}

// where prints its cgroups.
func where([]string) {
	waitForGo()
	b, err := os.ReadFile("/proc/self/cgroup")
	fmt.Printf("%s%v\n", b, err)
}

// instance is another supervisor, with a worker that leaves its session. It prints its directories.
func instance([]string) {
	h, err := Open("")
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	g, err := h.New(Limits{})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	r, w, _ := os.Pipe()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), childVariable+"=family 1")
	c.Stdin, c.Stdout = r, os.Stdout
	born := g.FD() >= 0
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: born, CgroupFD: g.FD()}
	if err := errors.Join(c.Start(), g.Join(c.Process.Pid, born)); err != nil {
		fmt.Println("error:", err)
		return
	}
	for _, t := range h.trees {
		fmt.Println(g.dir(t))
	}
	_, _ = w.Write([]byte("g")) // the family prints "complete"
	waitForGo()
}

// nobody is a supervisor without rights.
func nobody([]string) {
	h, err := Open("")
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	_, wrong := Open("/")
	g, err := h.New(Limits{MemoryBytes: 1 << 20, Pids: 1, CPUs: 1})
	if err == nil {
		err = errors.Join(g.Join(os.Getpid(), false), g.SetMemory(1<<20), g.Kill(), g.Remove(), h.Close())
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"report": h.Report(), "trees": len(h.trees), "errors": fmt.Sprint(err), "parent": fmt.Sprint(wrong)})
}

// openHost opens a host, and checks at the end that nothing of it is left.
func openHost(t *testing.T) *Host {
	t.Helper()
	h, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, tree := range h.trees {
			if exists(tree.dir) {
				t.Errorf("%q is left", tree.dir)
			}
		}
	})
	return h
}

// need skips the test where a layer is missing.
func need(t *testing.T, h *Host, l isolation.Layer) {
	t.Helper()
	if s := h.Report().Get(l); s.State != isolation.On {
		cannot(t, "requires %s, which is %s: %s", l, s.State, s.Reason)
	}
}

// cannot skips the test, or fails it where all have to run.
func cannot(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv(requireVariable) != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// v2 gives the host's v2 tree.
func v2(t *testing.T, h *Host) *tree {
	t.Helper()
	for _, tree := range h.trees {
		if tree.v2 {
			return tree
		}
	}
	cannot(t, "requires a v2 tree that can be written")
	return nil
}

func newGroup(t *testing.T, h *Host, l Limits) *Group {
	t.Helper()
	g, err := h.New(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Kill(), g.Remove()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// A child is a process in a group.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader // ends when the last process that holds it is gone
}

// start starts a behaviour in a group, born inside where that can be had.
func start(t *testing.T, g *Group, behaviour string) *child {
	t.Helper()
	c := &child{cmd: exec.Command("/proc/self/exe")}
	c.cmd.Env = append(os.Environ(), childVariable+"="+behaviour)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe() // not StdoutPipe: Wait would close it
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	t.Cleanup(func() { r.Close() })
	c.in, c.out, c.cmd.Stdout = in, bufio.NewReader(r), w
	born := g != nil && g.FD() >= 0
	if c.cmd.SysProcAttr = (&syscall.SysProcAttr{Setsid: true}); born {
		c.cmd.SysProcAttr.UseCgroupFD, c.cmd.SysProcAttr.CgroupFD = true, g.FD()
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	if g != nil {
		if err := g.Join(c.cmd.Process.Pid, born); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run lets the child go, and gives what it printed and how it ended.
func (c *child) run(t *testing.T) (string, syscall.WaitStatus) {
	t.Helper()
	if _, err := c.in.Write([]byte("g")); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // the status says all
	line, _ := c.out.ReadString('\n')
	return strings.TrimSpace(line), c.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// SPEC 13.3, 16.2: the OS ends a worker above its memory limit, and the counters say that it did.
func TestMemory(t *testing.T) {
	h := openHost(t)
	need(t, h, isolation.CgroupMemory)
	g := newGroup(t, h, Limits{MemoryBytes: 64 << 20})
	if out, status := start(t, g, "hog 24").run(t); out != "survived" || status.ExitStatus() != 0 {
		t.Fatalf("24 MiB of 64: said %q, ended by %v", out, status.Signal())
	}
	if c := g.Counters(); c.OOMKills != 0 {
		t.Fatalf("24 MiB of 64: %+v, want no OOM kill", c)
	}
	out, status := start(t, g, "hog 200").run(t)
	if out != "" || status.Signal() != syscall.SIGKILL {
		t.Errorf("200 MiB of 64: said %q, ended by %v, want SIGKILL", out, status.Signal())
	}
	c := g.Counters()
	if c.OOMKills <= 0 {
		t.Errorf("200 MiB of 64: %+v, want an OOM kill", c)
	}
	if tree := g.with("memory"); (!tree.v2 || exists(filepath.Join(g.dir(tree), "memory.peak"))) && (c.PeakBytes < 60<<20 || c.PeakBytes > 66<<20) {
		t.Errorf("200 MiB of 64: a peak of %d bytes", c.PeakBytes)
	}
}

// A spare worker gets its run's limit at hand-out (SPEC 16.1).
func TestSetMemory(t *testing.T) {
	h := openHost(t)
	need(t, h, isolation.CgroupMemory)
	for _, c := range []struct {
		before, after uint64
		dies          bool
	}{
		{256 << 20, 48 << 20, true},
		{48 << 20, 256 << 20, false},
		{48 << 20, 0, true}, // leaves it alone
	} {
		g := newGroup(t, h, Limits{MemoryBytes: c.before})
		worker := start(t, g, "hog 100")
		if err := g.SetMemory(c.after); err != nil {
			t.Fatal(err)
		}
		out, status := worker.run(t)
		if died := status.Signal() == syscall.SIGKILL && out == "" && g.Counters().OOMKills > 0; died != c.dies {
			t.Errorf("100 MiB, with a limit of %d that became %d: said %q, ended by %v, %+v", c.before, c.after, out, status.Signal(), g.Counters())
		}
	}
}

// SPEC 15.1: cgroup.pids.
func TestPids(t *testing.T) {
	h := openHost(t)
	need(t, h, isolation.CgroupPids)
	g := newGroup(t, h, Limits{Pids: 32})
	bomb := start(t, g, "fork-bomb")
	if out, _ := bomb.run(t); out != "EAGAIN" {
		t.Errorf("the fork bomb said %q, want EAGAIN", out)
	}
	if c := g.Counters(); c.PidsMax <= 0 {
		t.Errorf("%+v, want a fork refused", c)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, bomb.out) // ends when all of them are gone
}

// SPEC 15.1: cgroup.cpu.
func TestCPU(t *testing.T) {
	h := openHost(t)
	need(t, h, isolation.CgroupCPU)
	g := newGroup(t, h, Limits{CPUs: 0.2})
	start(t, g, "spin").run(t)
	if c := g.Counters(); c.Throttled <= 0 {
		t.Errorf("%+v, want throttled periods", c)
	}
}

// SPEC 15.1: the worker is in its group in every tree before its first untrusted byte: in v2 from its
// birth.
func TestBornAndJoined(t *testing.T) {
	h := openHost(t)
	if len(h.trees) == 0 {
		cannot(t, "requires a tree that can be written: %+v", h.Report())
	}
	g := newGroup(t, h, Limits{})
	c := start(t, g, "where")
	if _, err := c.in.Write([]byte("g")); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range h.trees {
		want := "/" + filepath.Base(tree.dir) + "/" + g.name
		if !slices.ContainsFunc(parseSelf(string(text)), func(m membership) bool {
			right := m.controllers == nil
			if !tree.v2 {
				right = slices.Contains(m.controllers, tree.controllers[0])
			}
			return right && strings.HasSuffix(m.name, want)
		}) {
			t.Errorf("it is not in %q: %s", g.dir(tree), text)
		}
	}
}

// Born inside means that Join has nothing to do for the v2 tree.
func TestBornInside(t *testing.T) {
	h := openHost(t)
	tree := v2(t, h)
	g := newGroup(t, h, Limits{})
	if g.FD() < 0 {
		cannot(t, "requires CLONE_INTO_CGROUP (Linux 5.7)")
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), childVariable+"=where")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if pids, err := processes(g.dir(tree)); err != nil || !slices.Contains(pids, c.Process.Pid) {
		t.Errorf("the group has %v (%v), want %d in it", pids, err, c.Process.Pid)
	}
	in.Close()
	_ = c.Wait()
}

// Our own cgroup stays one that can have processes and children: pids or cpu alone in its
// subtree_control would make all children "domain invalid".
func TestOwnCgroupStaysDomain(t *testing.T) {
	h := openHost(t)
	v2(t, h)
	mounts, self, err := trees()
	if err != nil {
		t.Fatal(err)
	}
	_, own, _ := reach(mounts, self, "", func(m mount) bool { return m.v2 })
	if kind, err := readFile(filepath.Join(own, "cgroup.type")); err == nil && kind != "domain\n" {
		t.Errorf("%q is %q, want domain", own, kind)
	}
}

// freeze freezes the group's v2 tree (Linux 5.2) and waits until the kernel says so.
func freeze(t *testing.T, dir string) {
	t.Helper()
	events, err := open(filepath.Join(dir, "cgroup.events"), unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(events)
	if err := writeFile(filepath.Join(dir, "cgroup.freeze"), "1"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 256)
	for {
		n, err := unix.Pread(events, buf, 0)
		if err != nil {
			t.Fatal(err)
		}
		if field(string(buf[:n]), "frozen") == 1 {
			return
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(events), Events: unix.POLLPRI}}, 10_000); n == 0 {
			t.Fatalf("%q is not frozen after 10 s: %v", dir, err)
		}
	}
}

// SPEC 16.2: Kill ends all that came of the worker, those that left its session and frozen ones too, with
// cgroup.kill and without.
func TestKill(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		for _, each := range []bool{false, true} {
			t.Run(fmt.Sprintf("frozen=%t,each=%t", frozen, each), func(t *testing.T) {
				h := openHost(t)
				if len(h.trees) == 0 {
					cannot(t, "requires a tree that can be written: %+v", h.Report())
				}
				if frozen {
					v2(t, h)
				}
				g := newGroup(t, h, Limits{})
				c := start(t, g, "family 2")
				if _, err := c.in.Write([]byte("g")); err != nil {
					t.Fatal(err)
				}
				if line, err := c.out.ReadString('\n'); line != "complete\n" {
					t.Fatalf("%q, %v", line, err)
				}
				if frozen {
					freeze(t, g.dir(v2(t, h)))
				}
				if each {
					var dirs []string
					for _, tree := range g.trees {
						dirs = append(dirs, g.dir(tree))
					}
					if err := killEach(dirs); err != nil {
						t.Fatal(err)
					}
				} else if err := g.Kill(); err != nil {
					t.Fatal(err)
				}
				if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 { // ends when all three are gone
					t.Errorf("%q, %v", rest, err)
				}
				if err := g.Remove(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// SPEC 16.2: what was made is removed, however often that is asked for.
func TestRemove(t *testing.T) {
	h := openHost(t)
	g := newGroup(t, h, Limits{MemoryBytes: 64 << 20, Pids: 8, CPUs: 0.5})
	for _, tree := range g.trees {
		if !exists(g.dir(tree)) {
			t.Errorf("%q was not made", g.dir(tree))
		}
	}
	for range 3 {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}
	if g.FD() != -1 {
		t.Errorf("FD after Remove is %d", g.FD())
	}
	for _, tree := range g.trees {
		if exists(g.dir(tree)) {
			t.Errorf("%q is left", g.dir(tree))
		}
	}
	if err := g.Kill(); err != nil {
		t.Errorf("Kill after Remove: %v", err)
	}
	if c := g.Counters(); c != (Counters{}) {
		t.Errorf("after Remove: %+v", c)
	}
}

// SPEC 14.2: Close takes what runs in the groups with it, once.
func TestCloseKills(t *testing.T) {
	h := openHost(t)
	if len(h.trees) == 0 {
		cannot(t, "requires a tree that can be written: %+v", h.Report())
	}
	g, err := h.New(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, g, "family 1")
	if _, err := c.in.Write([]byte("g")); err != nil {
		t.Fatal(err)
	}
	if line, err := c.out.ReadString('\n'); line != "complete\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for range 2 {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if _, err := h.New(Limits{}); err == nil {
		t.Error("New after Close gave a group")
	}
	if err := g.Remove(); err != nil {
		t.Errorf("Remove after Close: %v", err)
	}
}

// A limit that cannot be written leaves no group, and no worker without it.
func TestNewFailsClosed(t *testing.T) {
	h := openHost(t)
	if len(h.trees) == 0 {
		cannot(t, "requires a tree that can be written: %+v", h.Report())
	}
	last := h.trees[len(h.trees)-1]
	last.controllers = append(last.controllers, "memory", "pids")
	if h.trees[0].v2 && len(h.trees) == 1 {
		// Pure v2: take the controllers back, as somebody else's write to subtree_control could.
		for _, c := range []string{"memory", "pids"} {
			if err := writeFile(filepath.Join(last.dir, "cgroup.subtree_control"), "-"+c); err != nil {
				t.Fatal(err)
			}
		}
	} else if slices.Equal(last.controllers, []string{"memory", "pids"}) {
		t.Fatalf("unexpected trees: %+v", h.trees)
	}
	g, err := h.New(Limits{MemoryBytes: 1 << 20, Pids: 1})
	if err == nil || !strings.Contains(err.Error(), `writing "`) {
		t.Fatalf("New gave %v, %v", g, err)
	}
	for _, tree := range h.trees {
		if left := children(tree.dir); len(left) > 0 {
			t.Errorf("%q is left", left)
		}
	}
}

// SPEC 16.3: what a SIGKILLed supervisor left is removed at the next start, and a living one's groups are
// never touched.
func TestSweep(t *testing.T) {
	h := openHost(t)
	if len(h.trees) == 0 {
		cannot(t, "requires a tree that can be written: %+v", h.Report())
	}
	other := start(t, nil, "instance")
	var dirs []string
	for {
		line, err := other.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the instance: %v after %q", err, dirs)
		}
		if line = strings.TrimSpace(line); line == "complete" {
			break
		}
		dirs = append(dirs, line)
	}
	if len(dirs) != len(h.trees) {
		t.Fatalf("the instance has %q", dirs)
	}

	if err := openHost(t).Close(); err != nil {
		t.Error(err)
	}
	for _, dir := range dirs {
		if pids, err := processes(dir); err != nil || len(pids) != 2 {
			t.Errorf("after a sweep beside a living instance %q has %v (%v), want two processes", dir, pids, err)
		}
	}

	if err := other.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.cmd.Wait()
	if err := openHost(t).Close(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(other.out); err != nil || len(rest) > 0 { // ends when its workers are gone
		t.Errorf("%q, %v", rest, err)
	}
	for _, dir := range dirs {
		if parent := filepath.Dir(dir); !until(func() bool { return !exists(parent) }) { // another process may be at it
			t.Errorf("%q of a dead instance is left", parent)
		}
	}
}

// Only directories with the exact form of name are swept.
func TestSweepLeavesOthers(t *testing.T) {
	h := openHost(t)
	if len(h.trees) == 0 {
		cannot(t, "requires a tree that can be written: %+v", h.Report())
	}
	name := filepath.Base(h.trees[0].dir)
	for _, tree := range h.trees {
		dir := filepath.Join(tree.parent, name+"x")
		if err := unix.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		sweep(tree.parent)
		if err := unix.Rmdir(dir); err != nil {
			t.Errorf("a directory that is not ours: %v", err)
		}
	}
}

// Instances that start and end at once do not take each other's groups.
func TestHammer(t *testing.T) {
	h := openHost(t)
	if len(h.trees) == 0 {
		cannot(t, "requires a tree that can be written: %+v", h.Report())
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 6 {
				h, err := Open("")
				if err != nil {
					t.Error(err)
					return
				}
				var groups sync.WaitGroup
				for range 3 {
					groups.Go(func() {
						g, err := h.New(Limits{MemoryBytes: 1 << 20, Pids: 5, CPUs: 0.5})
						if err != nil {
							t.Error(err)
							return
						}
						for _, tree := range h.trees {
							if !exists(g.dir(tree)) {
								t.Errorf("%q is gone", g.dir(tree))
							}
						}
						if err := g.Remove(); err != nil {
							t.Error(err)
						}
					})
				}
				groups.Wait()
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// SPEC 13.4: a configured parent is used, by name and by directory; one that cannot be used is an error.
func TestConfiguredParent(t *testing.T) {
	h := openHost(t)
	need(t, h, isolation.CgroupMemory)
	name := "/parent-of-" + filepath.Base(h.trees[0].dir)
	var parents []string
	for _, tree := range h.trees {
		dir := filepath.Join(tree.point, name)
		if err := unix.Mkdir(dir, 0o700); err != nil {
			t.Skipf("requires a tree's root that can be written: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Rmdir(dir); err != nil {
				t.Errorf("removing %q: %v", dir, err)
			}
		})
		parents = append(parents, dir)
	}
	for _, parent := range []string{name, parents[0]} {
		h, err := Open(parent)
		if err != nil {
			t.Fatal(err)
		}
		for i, tree := range h.trees {
			if tree.parent != parents[i] {
				t.Errorf("Open(%q) is in %q, want %q", parent, tree.parent, parents[i])
			}
		}
		if s := h.Report().Get(isolation.CgroupMemory); s.State != isolation.On {
			t.Errorf("Open(%q): %+v", parent, s)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, parent := range []string{name + "/none", "relative", "/../x"} {
		h, err := Open(parent)
		if err == nil {
			h.Close()
			t.Errorf("Open(%q) took it", parent)
		} else if !strings.Contains(err.Error(), strconv.Quote(parent)) {
			t.Errorf("Open(%q): %v, want its name in it", parent, err)
		} else {
			t.Log(err)
		}
	}
}

// SPEC 15.2: without rights all still works, and says what is missing and what to do.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("requires root, to become nobody")
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), childVariable+"=nobody")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got struct {
		Report         isolation.Report
		Trees          int
		Errors, Parent string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(got.Report) != 3 || got.Trees != 0 || got.Errors != "<nil>" {
		t.Errorf("%+v, want a report of three layers, no tree, no error", got)
	}
	if !strings.Contains(got.Parent, "permission denied") {
		t.Errorf("with a parent: %s, want permission denied", got.Parent)
	}
	for _, s := range got.Report {
		if s.State != isolation.Unavailable || !strings.Contains(s.Reason, "permission denied") || !strings.Contains(s.Remedy, "cgroupParent") {
			t.Errorf("%+v, want unavailable, with reason and remedy", s)
		}
	}
	t.Logf("%+v", got)
}
