// Package telemetry says through OpenTelemetry what a supervisor does (SPEC 18.3).
//
// The supervisor calls a [Recorder] where something happens; names, units and labels are in
// this package and in docs/telemetry.md, which a test compares. A Recorder uses the providers
// that it is given, never the global ones, and must be closed.
//
// A provider is somebody else's code. Spans are started by whoever needs one in a context, an
// exec, a wait or a call; never by a run's loop. All else, the ends of spans included, is handed
// to one goroutine over a bounded queue. A provider that blocks costs records, which are counted,
// and no run its time; one that panics costs the record at hand.
//
// Nothing here takes a text that a guest, a tool or a model wrote. What is no constant of ours
// is a number, a run's id or the id of a tool in the catalog, and ids are on spans only.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// scope is the instrumentation scope of all that is recorded.
const scope = "github.com/openclaw/codemode-supervisor/supervisor"

const (
	// maxWaiting bounds the records that wait for their provider.
	maxWaiting = 4096

	// drainTime is how long [Recorder.Close] waits for a provider that blocks.
	drainTime = 2 * time.Second
)

// Recorder records. Safe for concurrent use; no method but Start and Close can block.
type Recorder struct {
	logger  *slog.Logger
	tracer  trace.Tracer
	m       *instruments // nil: there is no MeterProvider
	watched metric.Registration

	mu      sync.RWMutex
	queue   chan func()   // nil: there is nothing to record; guarded by mu against its closing
	closed  bool          // guarded by mu
	done    chan struct{} // closed when the queue is empty for good
	dropped atomic.Int64  // records that found the queue full
	warned  sync.Once
}

// New makes a Recorder. A nil provider means none.
func New(meters metric.MeterProvider, tracers trace.TracerProvider, logger *slog.Logger) *Recorder {
	t := &Recorder{logger: logger, tracer: tracenoop.NewTracerProvider().Tracer(scope), done: make(chan struct{})}
	if meters == nil && tracers == nil {
		close(t.done)
		return t
	}
	if tracers != nil {
		t.guard(func() {
			if tracer := tracers.Tracer(scope); tracer != nil {
				t.tracer = tracer
			}
		})
	}
	if meters != nil {
		meter := metricnoop.NewMeterProvider().Meter(scope)
		t.m = newInstruments(meter)
		t.guard(func() { t.m = newInstruments(meters.Meter(scope)) })
	}
	t.queue = make(chan func(), maxWaiting)
	go t.run(t.queue) // Close waits for it
	return t
}

// run hands over what was recorded, in order.
func (t *Recorder) run(queue <-chan func()) {
	defer close(t.done)
	for record := range queue {
		t.guard(record)
	}
}

// Close hands over what was recorded. It waits for a provider that blocks, drainTime at most,
// and leaves its goroutine behind then. It may be called twice.
func (t *Recorder) Close() {
	t.mu.Lock()
	if !t.closed && t.queue != nil {
		close(t.queue)
	}
	t.closed = true
	t.mu.Unlock()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
		t.logger.Error("a telemetry provider blocks; what was recorded last is lost")
	}
}

// Unwatch ends what [Recorder.Watch] began. It may be called twice.
func (t *Recorder) Unwatch() {
	t.mu.Lock()
	watched := t.watched
	t.watched = nil
	t.mu.Unlock()
	if watched != nil {
		t.guard(func() { _ = watched.Unregister() })
	}
}

// add queues a record, or drops it.
func (t *Recorder) add(record func()) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed || t.queue == nil {
		return
	}
	select {
	case t.queue <- record:
	default:
		t.dropped.Add(1)
	}
}

// count queues a record of metrics.
func (t *Recorder) count(record func(ctx context.Context, m *instruments)) {
	if t.m != nil {
		t.add(func() { record(context.Background(), t.m) })
	}
}

// guard calls into a provider. What it panics with is logged once.
func (t *Recorder) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			t.warned.Do(func() {
				t.logger.Error("a telemetry provider panicked; its records are lost", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			})
		}
	}()
	f()
}
