package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/openclaw/codemode-supervisor/workerproto"
)

// argv0 is what ps shows.
const argv0 = "codemode-worker"

// launch is go-plugin's view of a child: it implements runner.Runner.
type launch struct {
	spawner   *Spawner
	child     *Child
	env       []string // go-plugin's own variables and the cookie, nothing of ours
	socketDir string
	handshake io.ReadCloser
}

// Start forks the worker.
func (l *launch) Start(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			os.RemoveAll(l.socketDir) // go-plugin forgets it when there is no process
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	socket, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		socket.Close()
		return err
	}
	defer outW.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		socket.Close()
		outR.Close()
		return err
	}
	defer errW.Close()
	cmd := &exec.Cmd{
		Path:        l.spawner.cfg.Path,
		Args:        []string{argv0, l.spawner.cfg.CacheDir},
		Env:         append([]string{"TZ="}, l.env...), // TZ: no look at /etc/localtime after the lock-down
		Dir:         "/",
		Stdin:       nil, // /dev/null
		Stdout:      outW,
		Stderr:      errW,
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: attributes(),
	}
	started := make(chan error)
	l.spawner.forks <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		socket.Close()
		outR.Close()
		errR.Close()
		return startHint(l.spawner.cfg.Path, err)
	}
	l.handshake = &firstLine{r: outR}
	l.child.begin(cmd, socket, workerproto.NewConn(socket), errR)
	return nil
}

// startHint says what to do about a worker that cannot be executed.
func startHint(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: build it with \"make build\", or name it with supervisor.worker", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: make it executable (chmod +x %s)", err, path)
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

// PluginToHost refuses a handshake line that names any socket but one of our own
// directory: go-plugin would connect to it and write there.
func (l *launch) PluginToHost(network, addr string) (string, string, error) {
	info, err := os.Lstat(addr)
	if network != "unix" || filepath.Dir(addr) != l.socketDir || err != nil || info.Mode().Type() != os.ModeSocket {
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
