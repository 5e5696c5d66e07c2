package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// The keys of labels and of attributes of spans. error.type is OpenTelemetry's.
const (
	keyStatus = attribute.Key("codemode.status")
	keyError  = attribute.Key("error.type")
	keyStage  = attribute.Key("codemode.stage")
	keyState  = attribute.Key("codemode.call.state")
	keySource = attribute.Key("codemode.tool.source")
	keyWorker = attribute.Key("codemode.worker.state")
	keyEnd    = attribute.Key("codemode.worker.end")
)

// Other is the error.type of what has no code of ours.
const Other = "_OTHER"

// Guest is the error.type of a cell that failed by an exception of its own.
const Guest = "guest_exception"

// The stages of an exec or a wait, as in supervisor.Timings.
const (
	Queue     = "queue"
	Start     = "start"
	Transform = "transform"
	GuestCode = "guest"
	Tools     = "tools"
	Snapshot  = "snapshot"
	Restore   = "restore"
)

// The reasons of a start that failed.
const (
	StartUnavailable = "unavailable" // there is no worker, or it is not the pinned one
	StartIsolation   = "isolation"   // the host lacks a required layer
	StartHeldBack    = "held_back"   // too many failed before
	StartGivenUp     = "given_up"    // the run ended before the worker was ready
	StartFailed      = "failed"
)

// The ends of workers.
const (
	EndDone      = "done" // killed, as each is whose run completed, failed or is parked
	EndTimeout   = "timeout"
	EndAbort     = "abort"
	EndViolation = "violation" // killed: it broke the protocol
	EndStart     = "start"     // killed: it could not be made ready for its run
	EndUndead    = "undead"    // killed, and it does not die
	EndMemory    = "out_of_memory"
	EndSignal    = "signal"
	EndExit      = "exit"
)

var (
	// seconds are the bounds of histograms of time: from a nested call that costs nothing to
	// the longest timeoutMs.
	seconds = metric.WithExplicitBucketBoundaries(.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60)
	// bytes are those of sizes: from a line of output to the largest snapshot.
	bytes = metric.WithExplicitBucketBoundaries(256, 1<<10, 4<<10, 16<<10, 64<<10, 256<<10, 1<<20, 4<<20, 16<<20, 64<<20, 256<<20)
	// memory are those of workers: a spare has about 6 MB.
	memory = metric.WithExplicitBucketBoundaries(4<<20, 8<<20, 16<<20, 32<<20, 64<<20, 128<<20, 256<<20, 512<<20, 1<<30, 2<<30)
)

// instruments are all the metrics that there are.
type instruments struct {
	meter metric.Meter

	runs       metric.Int64Counter
	exec       metric.Float64Histogram
	wait       metric.Float64Histogram
	stage      metric.Float64Histogram
	calls      metric.Int64Counter
	call       metric.Float64Histogram
	ends       metric.Int64Counter
	failed     metric.Int64Counter
	peak       metric.Int64Histogram
	cpu        metric.Float64Histogram
	snapshot   metric.Int64Histogram
	output     metric.Int64Histogram
	denied     metric.Int64Counter
	workers    metric.Int64ObservableUpDownCounter
	parked     metric.Int64ObservableGauge
	parkedSize metric.Int64ObservableGauge
	dropped    metric.Int64ObservableCounter
}

func newInstruments(meter metric.Meter) *instruments {
	counter := func(name, unit, about string) metric.Int64Counter {
		i, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
		return or[metric.Int64Counter](i, err, noop.Int64Counter{})
	}
	duration := func(name, about string) metric.Float64Histogram {
		i, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), seconds)
		return or[metric.Float64Histogram](i, err, noop.Float64Histogram{})
	}
	size := func(name, about string, bounds metric.HistogramOption) metric.Int64Histogram {
		i, err := meter.Int64Histogram(name, metric.WithUnit("By"), metric.WithDescription(about), bounds)
		return or[metric.Int64Histogram](i, err, noop.Int64Histogram{})
	}
	gauge := func(name, unit, about string) metric.Int64ObservableGauge {
		i, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(about))
		return or[metric.Int64ObservableGauge](i, err, noop.Int64ObservableGauge{})
	}
	m := &instruments{
		meter:      meter,
		runs:       counter("codemode.run.ended", "{run}", "Runs that are over."),
		exec:       duration("codemode.exec.duration", "From the call of Exec to its result."),
		wait:       duration("codemode.wait.duration", "From the call of Wait to its result."),
		stage:      duration("codemode.stage.duration", "What an exec or a wait spent its time on."),
		calls:      counter("codemode.call.ended", "{call}", "Nested calls that settled, or that their run left behind."),
		call:       duration("codemode.call.duration", "Nested calls that were started, from their dispatch to their end."),
		ends:       counter("codemode.worker.ended", "{worker}", "Workers that are gone, by what ended them."),
		failed:     counter("codemode.worker.start.failed", "{start}", "Workers that could not be started."),
		peak:       size("codemode.worker.memory.peak", "Largest resident set of the worker of an exec or a wait.", memory),
		cpu:        duration("codemode.worker.cpu.time", "User and system time of the worker of an exec or a wait."),
		snapshot:   size("codemode.snapshot.size", "Sealed snapshot of a run that was parked.", bytes),
		output:     size("codemode.run.output.size", "Output, value and error of a run that is over, as maxOutputBytes counts them.", bytes),
		denied:     counter("codemode.denied.attempts", "{attempt}", "Attempts of cells on tools that policy denies."),
		parked:     gauge("codemode.parked.count", "{run}", "Runs that are parked in the store."),
		parkedSize: gauge("codemode.parked.size", "By", "What the store keeps of them."),
	}
	workers, err := meter.Int64ObservableUpDownCounter("codemode.worker.count", metric.WithUnit("{worker}"), metric.WithDescription("Workers that are alive."))
	m.workers = or[metric.Int64ObservableUpDownCounter](workers, err, noop.Int64ObservableUpDownCounter{})
	dropped, err := meter.Int64ObservableCounter("codemode.telemetry.dropped", metric.WithUnit("{record}"), metric.WithDescription("Records that were lost because a provider was too slow."))
	m.dropped = or[metric.Int64ObservableCounter](dropped, err, noop.Int64ObservableCounter{})
	return m
}

// or gives an instrument that can be used, whatever the provider gave.
func or[T comparable](got T, err error, none T) T {
	var zero T
	if err != nil || got == zero {
		return none
	}
	return got
}

// State is how things stand when somebody looks.
type State struct {
	Workers, Spares     int64 // alive; spares are among them
	Parked, ParkedBytes int64
	NoStore             bool // the store cannot be read: the last two are not known
}

// Watch has look called whenever the provider collects, on its goroutine, until
// [Recorder.Unwatch].
func (t *Recorder) Watch(look func() State) {
	if t.m == nil {
		return
	}
	m := t.m
	t.guard(func() {
		registration, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			s := look()
			o.ObserveInt64(m.workers, s.Spares, metric.WithAttributes(keyWorker.String("idle")))
			o.ObserveInt64(m.workers, s.Workers-s.Spares, metric.WithAttributes(keyWorker.String("used")))
			o.ObserveInt64(m.dropped, t.dropped.Load())
			if !s.NoStore {
				o.ObserveInt64(m.parked, s.Parked)
				o.ObserveInt64(m.parkedSize, s.ParkedBytes)
			}
			return nil
		}, m.workers, m.parked, m.parkedSize, m.dropped)
		if err == nil {
			t.mu.Lock()
			t.watched = registration
			t.mu.Unlock()
		}
	})
}

// Outcome is how a run, an exec or a wait ended.
type Outcome struct {
	Status string // supervisor.Status
	Code   string // supervisor.Code, [Guest], or "" if it did not fail
}

func (o Outcome) labels() []attribute.KeyValue {
	labels := []attribute.KeyValue{keyStatus.String(o.Status)}
	if o.Code != "" {
		labels = append(labels, keyError.String(o.Code))
	}
	return labels
}

// RunEnded counts a run that is over. output is in bytes.
func (t *Recorder) RunEnded(o Outcome, output int64) {
	t.count(func(ctx context.Context, m *instruments) {
		m.runs.Add(ctx, 1, metric.WithAttributes(o.labels()...))
		m.output.Record(ctx, output)
	})
}

// Stage is a part of an exec or a wait.
type Stage struct {
	Name    string
	Seconds float64
}

// Stages records those that took time.
func (t *Recorder) Stages(stages ...Stage) {
	t.count(func(ctx context.Context, m *instruments) {
		for _, s := range stages {
			if s.Seconds > 0 {
				m.stage.Record(ctx, s.Seconds, metric.WithAttributes(keyStage.String(s.Name)))
			}
		}
	})
}

// Worker records what a leg's worker used. peak is in bytes.
func (t *Recorder) Worker(peak int64, cpu time.Duration) {
	t.count(func(ctx context.Context, m *instruments) {
		m.peak.Record(ctx, peak)
		m.cpu.Record(ctx, cpu.Seconds())
	})
}

// WorkerEnded counts a worker that is gone; end is one of the ends above.
func (t *Recorder) WorkerEnded(end string) {
	t.count(func(ctx context.Context, m *instruments) {
		m.ends.Add(ctx, 1, metric.WithAttributes(keyEnd.String(end)))
	})
}

// StartFailed counts a worker that did not start; why is one of the reasons above.
func (t *Recorder) StartFailed(why string) {
	t.count(func(ctx context.Context, m *instruments) {
		m.failed.Add(ctx, 1, metric.WithAttributes(keyError.String(why)))
	})
}

// CallEnded counts a nested call. state is a supervisor.CallState, source a catalog.Source, or
// "" for a call that named no tool. took is 0 for a call that was not started or has not ended.
func (t *Recorder) CallEnded(state, source string, took time.Duration) {
	if t.m == nil {
		return
	}
	if source == "" {
		source = Other
	}
	t.count(func(ctx context.Context, m *instruments) {
		labels := metric.WithAttributeSet(attribute.NewSet(keyState.String(state), keySource.String(source)))
		m.calls.Add(ctx, 1, labels)
		if took > 0 {
			m.call.Record(ctx, took.Seconds(), labels)
		}
	})
}

// Parked records the size of a snapshot, in bytes.
func (t *Recorder) Parked(size int64) {
	t.count(func(ctx context.Context, m *instruments) { m.snapshot.Record(ctx, size) })
}

// Denied counts an attempt on a tool that policy denies.
func (t *Recorder) Denied() {
	t.count(func(ctx context.Context, m *instruments) { m.denied.Add(ctx, 1) })
}
