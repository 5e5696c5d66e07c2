package gatewayrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

// Bounds. Those of a connection are told to the client.
const (
	maxRequests    = 1024 // open at once
	maxHandles     = 256
	maxConnections = 64
	writeTimeout   = 30 * time.Second // that a client may take to read writeChunk bytes
)

// Runner runs cells: a [*supervisor.Supervisor].
type Runner interface {
	Exec(context.Context, supervisor.Program) *supervisor.Result
	Wait(context.Context, supervisor.WaitRequest) *supervisor.Result
	Abort(ctx context.Context, runID string, scope supervisor.Scope) error
	Detach(ctx context.Context, runID string, scope supervisor.Scope) error
	Runs() ([]supervisor.RunInfo, error)
	Inspect(id string) (*supervisor.RunDetail, error)
}

// Options configure a [Server].
type Options struct {
	// Supervisor runs the cells of all clients. It is the caller's, and must be closed after
	// Serve and Listen have returned. Needed.
	Supervisor Runner
	// Config is the process's: what run/open lays its own over.
	Config limits.Config
	// Durable says that the supervisor has a state directory: what is parked outlives its
	// connection.
	Durable bool
	// Version is told to clients.
	Version string
	// Logger gets connections, their ends, and at the debug level what was refused. Nil drops
	// it. It never sees source, input, results or output.
	Logger *slog.Logger
	// Decisions logs what run/open decided, at the info level (SPEC 18.2).
	Decisions bool
	// WriteTimeout is how long a client may take to read 64 KiB before its connection is
	// closed. 0 means 30 s.
	WriteTimeout time.Duration
}

// Server serves clients. Safe for concurrent use.
type Server struct {
	opts         Options
	log          *slog.Logger
	writeTimeout time.Duration
	maxRequests  int
	maxHandles   int

	mu     sync.Mutex
	owners map[string]*handle // guarded by mu: of parked runs, whose calls go to it
}

// New makes a server. There is nothing to close.
func New(opts Options) *Server {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{
		opts: opts, log: opts.Logger, writeTimeout: cmp.Or(opts.WriteTimeout, writeTimeout), maxRequests: maxRequests, maxHandles: maxHandles,
		owners: map[string]*handle{},
	}
}

// Serve serves one client until it leaves, which is no error; until ctx ends, whose cause is the
// error; or until it broke the protocol or did not read. All of its runs have ended then,
// unless they are durable, and t is closed.
func (s *Server) Serve(ctx context.Context, t Transport) error {
	return s.serve(ctx, t, s.log)
}

func (s *Server) serve(ctx context.Context, t Transport, log *slog.Logger) error {
	log.Info("a client connected")
	err := newConn(s, ctx, t, log).serve()
	log.Info("a connection ended", "reason", cmp.Or(err, errGone))
	return err
}

// Listen serves the clients that connect to l, at most 64 at once, until ctx ends; then it returns
// the cause, after all of them. It closes l.
func (s *Server) Listen(ctx context.Context, l net.Listener) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	defer l.Close()
	places := make(chan struct{}, maxConnections)
	for n := 1; ; n++ {
		client, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() { // such as: too many open files
				s.log.Warn("a client could not be accepted", "error", err)
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
				continue
			}
			return fmt.Errorf("accepting clients: %w", err)
		}
		log := s.log.With("connection", n)
		if err := checkPeer(client); err != nil {
			log.Warn("a client was refused", "error", err)
			client.Close()
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			log.Warn("a client was refused", "error", "too many are connected")
			s.turnAway(client)
			continue
		}
		clients.Go(func() {
			defer func() { <-places }()
			_ = s.serve(ctx, client, log)
		})
	}
}

// turnAway tells a client that there is no place for it.
func (s *Server) turnAway(client net.Conn) {
	defer client.Close()
	_ = client.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // an empty socket takes it at once
	line := refuse(nil, fault(codeBusy, "close a connection that is not needed; one carries many runs", "%d clients are connected, and that is the most", maxConnections))
	_, _ = client.Write(append(line, '\n'))
}
