package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/openclaw/codemode-supervisor/limits/cgroup"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// Reason is why we killed a child.
type Reason string

// The reasons.
const (
	NotKilled       Reason = ""
	KilledDone      Reason = "done"
	KilledTimeout   Reason = "timeout"
	KilledAbort     Reason = "abort"
	KilledParked    Reason = "parked"
	KilledViolation Reason = "protocol violation"
	KilledStart     Reason = "start given up"
	KilledUndead    Reason = "and does not die"
)

// Exit is how a child ended. All of it is known only after [Child.Wait].
type Exit struct {
	Code      int            // exit code, -1 if a signal ended it
	Signal    syscall.Signal // 0 if none
	Killed    Reason         // why we killed it, if we did
	CPU       time.Duration  // user and system time of the worker
	PeakBytes int64          // largest resident set
	Stderr    string         // the first and last of its stderr, bounded, hostile text
	// OutOfMemory is that it died of a memory limit of the OS: the Go runtime was refused
	// memory, or the kernel's OOM killer was at work while the worker lived and a SIGKILL
	// that was not ours ended it. A SIGKILL alone proves nothing.
	OutOfMemory bool
	// Left is what could not be killed or removed, nil if nothing is left.
	Left error
}

// String says it in words for an error message.
func (e Exit) String() string {
	switch {
	case e.Killed != NotKilled:
		return "killed: " + string(e.Killed)
	case e.Signal != 0:
		return fmt.Sprintf("ended by signal %d (%s)", e.Signal, e.Signal)
	case strings.Contains(e.Stderr, "stack overflow") || strings.Contains(e.Stderr, "stack exceeds"):
		return fmt.Sprintf("exit code %d after a stack overflow", e.Code)
	default:
		return fmt.Sprintf("exit code %d", e.Code)
	}
}

// goOutOfMemory tells whether the Go runtime died because the kernel refused it memory.
func (e Exit) goOutOfMemory() bool {
	return e.Code == 2 && (strings.Contains(e.Stderr, "out of memory") || strings.Contains(e.Stderr, "cannot allocate memory"))
}

// Child is one worker process.
type Child struct {
	// Conn is the channel. Its user reads and writes it; the child closes it at the end.
	Conn *workerproto.Conn
	// Ready is what the worker said when it was.
	Ready workerproto.Ready
	// Report is what became of every isolation layer.
	Report isolation.Report

	client *plugin.Client
	socket *net.UnixConn
	cmd    *exec.Cmd
	order  Order         // what it was started for
	way    way           // how it was forked
	uid    int           // which user it is, if that was mapped for it; 0 else
	group  *cgroup.Group // its own
	counts bool          // the group counts its OOM kills

	joined  chan struct{} // closed when it is in its group
	joinErr error         // or why it is not

	mu     sync.Mutex
	killed Reason // guarded by mu: the first reason stays
	reaped bool   // guarded by mu: the pid may belong to somebody else

	onExit func() // guarded by mu: called when it is reaped

	gone   chan struct{} // closed when the process is reaped
	done   chan struct{} // closed when nothing is left
	oom    int64         // the kernel's count of OOM kills when the worker was started; only if the group has none
	buried func()        // called when nothing is left
	finish sync.Once
	stderr tail
	exit   Exit // written by reap
	last   Exit // what Wait gives
}

// begin is called by the launch when the process runs.
func (c *Child) begin(cmd *exec.Cmd, w way, group *cgroup.Group, counts bool, socket *net.UnixConn, stderr *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cmd, c.way, c.group, c.counts, c.socket = cmd, w, group, counts, socket
	if !counts {
		c.oom = oomKills()
	}
	c.Conn = workerproto.NewConn(socket)
	c.gone = make(chan struct{})
	// Beside the worker's own start: it takes milliseconds where the kernel waits for all
	// processors. bringUp waits for it before the worker gets a byte of a cell.
	c.joined = make(chan struct{})
	go func() { // reap waits for it
		defer close(c.joined)
		c.joinErr = group.Join(cmd.Process.Pid, w.born)
	}()
	drained := make(chan struct{})
	go func() { // ends when the last holder of the pipe's other end is dead; reap waits for it
		defer close(drained)
		c.stderr.drain(stderr)
	}()
	go c.reap(drained) // Wait waits for it
	if c.killed != NotKilled {
		killGroup(cmd.Process.Pid)
	}
}

// reap waits for the process, once.
func (c *Child) reap(drained chan struct{}) {
	awaitExit(c.cmd.Process.Pid)
	// The leader is a zombie, so its group cannot be anybody else's: what it forked
	// goes with it.
	killGroup(c.cmd.Process.Pid)
	<-c.joined             // by its pid, which is still its own
	left := c.group.Kill() // what left the process group, too
	c.mu.Lock()
	_ = c.cmd.Wait() // the state says all
	c.reaped = true
	state := c.cmd.ProcessState
	c.exit = Exit{Code: state.ExitCode(), Killed: c.killed, CPU: state.UserTime() + state.SystemTime(), PeakBytes: peakBytes(state)}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		c.exit.Signal = ws.Signal()
		if c.exit.Signal != syscall.SIGKILL {
			c.exit.Killed = NotKilled // it died of its own before our signal came
		}
	} else {
		c.exit.Killed = NotKilled
	}
	c.mu.Unlock()
	// A descendant that left the group may still hold the pipe; do not wait for it.
	select {
	case <-drained:
	case <-time.After(100 * time.Millisecond):
		c.stderr.stop()
		<-drained
	}
	c.exit.Stderr = c.stderr.String()
	foreignKill := c.exit.Signal == syscall.SIGKILL && c.exit.Killed == NotKilled
	c.exit.OutOfMemory = c.exit.goOutOfMemory() || foreignKill && c.oomKilled()
	c.exit.Left = errors.Join(left, c.group.Remove())
	// What it said last can still be read. A descendant that left the group may hold its
	// end of the channel; nobody waits for that either.
	_ = c.socket.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	close(c.gone)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onExit != nil {
		c.onExit()
	}
}

// oomKilled tells whether the OOM killer was at work in the worker's group, which is there
// still; without one, on the whole system: better than nothing.
func (c *Child) oomKilled() bool {
	if c.counts {
		return c.group.Counters().OOMKills > 0
	}
	return oomKills() > c.oom
}

// OnExit has f called when the process has ended. f must not block.
func (c *Child) OnExit(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onExit = f; c.reaped {
		f()
	}
}

// Alive tells whether the process has not ended yet.
func (c *Child) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.reaped
}

// exited is closed when the process is reaped; never before it was started.
func (c *Child) exited() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// Usage is what a worker that is alive has used so far, in an [Exit] that says nothing else. It
// is false where that is known only at the end.
func (c *Child) Usage() (Exit, bool) {
	cpu, peak, ok := usage(c.Pid())
	return Exit{CPU: cpu, PeakBytes: peak}, ok
}

// AwaitExit waits for the process to end by itself, d at most.
func (c *Child) AwaitExit(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.exited():
	case <-timer.C:
	}
}

// Pid is the worker's process id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Kill sends SIGKILL to the worker's process group. The first reason stays. It returns
// at once, may be called from anywhere and more than once.
func (c *Child) Kill(why Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if c.killed == NotKilled {
		c.killed = why
	}
	if c.cmd != nil {
		killGroup(c.cmd.Process.Pid)
	}
}

// undead is how long [Child.Wait] waits for a process that has its SIGKILL.
const undead = 5 * time.Second

// Wait waits until nothing of a killed or dead worker is left: process, group, sockets,
// go-plugin's directory and goroutines. A process that does not die, because somebody froze it
// or a disk hangs, is given up after five seconds: [Exit.Left] says so, and the goroutine that
// waits for it stays until it is gone.
func (c *Child) Wait() Exit {
	c.finish.Do(func() {
		if gone := c.exited(); gone != nil {
			select {
			case <-gone:
			case <-time.After(undead):
				c.last = Exit{Code: -1, Killed: KilledUndead, Left: fmt.Errorf("worker %d has its SIGKILL and does not die: see its state in /proc/%d/status, and whether a freezer holds it", c.Pid(), c.Pid())}
				c.Conn.Close()
				close(c.done)
				c.buried()
				return
			}
			c.Conn.Close()
			c.last = c.exit
		}
		// Only now: go-plugin's Kill of a worker that is alive and stopped would take 40 s. It
		// removes the socket's directory.
		c.client.Kill()
		close(c.done)
		c.buried()
	})
	<-c.done
	return c.last
}

// tail keeps the first and the last bytes of a stream, and stops reading one that
// floods. A Go runtime that dies says why first and where last.
type tail struct {
	mu   sync.Mutex
	head []byte
	buf  []byte
	file *os.File
}

const (
	headBytes  = 1 << 10
	tailBytes  = 1 << 10
	floodBytes = 1 << 20
)

// drain reads f to its end, or to floodBytes: a writer that goes on gets SIGPIPE.
func (t *tail) drain(f *os.File) {
	t.mu.Lock()
	t.file = f
	t.mu.Unlock()
	defer f.Close()
	chunk := make([]byte, 4096)
	for total := 0; total < floodBytes; {
		n, err := f.Read(chunk)
		total += n
		t.add(chunk[:n])
		if err != nil {
			return
		}
	}
}

func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(b), headBytes-len(t.head))
	t.head = append(t.head, b[:n]...)
	t.buf = append(t.buf, b[n:]...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
}

func (t *tail) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		t.file.Close()
	}
}

// String gives what was kept, printable.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.head) + string(t.buf)
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?")))
}
