package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"github.com/openclaw/codemode-supervisor/limits/cgroup"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// Config says which program is the worker and how it is started.
type Config struct {
	Path         string            // the worker's binary, absolute
	CacheDir     string            // its compiled-code cache, "" for one that lasts as long as the Spawner
	StartTimeout time.Duration     // from fork to ready; 0 means 10 s
	Policy       isolation.Policy  // what must be around a worker
	Without      []isolation.Layer // layers that are left out: tests, and benchmarks of single layers
	Attack       bool              // start workers that make attacks (SPEC 15.3)
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

	mu       sync.Mutex
	closed   bool           // guarded by mu
	children sync.WaitGroup // those that are not buried yet

	groups *cgroup.Host                     // makes groups without limits if all of its layers are left out
	host   isolation.Report                 // what is known before a worker is forked
	found  atomic.Pointer[way]              // how this host lets us fork; nil: not tried yet
	first  atomic.Pointer[isolation.Report] // of the first worker
	uids   atomic.Uint32                    // the last uid that was picked
}

// NewSpawner makes a Spawner. The caller must Close it. It fails with an
// *[isolation.MissingError] if it is known already that the host lacks a layer which the
// policy requires.
func NewSpawner(cfg Config) (_ *Spawner, err error) {
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = 10 * time.Second
	}
	if uid, gid := cfg.Policy.Identity(); (uid != 0 || gid != 0) && os.Geteuid() != 0 {
		return nil, fmt.Errorf("supervisor.isolation.uid and gid are %d and %d, and only root can give a worker another identity: run the supervisor as root, or leave them out", uid, gid)
	}
	if err := checkHost(); err != nil {
		return nil, err
	}
	s := &Spawner{cfg: cfg, forks: make(chan func()), groups: new(cgroup.Host)}
	s.uids.Store(rand.Uint32N(uidCount))
	if len(cgroupLayers(cfg.Without)) > 0 {
		if s.groups, err = cgroup.Open(cfg.Policy.CgroupParent()); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	s.host = s.hostReport()
	if err := cfg.Policy.CheckKnown(s.host); err != nil {
		return nil, err
	}
	if s.dir, s.lock, err = runtimeDir(); err != nil {
		return nil, fmt.Errorf("making the runtime directory: %w", err)
	}
	if s.cfg.CacheDir == "" {
		s.cfg.CacheDir = filepath.Join(s.dir, "code")
		if err := os.Mkdir(s.cfg.CacheDir, 0o700); err != nil {
			return nil, err
		}
	}
	s.wg.Go(func() {
		runtime.LockOSThread() // for ever: the thread ends with this goroutine
		for fork := range s.forks {
			fork()
		}
	})
	return s, nil
}

// cgroupLayers gives those of the cgroup layers that are not left out.
func cgroupLayers(without []isolation.Layer) []isolation.Layer {
	return slices.DeleteFunc([]isolation.Layer{isolation.CgroupMemory, isolation.CgroupPids, isolation.CgroupCPU}, func(l isolation.Layer) bool {
		return slices.Contains(without, l)
	})
}

// The uids that workers of a supervisor that is root get, one each: far above those of
// users, of containers (/etc/subuid) and of systemd.
const (
	uidBase  = 2_000_000_000
	uidCount = 100_000_000
)

// identity picks a worker's uid and gid on the host. Only a worker with an identity mapped
// to it uses them.
func (s *Spawner) identity() (uid, gid int) {
	u, g := s.cfg.Policy.Identity()
	picked := uidBase + s.uids.Add(1)%uidCount
	return int(cmp.Or(u, picked)), int(cmp.Or(g, u, picked))
}

// Report gives what is known of the layers before a worker is started.
func (s *Spawner) Report() isolation.Report { return s.host.Complete() }

// ErrClosed is what Start gives after Close has begun.
var ErrClosed = errors.New("the spawner is closed")

// Close waits for the last child to be gone, ends the forking thread, and removes the cgroup
// and the runtime directory. It may be called twice.
func (s *Spawner) Close() (err error) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.children.Wait()
	s.close.Do(func() {
		close(s.forks)
		s.wg.Wait()
		err = s.release()
	})
	return err
}

// release frees what outlives a process.
func (s *Spawner) release() error {
	var errs []error
	errs = append(errs, s.groups.Close())
	if s.lock != nil {
		errs = append(errs, os.RemoveAll(s.dir))
		s.lock.Close()
	}
	return errors.Join(errs...)
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

// An Order says what a worker is started for.
type Order struct {
	GuestBytes int64 // what its guest will probably use; [Child.Assign] has the last word
	Spare      bool  // nobody waits for it yet
}

// Start starts a worker and waits until it is ready. ctx bounds the start; it does not
// stop a worker that is ready. The caller must end the child with [Child.Kill] and
// [Child.Wait]. The error is [ErrClosed], an *[isolation.MissingError] or a *[StartError].
func (s *Spawner) Start(ctx context.Context, order Order) (*Child, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.children.Add(1)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	child := &Child{order: order, buried: s.children.Done, done: make(chan struct{})}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  workerproto.Version,
			MagicCookieKey:   workerproto.CookieKey,
			MagicCookieValue: workerproto.CookieValue,
		},
		Plugins:          plugin.PluginSet{}, // nothing is ever dispensed
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
	if exit.Left != nil {
		err = errors.Join(err, exit.Left)
	}
	var fault workerFault
	var missing *isolation.MissingError
	switch {
	case errors.As(err, &missing):
		return nil, missing // no fault of the worker's
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
	// Fork, handshake line, version. go-plugin's RPC is never used: the worker has none, locks itself
	// up, and answers on the channel.
	if _, err := child.client.Start(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = child.socket.SetReadDeadline(deadline)
	}
	event, err := child.Conn.ReadEvent()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it closed the channel before it was ready")
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
	if <-child.joined; child.joinErr != nil {
		return child.joinErr
	}
	if err := s.enclose(child); err != nil {
		return err
	}
	return child.socket.SetReadDeadline(time.Time{})
}

// workerFault is what a worker says of why it cannot run cells.
type workerFault string

func (f workerFault) Error() string { return string(f) }

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
