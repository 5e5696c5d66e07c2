//go:build linux

// What a worker says in its main package, for the child that this binary plays.
//
//go:debug updatemaxprocs=0
//go:debug containermaxprocs=0
//go:debug decoratemappings=0

package lockdown

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
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// static is this test binary, or one that is built like it but without cgo: the child of all
// tests that lock a process.
var static string

// TestMain plays a child, or runs the tests with a binary that can.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2], os.Args[3], os.Args[4:]))
	}
	dir, err := os.MkdirTemp("", "lockdown-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // another uid runs it, too
	}
	if err == nil {
		static, err = staticBinary(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "making the child of the tests:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func staticBinary(dir string) (string, error) {
	path := filepath.Join(dir, "lockdown.test")
	if cgo {
		// As under plain "go test" where there is a C compiler, and under -race.
		build := exec.Command("go", "test", "-c", "-o", path, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building it with CGO_ENABLED=0: %w: %s", err, out)
		}
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if os.Getuid() != 0 {
		return self, nil // run by TestUnprivileged, or by somebody who can read his own binary
	}
	// go test's own directory is its user's alone.
	b, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, b, 0o755)
}

// ownUID is what root's workers get, as the supervisor would pick one.
const ownUID = 2_000_000_001

// A mode is what the host half does for the child.
type mode struct {
	name       string
	namespaces bool
}

var (
	plain      = mode{"plain", false}
	namespaced = mode{"namespaced", true}
	modes      = []mode{plain, namespaced}
)

// plan is the strongest one that fits the mode.
func (m mode) plan(without ...isolation.Layer) Plan {
	return Plan{User: m.namespaces, Mount: m.namespaces, DataBytes: 1 << 30, CPUSeconds: 60, Without: without}
}

// self are the layers of this package.
var self = []isolation.Layer{
	isolation.Environment, isolation.Descriptors, isolation.EmptyRoot, isolation.Rlimits, isolation.OOMScore, isolation.Capabilities, isolation.NoNewPrivs,
	isolation.LandlockFiles, isolation.LandlockNetwork, isolation.LandlockScopes, isolation.Seccomp,
}

// only is the plan with nothing but the layers.
func (m mode) only(layers ...isolation.Layer) Plan {
	return m.plan(slices.DeleteFunc(slices.Clone(self), func(l isolation.Layer) bool { return slices.Contains(layers, l) })...)
}

// command is the child in its surroundings, not started.
func (m mode) command(behaviour string, p Plan, args ...string) *exec.Cmd {
	cmd := exec.Command(static, append([]string{"child", behaviour, p.Encode()}, args...)...)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if m.namespaces {
		a := cmd.SysProcAttr
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
		if uid := os.Getuid(); uid != 0 {
			a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
			a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		} else {
			// The child begins as the host's root, unmapped, and becomes the mapped uid itself.
			a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: ownUID, Size: 1}}
			a.GidMappings = a.UidMappings
			a.GidMappingsEnableSetgroups = true
			a.AmbientCaps = []uintptr{unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP, unix.CAP_SYS_ADMIN}
		}
	}
	return cmd
}

// A running child.
type running struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	report isolation.Report
}

// start runs the child up to the report that it gives when it is locked.
func (m mode) start(t testing.TB, behaviour string, p Plan, args ...string) *running {
	t.Helper()
	return m.startCommand(t, m.command(behaviour, p, args...))
}

func (m mode) startCommand(t testing.TB, cmd *exec.Cmd) *running {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		if m.namespaces && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL)) {
			t.Skipf("requires user namespaces: %v", err)
		}
		t.Fatal(err)
	}
	r := &running{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	hung := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		hung.Stop()
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() && stderr.Len() > 0 {
			t.Logf("the child's stderr: %.3000s", stderr.String())
		}
	})
	line, err := r.out.ReadString('\n')
	if err != nil {
		cmd.Wait()
		t.Fatalf("the child gave no report: %v, %v", err, cmd.ProcessState)
	}
	if err := json.Unmarshal([]byte(line), &r.report); err != nil {
		t.Fatalf("the child's report %q: %v", line, err)
	}
	return r
}

// line is the child's next line, "" when it ended.
func (r *running) line() string {
	s, _ := r.out.ReadString('\n')
	return strings.TrimSuffix(s, "\n")
}

// wait gives the child's end.
func (r *running) wait() syscall.WaitStatus {
	io.Copy(io.Discard, r.out)
	r.cmd.Wait()
	return r.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// status reads a status file's fields, the process's or a thread's.
func status(t testing.TB, file string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}

// child is what a worker does: lock, say so, and then what a taken-over one might do.
func child(behaviour, plan string, args []string) int {
	p, err := Decode(plan)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	parent = os.Getppid()
	switch behaviour {
	case "supervise":
		return supervise(p, args[0])
	case "initramfs":
		return initramfs()
	}
	if behaviour == "time" && len(args) > 0 {
		n, _ := strconv.Atoi(args[0])
		threads(n)
	}
	start := time.Now()
	l := Begin(p, 4) // 3 is the channel
	begun := time.Now()
	after := prepare(behaviour, args) // as a worker loads its engine
	prepared := time.Now()
	report := l.Finish()
	finished := time.Now()
	line, _ := json.Marshal(report)
	fmt.Printf("%s\n", line)
	if behaviour == "time" {
		fmt.Println(begun.Sub(start).Nanoseconds(), finished.Sub(prepared).Nanoseconds())
	}
	return after()
}

// prepare makes what a behaviour needs before the lock and gives what it does behind it.
func prepare(behaviour string, args []string) func() int {
	switch behaviour {
	case "attack":
		return func() int { return try(args) }
	case "live":
		return live()
	case "threads":
		hold := threads(8)
		return func() int {
			more := threads(8)
			fmt.Println("threads")
			wait()
			close(hold)
			close(more)
			return 0
		}
	case "open":
		locked, results := make(chan struct{}), make(chan error)
		for range 8 {
			go func() {
				runtime.LockOSThread()
				results <- nil
				<-locked
				results <- named("open").do()
			}()
			<-results
		}
		return func() int {
			close(locked)
			for range 8 {
				fmt.Println(<-results)
			}
			return 0
		}
	case "wait":
		return func() int { wait(); return 0 }
	case "minute": // long enough to be killed in, short enough not to be left behind
		return func() int { time.Sleep(time.Minute); return 0 }
	case "time":
		return func() int { return 0 }
	case "other-filter":
		otherFilter()
		return func() int { return 0 }
	case "pdeathsig":
		return func() int { fmt.Println(pdeathsig()); return 0 }
	}
	fmt.Fprintf(os.Stderr, "there is no behaviour %q\n", behaviour)
	os.Exit(1)
	return nil
}

// wait returns when the test lets go of the child.
func wait() { io.Copy(io.Discard, os.Stdin) }

// threads gives n OS threads something to hold, until the channel is closed.
func threads(n int) chan struct{} {
	hold, there := make(chan struct{}), make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			there <- struct{}{}
			<-hold
		}()
	}
	for range n {
		<-there
	}
	return hold
}
