// Package fakeworker is a worker that misbehaves, for tests: a test binary becomes one
// when a supervisor starts it.
//
//	func TestMain(m *testing.M) { fakeworker.Main(); os.Exit(m.Run()) }
//
// A worker's environment is empty, so the behaviour is chosen by the last element of
// its code cache's path ([Cache]).
package fakeworker

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/workerproto"
)

// Cache makes a code cache directory that selects a behaviour.
func Cache(t testing.TB, behaviour string) string {
	dir := filepath.Join(t.TempDir(), behaviour)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Behaviours lists all of them, in order.
func Behaviours() []string {
	var names []string
	for name := range behaviours {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// worker is a fake that has done the honest part.
type worker struct {
	raw  net.Conn
	conn *workerproto.Conn
}

// Main runs the chosen behaviour and does not return, if this process is a worker.
func Main() {
	launch, ok := workerproto.ParseLaunch(os.Args)
	if !ok {
		return
	}
	launched = launch
	name := filepath.Base(launch.CacheDir)
	if f := early[name]; f != nil {
		f()
		os.Exit(0)
	}
	f, ok := behaviours[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "fake worker: no behaviour %q\n", name)
		os.Exit(9)
	}
	handshake(workerproto.Version)
	file := os.NewFile(workerproto.ChannelFD, "channel")
	raw, err := net.FileConn(file)
	if err != nil {
		panic(err)
	}
	file.Close()
	self = &worker{raw, workerproto.NewConn(raw)}
	f(self)
	os.Exit(0)
}

// self keeps the channel open to the end: os.Exit takes a second under the race detector, in which
// the collector could close what nobody refers to.
var self *worker

// launched is what the supervisor told us.
var launched workerproto.Launch

func handshake(version uint) { fmt.Print(launched.Handshake(version)) }

// early are behaviours of workers that never come to be ready.
var early = map[string]func(){
	"hang":           func() { block() },
	"early-exit":     func() { fmt.Fprintln(os.Stderr, "cannot find my engine"); os.Exit(3) },
	"garbage":        func() { fmt.Println("Welcome to the worker!"); block() },
	"endless-line":   func() { b := []byte(strings.Repeat("x", 4096)); writeForEver(os.Stdout, b) },
	"plugin-version": func() { handshake(99); block() },
	"evil-socket": func() {
		fmt.Printf("1|%d|unix|/run/victim.sock|netrpc|\n", workerproto.Version)
		block()
	},
}

// behaviours are those of workers that at least begin well.
var behaviours = map[string]func(*worker){
	"hang": nil, "early-exit": nil, "garbage": nil, "endless-line": nil, "plugin-version": nil, "evil-socket": nil, // in early

	"ok": func(w *worker) {
		w.begin()
		w.conn.Write(&workerproto.Output{Kind: "text", JSON: []byte(`"hello"`)})
		w.conn.Write(&workerproto.Done{Value: []byte(`42`)})
		block()
	},
	"call": func(w *worker) { // one call, and its result as the value
		w.begin()
		w.call(1, "echo", `{"v":1}`)
		w.conn.Write(&workerproto.Idle{Pending: 1})
		r := w.result()
		w.conn.Write(&workerproto.Done{Value: r.Value})
		block()
	},
	"surroundings": func(w *worker) { // what reached us, as the value
		var fds []string
		entries, _ := os.ReadDir("/proc/self/fd")
		for _, e := range entries {
			if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
				fds = append(fds, target)
			}
		}
		stdin, _ := os.Readlink("/proc/self/fd/0")
		environ, _ := os.ReadFile("/proc/self/environ")
		w.begin()
		w.conn.Write(&workerproto.Done{Value: fmt.Appendf(nil, `{"environ":%d,"home":%t,"stdin":%q,"fds":%q,"argv0":%q}`, len(environ), os.Getenv("HOME") != "", stdin, strings.Join(fds, " "), os.Args[0])})
		block()
	},
	"not-ready":   func(w *worker) { block() },
	"ready-fault": func(w *worker) { w.conn.Write(&workerproto.Ready{Fault: "no engine: run make deps"}); os.Exit(1) },
	"says-locked": func(w *worker) {
		w.report(`[{"layer":"seccomp","state":"on"}]`)
		block()
	},
	"lowers": func(w *worker) { // the first one has a layer that the next ones lack
		state := "on"
		if os.Mkdir(filepath.Join(launched.CacheDir, "seen"), 0o700) != nil {
			state = "unavailable"
		}
		w.report(fmt.Sprintf(`[{"layer":"landlock.files","state":%q}]`, state))
		w.command()
		w.conn.Write(&workerproto.Prepared{Language: "javascript", Form: "expression"})
		w.conn.Write(&workerproto.Done{Value: []byte(`42`)})
		block()
	},
	"not-itself": func(w *worker) { // could not take the uid that was mapped for it
		w.report(`[{"layer":"namespace.user","state":"unavailable","reason":"setresuid: no"}]`)
		block()
	},
	"says-nonsense": func(w *worker) {
		w.report(`[{"layer":"magic","state":"on"}]`)
		block()
	},
	"ready-lie":     func(w *worker) { w.conn.Write(&workerproto.Idle{}); block() },
	"frame-version": func(w *worker) { w.raw.Write([]byte{'c', 'm', 9, 128, 0, 0, 0, 0}); block() },
	"crash": func(w *worker) {
		w.begin()
		syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		block()
	},
	"killed": func(w *worker) { // what the kernel's OOM killer does
		w.begin()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		block()
	},
	"go-oom": func(w *worker) {
		w.begin()
		fmt.Fprintln(os.Stderr, "fatal error: runtime: cannot allocate memory")
		os.Exit(2)
	},
	"exit-0":     func(w *worker) { w.begin() },
	"exit-early": func(w *worker) { w.ready(); w.command() },
	"transform": func(w *worker) {
		w.ready()
		w.command()
		w.conn.Write(&workerproto.Stage{Name: "transform"})
		os.Exit(2)
	},
	"half-frame": func(w *worker) {
		w.begin()
		frame, _ := workerproto.Append(nil, &workerproto.Output{Kind: "text", JSON: []byte(`"half"`)})
		w.raw.Write(frame[:len(frame)-3])
	},
	"huge-frame": func(w *worker) {
		w.begin()
		w.raw.Write([]byte{'c', 'm', workerproto.Version, byte(workerproto.TypeOutput), 0x40, 0, 0, 0})
		writeForEver(w.raw, make([]byte, 1<<20))
	},
	"garbage-frame": func(w *worker) { w.begin(); w.raw.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")); block() },
	"flood-idle": func(w *worker) {
		w.begin()
		for w.conn.Write(&workerproto.Idle{}) == nil {
		}
	},
	"flood-calls": func(w *worker) {
		w.begin()
		for id := uint64(1); ; id++ {
			if w.conn.Write(&workerproto.ToolCall{ID: id, Method: "call", Tool: "echo", Input: []byte(`{}`)}) != nil {
				return
			}
		}
	},
	"flood-output": func(w *worker) {
		w.begin()
		for w.conn.Write(&workerproto.Output{Kind: "text", JSON: []byte(`"spam"`)}) == nil {
		}
	},
	"flood-stderr": func(w *worker) { w.begin(); writeForEver(os.Stderr, []byte(strings.Repeat("noise\n", 1000))) },
	"wrong-id":     func(w *worker) { w.begin(); w.call(7, "echo", `{}`); block() },
	"same-id":      func(w *worker) { w.begin(); w.call(1, "echo", `{}`); w.call(1, "echo", `{}`); block() },
	"bad-json":     func(w *worker) { w.begin(); w.conn.Write(&workerproto.Done{Value: []byte(`{"a":`)}); block() },
	"bad-output": func(w *worker) {
		w.begin()
		w.conn.Write(&workerproto.Output{Kind: "text", JSON: []byte(`1`)})
		block()
	},
	"too-much": func(w *worker) {
		w.begin()
		w.conn.Write(&workerproto.Output{Kind: "text", JSON: []byte(`"` + strings.Repeat("x", 100_000) + `"`)})
		block()
	},
	"done-early": func(w *worker) { // with a call left
		w.begin()
		w.call(1, "echo", `{}`)
		w.conn.Write(&workerproto.Done{Value: []byte(`1`)})
		block()
	},
	"bad-code": func(w *worker) {
		w.begin()
		w.conn.Write(&workerproto.Failed{Code: "runtime_unavailable", Phase: "host", Error: "let me out"})
		block()
	},
	"flood-missed": func(w *worker) {
		w.begin()
		for i := range workerproto.MaxMissed + 1 {
			w.conn.Write(&workerproto.Missed{Name: fmt.Sprintf("tools.x%d", i)})
		}
		block()
	},
	"missed-early": func(w *worker) { w.ready(); w.command(); w.conn.Write(&workerproto.Missed{Name: "tools.x"}); block() },
	"eager":        func(w *worker) { w.begin(); w.say("x"); block() }, // does not wait for its namespaces
	// It makes the calls that its source lists, whatever they are, and answers with their errors.
	"forges": func(w *worker) {
		w.ready()
		var calls [][3]string
		start := w.command().(*workerproto.Start)
		if err := json.Unmarshal(start.Source, &calls); err != nil {
			panic(err)
		}
		w.conn.Write(&workerproto.Prepared{Language: "javascript", Form: "expression"})
		if start.Namespaces {
			w.command()
		}
		for i, c := range calls {
			w.conn.Write(&workerproto.ToolCall{ID: uint64(i + 1), Method: c[0], Tool: c[1], Input: []byte(c[2])})
		}
		w.conn.Write(&workerproto.Idle{Pending: uint32(len(calls)), Timer: workerproto.NoTimer})
		errors := make([]string, len(calls))
		for range calls {
			r := w.result()
			errors[r.ID-1] = "done: " + string(r.Value)
			if r.Failed {
				errors[r.ID-1] = r.Code + ": " + r.Error
			}
		}
		value, _ := json.Marshal(errors)
		w.conn.Write(&workerproto.Done{Value: value})
		block()
	},
	"unprepared": func(w *worker) { w.ready(); w.command(); w.call(1, "echo", `{}`); block() },
	"deaf": func(w *worker) { // makes calls and never reads their results
		w.begin()
		for id := uint64(1); id <= 16; id++ {
			w.call(id, "big", `{}`)
		}
		w.conn.Write(&workerproto.Idle{Pending: 16})
		block()
	},
	"ignores-interrupt": func(w *worker) {
		w.begin()
		for {
			if _, err := w.conn.ReadCommand(); err != nil {
				return
			}
		}
	},
	"stopped": func(w *worker) { w.begin(); syscall.Kill(os.Getpid(), syscall.SIGSTOP); block() },
	"forks": func(w *worker) {
		pid := sleeper(nil)
		w.begin()
		w.conn.Write(&workerproto.Done{Value: fmt.Appendf(nil, "%d", pid)})
		block()
	},
	"forks-away": func(w *worker) { // what leaves the session and the process group, with our stderr and channel
		pid := sleeper(&syscall.SysProcAttr{Setsid: true})
		w.begin()
		w.conn.Write(&workerproto.Done{Value: fmt.Appendf(nil, "%d", pid)})
		block()
	},
	"zombies": func(w *worker) { // children that nobody reaps
		for range 20 {
			if err := exec.Command("/bin/true").Start(); err != nil {
				panic(err)
			}
		}
		w.begin()
		w.conn.Write(&workerproto.Done{Value: []byte(`42`)})
		block()
	},
	"hoards": func(w *worker) { // opens what it can, and hands copies of it over
		var fds []int
		for {
			f, err := os.Open("/dev/null")
			if err != nil || len(fds) == 200 {
				break
			}
			fds = append(fds, int(f.Fd()))
			hoard = append(hoard, f)
		}
		w.begin()
		frame, _ := workerproto.Append(nil, &workerproto.Output{Kind: "text", JSON: []byte(`"take these"`)})
		w.raw.(*net.UnixConn).WriteMsgUnix(frame, syscall.UnixRights(fds...), nil)
		w.conn.Write(&workerproto.Done{Value: []byte(`42`)})
		block()
	},
	"flood-stdout": func(w *worker) { w.begin(); writeForEver(os.Stdout, []byte(strings.Repeat("noise\n", 1000))) },
}

// hoard keeps files from being closed.
var hoard []*os.File

// sleeper starts a process that outlives us, if nobody sees to it, and gives its pid.
func sleeper(attr *syscall.SysProcAttr) int {
	child := exec.Command("/bin/sleep", "1000")
	child.Stdout, child.Stderr, child.SysProcAttr = os.Stdout, os.Stderr, attr
	child.ExtraFiles = []*os.File{os.NewFile(workerproto.ChannelFD, "channel")}
	if err := child.Start(); err != nil {
		panic(err)
	}
	return child.Process.Pid
}

func (w *worker) ready() { w.report("") }

// report becomes the user that it should be, as a worker does, and says that it is ready.
func (w *worker) report(isolation string) {
	io.Copy(io.Discard, os.Stdin) // until our ids are mapped
	if os.Geteuid() != 0 {
		syscall.Setgid(0)
		syscall.Setuid(0)
	}
	w.conn.Write(&workerproto.Ready{Version: "fake", Engine: Engine, Isolation: []byte(isolation)})
}

// begin takes the cell and says that it is prepared.
func (w *worker) begin() {
	w.ready()
	w.command()
	w.conn.Write(&workerproto.Prepared{Language: "javascript", Form: "expression"})
}

func (w *worker) call(id uint64, tool, input string) {
	w.conn.Write(&workerproto.ToolCall{ID: id, Method: "call", Tool: tool, Input: []byte(input)})
}

func (w *worker) result() *workerproto.ToolResult {
	return w.command().(*workerproto.ToolResult)
}

func writeForEver(f interface{ Write([]byte) (int, error) }, b []byte) {
	for {
		if _, err := f.Write(b); err != nil {
			return
		}
	}
}

// block waits to be killed. The timer keeps the runtime from calling it a deadlock.
func block() {
	<-time.After(time.Hour)
}
