package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// Config says which program is the worker and how it is started.
type Config struct {
	Path         string        // the worker's binary, absolute
	CacheDir     string        // its compiled-code cache, "" for one that lasts as long as the Spawner
	StartTimeout time.Duration // from fork to ready; 0 means 10 s
}

// Spawner starts workers. Safe for concurrent use.
type Spawner struct {
	cfg  Config
	dir  string   // holds go-plugin's socket directories, 0700
	lock *os.File // says that the directory's owner lives
	// forks carries the forking to one thread that outlives every child: the parent-death
	// signal belongs to the thread that forked (prctl(2), PR_SET_PDEATHSIG).
	forks chan func()
	wg    sync.WaitGroup
	close sync.Once
}

// NewSpawner makes a Spawner. Close it after its last child is gone.
func NewSpawner(cfg Config) (*Spawner, error) {
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = 10 * time.Second
	}
	dir, lock, err := runtimeDir()
	if err != nil {
		return nil, fmt.Errorf("making the runtime directory: %w", err)
	}
	if cfg.CacheDir == "" {
		cfg.CacheDir = filepath.Join(dir, "code")
		if err := os.Mkdir(cfg.CacheDir, 0o700); err != nil {
			lock.Close()
			_ = os.RemoveAll(dir) // the next one to start would remove it, too
			return nil, err
		}
	}
	s := &Spawner{cfg: cfg, dir: dir, lock: lock, forks: make(chan func())}
	s.wg.Go(func() {
		runtime.LockOSThread() // for ever: the thread ends with this goroutine
		for fork := range s.forks {
			fork()
		}
	})
	return s, nil
}

// Close ends the forking thread and removes the runtime directory. Children must be
// gone: the kernel kills what is left. It may be called twice.
func (s *Spawner) Close() error {
	s.close.Do(func() { close(s.forks) })
	s.wg.Wait()
	err := os.RemoveAll(s.dir)
	s.lock.Close()
	return err
}

// A StartError says why no worker came to be ready.
type StartError struct {
	Path   string
	Err    error
	Stderr string // what the worker said last, bounded, not to be trusted
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("starting worker %q: %v", e.Path, e.Err)
	if line, _, _ := strings.Cut(e.Stderr, "\n"); line != "" {
		text += "; it said: " + line
	}
	return text
}

func (e *StartError) Unwrap() error { return e.Err }

// Start starts a worker and waits until it is ready. ctx bounds the start; it does not
// stop a worker that is ready. The caller must end the child with [Child.Kill].
func (s *Spawner) Start(ctx context.Context) (*Child, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	child := &Child{done: make(chan struct{})}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  workerproto.Version,
			MagicCookieKey:   workerproto.CookieKey,
			MagicCookieValue: workerproto.CookieValue,
		},
		Plugins:          plugin.PluginSet{"worker": noPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolNetRPC},
		Logger:           hclog.NewNullLogger(),
		StartTimeout:     s.cfg.StartTimeout,
		SkipHostEnv:      true, // SPEC 17.2: by default it passes on our environment and stdin
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: s.dir},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
			return &launch{spawner: s, child: child, env: cmd.Env, socketDir: socketDir}, nil
		},
	})
	child.client = client
	// go-plugin knows no context: a start that is given up is ended by killing.
	stop := context.AfterFunc(ctx, func() { child.Kill(KilledStart) })
	err := s.bringUp(ctx, child)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return child, nil
	}
	child.Kill(KilledStart)
	exit := child.Wait()
	var fault workerFault
	switch {
	case errors.As(err, &fault): // it says itself why, and ends
	case ctx.Err() != nil:
		err = fmt.Errorf("it was not ready in time (%w)", context.Cause(ctx))
	case child.cmd != nil && exit.Killed == NotKilled:
		// go-plugin and the channel only saw it go.
		err = fmt.Errorf("it ended before it was ready (%s)", exit)
	}
	return nil, &StartError{Path: s.cfg.Path, Err: err, Stderr: exit.Stderr}
}

// bringUp takes the child from nothing to ready.
func (s *Spawner) bringUp(ctx context.Context, child *Child) error {
	rpcClient, err := child.client.Client() // fork, handshake line, connect
	if err != nil {
		return err
	}
	// The child's plugin.Serve returns when the connection closes. It locks itself up
	// and answers on the channel. A worker that cannot run ends before it has answered the close; what it says on the
	// channel counts.
	left := rpcClient.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = child.socket.SetReadDeadline(deadline)
	}
	event, err := child.Conn.ReadEvent()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it closed the channel before it was ready")
		}
		if left != nil {
			err = fmt.Errorf("%w (leaving go-plugin's connection: %v)", err, left)
		}
		return err
	}
	ready, ok := event.(*workerproto.Ready)
	if !ok {
		return &workerproto.Violation{Type: event.Type(), Reason: "the first event must be ready"}
	}
	if ready.Fault != "" {
		return workerFault(ready.Fault)
	}
	child.Ready = *ready
	return child.socket.SetReadDeadline(time.Time{})
}

// workerFault is what a worker says of why it cannot run cells.
type workerFault string

func (f workerFault) Error() string { return string(f) }

// noPlugin is what go-plugin dispenses: nothing, since its RPC is never used.
type noPlugin struct{}

func (noPlugin) Server(*plugin.MuxBroker) (any, error) { return nil, errors.New("nothing is served") }
func (noPlugin) Client(*plugin.MuxBroker, *rpc.Client) (any, error) {
	return nil, errors.New("nothing is served")
}

// socketPair makes the channel: our end as a connection, the worker's as a file.
func socketPair() (*net.UnixConn, *os.File, error) {
	ours, theirs, err := rawSocketPair()
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket pair: %w", err)
	}
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}
