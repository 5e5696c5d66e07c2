package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/telemetry"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Options configure a Supervisor. The zero value is ready to use.
type Options struct {
	// Worker is the path of qjs-worker. Empty means: beside the running program, then in
	// PATH (SPEC 15.4). It is looked for at each run, so it may appear later.
	Worker string
	// WorkerSHA256 pins the worker's binary, in hex. Empty means any.
	WorkerSHA256 string
	// CacheDir holds the worker's compiled code. Empty means a directory of the user's
	// cache. It must belong to the user and be private: it is executable input.
	CacheDir string
	// Limits are those of programs that bring none. Zero, as a whole or in a field that
	// cannot be zero, means [limits.Default].
	Limits limits.Limits
	// MaxWorkers bounds the workers at once, spares included. 0 means 2 × CPUs (SPEC 13.5).
	MaxWorkers int
	// Pool is how many spare workers are kept: started ahead, locked down, used for one run or
	// none (SPEC 16.1). A spare takes about 6 MB and saves a cell about 20 ms. 0 means 1, a
	// negative number none. They are started once the first run has begun, or by
	// [Supervisor.Warm]; never more than MaxWorkers.
	Pool int
	// StateDir is the directory of parked runs. They are then found again by a supervisor
	// that comes after this one, and seen by others that share the directory (SPEC 14.5).
	// It is made if it is not there, and must be the user's alone. Empty means that parked
	// runs are kept in memory and end with the supervisor.
	StateDir string
	// StateKey seals what StateDir holds. Nil means the one in StateDir/key, which is made
	// at the first use.
	StateKey *snapshot.Key
	// MaxParkedRuns bounds the runs that are parked at once, MaxParkedBytes what is kept of
	// them together; with a StateDir, of all its supervisors. 0 means 64 and 512 MiB
	// (SPEC 13.5).
	MaxParkedRuns  int
	MaxParkedBytes int64
	// Isolation says what must be around a worker. A host that does not give it fails each run
	// as [RuntimeUnavailable], naming the layer and how to get it (SPEC 15.2). The zero value
	// uses what the host offers, and what is missing is logged once.
	// [Supervisor.SetIsolation] changes it.
	Isolation limits.IsolationConfig
	// Logger gets what an operator should know. Nil drops it. It never sees source,
	// input, results or output.
	Logger *slog.Logger
	// MeterProvider and TracerProvider get metrics and spans (SPEC 18.3; docs/telemetry.md). Nil
	// means none; the global ones are never used. They never see source, input, results,
	// output or error texts. A provider that blocks loses records and holds no run up, unless
	// it blocks where spans start. They must outlive the supervisor: its last records come in
	// [Supervisor.Close].
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	// StoreFault, if not nil, is called before each write, fsync, rename and commit in
	// StateDir, with what is about to be done and the name of the file. An error is taken
	// for the system's: for tests of what a gateway does when a disk fails.
	StoreFault func(op snapshot.Op, file string) error
}

// Supervisor starts workers and runs cells in them. Safe for concurrent use.
type Supervisor struct {
	opts   Options
	worker workerFile
	places chan struct{} // one for each worker that may live
	alive  atomic.Int64  // workers that were started and are not gone, spares included
	tel    *telemetry.Recorder

	ctx   context.Context // ends at Close
	abort context.CancelCauseFunc

	store    snapshot.Store
	adopting sync.Mutex    // one run of another process is taken over at a time
	wake     chan struct{} // the keeper has to look at the clock again

	pool    *pool
	breaker breaker
	without []isolation.Layer // layers that are left out, for tests
	warned  sync.Once         // of the layers that this host lacks

	mu      sync.Mutex
	closed  bool             // guarded by mu
	runs    map[string]*run  // guarded by mu: those that have a goroutine
	policy  isolation.Policy // guarded by mu
	spawner *process.Spawner // guarded by mu: made at the first run
	origin  origin           // guarded by mu: what spawner starts

	wg     sync.WaitGroup // runs, executor calls and spawners that are being retired
	keeper sync.WaitGroup // the goroutines that drop what is over and fill the pool
}

// errClosed is the cause of an abort by Close.
var errClosed = errors.New("the supervisor was closed")

// New makes a Supervisor. It starts no worker; the caller must Close it. It fails if the
// state directory cannot be used.
func New(opts Options) (*Supervisor, error) {
	opts.Limits = fill(opts.Limits, limits.Default())
	if opts.MaxWorkers < 0 {
		return nil, fmt.Errorf("supervisor: MaxWorkers is %d; it must be positive, or 0 for the default", opts.MaxWorkers)
	}
	if opts.MaxParkedRuns < 0 || opts.MaxParkedBytes < 0 {
		return nil, fmt.Errorf("supervisor: MaxParkedRuns is %d and MaxParkedBytes %d; they must be positive, or 0 for the defaults", opts.MaxParkedRuns, opts.MaxParkedBytes)
	}
	if opts.MaxWorkers == 0 {
		opts.MaxWorkers = 2 * runtime.NumCPU()
	}
	policy, err := isolation.NewPolicy(opts.Isolation)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Supervisor{
		opts: opts, worker: workerFile{path: opts.Worker, sha256: opts.WorkerSHA256}, places: make(chan struct{}, opts.MaxWorkers),
		runs: map[string]*run{}, wake: make(chan struct{}, 1), policy: policy,
	}
	s.pool = newPool(s, min(max(0, cmp.Or(opts.Pool, 1)), opts.MaxWorkers))
	bounds := snapshot.Bounds{Runs: opts.MaxParkedRuns, Bytes: opts.MaxParkedBytes}
	if opts.StateDir == "" {
		s.store = snapshot.NewMemory(bounds)
	} else {
		disk, err := snapshot.OpenDisk(snapshot.DiskOptions{Dir: opts.StateDir, Key: opts.StateKey, Bounds: bounds, Fault: opts.StoreFault, Logger: opts.Logger})
		if err != nil {
			return nil, fmt.Errorf("supervisor: %w", err)
		}
		s.store = disk
	}
	// What expired while nobody was there is gone before anybody asks.
	next, err := s.store.Expire(time.Now())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("supervisor: %w", err), s.store.Close())
	}
	s.ctx, s.abort = context.WithCancelCause(context.Background())
	s.tel = telemetry.New(opts.MeterProvider, opts.TracerProvider, opts.Logger)
	s.tel.Watch(s.look)
	s.keeper.Go(func() { s.keep(next) })
	if s.pool.size > 0 {
		s.keeper.Go(s.pool.keep)
	}
	return s, nil
}

// Close aborts what runs, waits for it, and frees everything. Runs that are parked end,
// too, unless they are in a state directory. It may be called twice, from anywhere. An
// executor that ignores its context holds it up.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.abort(errClosed)
	s.keeper.Wait()
	s.wg.Wait()
	s.tel.Unwatch() // it looks into the store
	s.tel.Close()
	err := s.store.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spawner == nil {
		return err
	}
	err = errors.Join(err, s.spawner.Close())
	s.spawner = nil
	return err
}

// Exec runs one cell to its end, or until it has to wait for something, and gives its
// result, which is never nil. A result whose status is [Waiting] is taken up by
// [Supervisor.Wait]. ctx ends the run as [Aborted]; once Exec has returned it means
// nothing to the run any more. The run's time limit counts from this call (SPEC 13), or
// from the answer of [Hooks.BeforeTool].
func (s *Supervisor) Exec(ctx context.Context, p Program) *Result {
	p.Limits = fill(p.Limits, s.opts.Limits)
	if !s.enter() {
		return refuse(hostf(Aborted, "%v", errClosed))
	}
	defer s.wg.Done()
	id := newID()
	p, fail := s.admitExec(ctx, p, id)
	a := newAsk(ctx, p.Limits.Timeout, true)
	a.trace(s.tel.Exec(ctx))
	res := s.exec(a, p, id, fail)
	endOp(a.op, res)
	return res
}

// exec runs the cell, unless it was refused already.
func (s *Supervisor) exec(a *ask, p Program, id string, fail *failure) *Result {
	r := newRun(s, p, id)
	r.ask, r.span = a, a.span
	a.op.Of(r.id, r.span)
	if fail == nil {
		r.source, fail = p.source(p.Limits)
	}
	if fail == nil {
		fail = checkSurface(p.Catalog)
	}
	if fail != nil {
		r.finish(&end{fail: fail})
	} else {
		if p.Catalog != nil {
			s.wg.Go(func() { p.Catalog.Warm(s.ctx) }) // while the worker starts
		}
		r.record(trajectory.Event{Kind: trajectory.Exec, Status: r.p.Language, Data: r.describe(trajectory.PartSource, "", r.source)})
		r.busy.Store(true)
		s.add(r)
		s.wg.Go(func() { r.live(a) })
	}
	res := <-a.reply
	r.busy.Store(false)
	if r.emitter != nil {
		r.emitter.flush()
	}
	return res
}

// fill gives the fields of l that are zero, and cannot mean that, their value in base. Two
// can mean it: QueuedToolCalls (no queue) and ToolCalls (no limit); they are filled only
// where all of l is zero.
func fill(l, base limits.Limits) limits.Limits {
	if l == (limits.Limits{}) {
		return base
	}
	l.Languages = cmp.Or(l.Languages, base.Languages)
	l.Timeout = cmp.Or(l.Timeout, base.Timeout)
	l.MemoryBytes = cmp.Or(l.MemoryBytes, base.MemoryBytes)
	l.OutputBytes = cmp.Or(l.OutputBytes, base.OutputBytes)
	l.SnapshotBytes = cmp.Or(l.SnapshotBytes, base.SnapshotBytes)
	l.SnapshotTTL = cmp.Or(l.SnapshotTTL, base.SnapshotTTL)
	l.PendingToolCalls = cmp.Or(l.PendingToolCalls, base.PendingToolCalls)
	l.SearchDefault = cmp.Or(l.SearchDefault, base.SearchDefault)
	l.SearchMax = cmp.Or(l.SearchMax, base.SearchMax)
	return l
}

// enter registers a run unless the supervisor is closed.
func (s *Supervisor) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// newID makes a run id of 128 random bits (SPEC 12.2).
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// errDeadline is the cause when a run's own time is up.
var errDeadline = fmt.Errorf("the run's time is up: %w", context.DeadlineExceeded)

// clock is a run's time: from the request to the answer, on the monotonic clock.
type clock struct {
	start    time.Time
	deadline time.Time
}

func newClock(timeout time.Duration) clock {
	now := time.Now()
	return clock{now, now.Add(timeout)}
}

func (c clock) left() time.Duration { return time.Until(c.deadline) }

func (c clock) timeout() time.Duration { return c.deadline.Sub(c.start) }

// Refuse gives the result of a cell that is refused before it could reach Exec: a
// config that cannot be used, for example.
func Refuse(code Code, text string) *Result { return refuse(inputf(code, "%s", text)) }

func refuse(f *failure) *Result {
	return &Result{Status: Failed, Code: f.code, Phase: f.phase, Error: f.text, Telemetry: Telemetry{
		VisibleTools: []string{"exec", "wait"}, Catalog: CatalogInfo{BySource: map[string]int{}}, Calls: []CallInfo{}, Limits: []string{},
		Worker: WorkerInfo{Isolation: []LayerInfo{}},
	}}
}
