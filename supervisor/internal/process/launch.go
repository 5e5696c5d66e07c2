package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/workerproto"
	"golang.org/x/sys/unix"
)

// launch is go-plugin's view of a child: it implements runner.Runner.
type launch struct {
	spawner   *Spawner
	child     *Child
	env       []string // go-plugin's own variables and the cookie, nothing of ours; the worker gets them as arguments
	socketDir string
	handshake io.ReadCloser
}

// Start forks the worker, in the best way that this host allows. Once it is known which one
// that is there is no other: what could be had before and cannot now is an error, not a worker
// with one wall less.
func (l *launch) Start(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			os.RemoveAll(l.socketDir) // go-plugin forgets it when there is no process
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	s := l.spawner
	if err := unix.Access(s.cfg.Path, unix.X_OK); err != nil {
		return startHint(s.cfg.Path, &os.PathError{Op: "execute", Path: s.cfg.Path, Err: err})
	}
	if w := s.found.Load(); w != nil {
		return l.fork(*w)
	}
	var why error // the last refusal that cost a namespace
	for _, w := range s.ways() {
		w.why = why
		if err := s.cfg.Policy.CheckKnown(w.report(s)); err != nil {
			return err // no worker is started
		}
		err := l.fork(w)
		if err == nil {
			s.found.Store(&w)
			return nil
		}
		if !refused(err) {
			return err
		}
		if !w.born { // else it may only have been the cgroup
			why = err
		}
	}
	if uid, gid := s.cfg.Policy.Identity(); uid != 0 || gid != 0 {
		return fmt.Errorf("supervisor.isolation.uid and gid are %d and %d, and a worker cannot be given them here: %w", uid, gid, cmp.Or(why, errors.New("there are no user namespaces")))
	}
	return why
}

// fork forks the worker in one way. What it is given is its own: an end of it that an earlier
// try has seen could hold what that one said.
func (l *launch) fork(w way) (err error) {
	socket, theirs, err := socketPair()
	if err != nil {
		return err
	}
	ours := []io.Closer{socket} // closed if there is no worker
	defer func() {
		if err != nil {
			for _, c := range ours {
				c.Close()
			}
		}
	}()
	defer theirs.Close()
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				return r, w
			}
		}
		return nil, nil // a nil file can be closed
	}
	inR, inW := pipe()
	defer inR.Close()
	defer inW.Close() // the worker waits for it: who it is has been settled
	outR, outW := pipe()
	defer outW.Close()
	errR, errW := pipe()
	defer errW.Close()
	ours = append(ours, outR, errR)
	if err != nil {
		return fmt.Errorf("making pipes: %w", err)
	}
	s := l.spawner
	group, err := s.groups.New(groupLimits(l.child.order.GuestBytes, s.cfg.Without))
	if err != nil {
		return err
	}
	if group.FD() < 0 {
		w.born = false
	}
	cmd := &exec.Cmd{
		Path: s.cfg.Path,
		// Not in the environment: /proc/PID/environ is to be empty (SPEC 15.1).
		Args: workerproto.Launch{
			CacheDir: s.cfg.CacheDir, Plan: s.plan(w).Encode(), Vars: l.env, Attack: s.cfg.Attack, Spare: l.child.order.Spare,
		}.Args(),
		Env:         []string{},
		Dir:         "/",
		Stdin:       inR, // nothing of ours, and nothing at all: it ends
		Stdout:      outW,
		Stderr:      errW,
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: w.attributes(group.FD()),
	}
	started := make(chan error)
	s.forks <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return errors.Join(err, group.Remove())
	}
	uid, gid := s.identity()
	if err := w.identify(cmd.Process.Pid, uid, gid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return errors.Join(err, group.Remove())
	}
	if w.mapped {
		l.child.uid = uid
	}
	l.handshake = &firstLine{r: outR}
	l.child.begin(cmd, w, group, s.host.Get(isolation.CgroupMemory).State == isolation.On, socket, errR)
	return nil
}

// startHint says what to do about a worker that cannot be executed.
func startHint(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: build it with \"make build\", or name it with supervisor.worker", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: make it executable (chmod +x %s)", err, path)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: a worker takes about ten descriptors; raise RLIMIT_NOFILE (ulimit -n)", err)
	}
	return err
}

// Stdout is the handshake line and then the end: whatever a worker prints later goes
// nowhere, since the pipe is closed.
func (l *launch) Stdout() io.ReadCloser { return l.handshake }

// Stderr is empty for go-plugin, which would parse it; the child keeps the real one.
func (l *launch) Stderr() io.ReadCloser { return io.NopCloser(eof{}) }

// Wait waits for the child's end.
func (l *launch) Wait(ctx context.Context) error {
	select {
	case <-l.child.exited():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill kills the child.
func (l *launch) Kill(context.Context) error {
	l.child.Kill(KilledStart)
	return nil
}

// PluginToHost refuses a handshake line that names anything outside of the worker's own
// directory. Nobody connects there, but go-plugin could.
func (l *launch) PluginToHost(network, addr string) (string, string, error) {
	if network != "unix" || filepath.Dir(addr) != l.socketDir {
		return "", "", fmt.Errorf("the worker's handshake names %.80q %.200q, which is not its socket", network, addr)
	}
	return network, addr, nil
}

// HostToPlugin changes nothing: both see the same paths.
func (l *launch) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// Name is the worker's path.
func (l *launch) Name() string { return l.spawner.cfg.Path }

// ID is the pid, "" before the start: go-plugin's Kill does nothing then.
func (l *launch) ID() string {
	if l.child.cmd == nil {
		return ""
	}
	return strconv.Itoa(l.child.cmd.Process.Pid)
}

// Diagnose adds nothing: a [StartError] has the worker's last words.
func (l *launch) Diagnose(context.Context) string { return "" }

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// firstLine reads one line of at most 4 KiB, then ends and closes its file.
type firstLine struct {
	r    *os.File
	read int
	done bool
}

func (f *firstLine) Read(p []byte) (int, error) {
	const limit = 4096
	if f.done || f.read >= limit {
		f.r.Close()
		return 0, io.EOF
	}
	// One byte at a time: what stands behind the line must stay in the pipe, unread.
	n, err := f.r.Read(p[:min(len(p), 1)])
	if f.read += n; n == 1 && p[0] == '\n' {
		f.done = true
	}
	if err != nil {
		f.r.Close()
	}
	return n, err
}

func (f *firstLine) Close() error { return f.r.Close() }
