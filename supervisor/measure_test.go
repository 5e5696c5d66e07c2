package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/telemetry"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// secret is in sources, results and errors, and must be nowhere in what is exported.
const secret = "s3cr3t"

// watch collects what a supervisor exports.
type watch struct {
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	meters *sdkmetric.MeterProvider
	traces *sdktrace.TracerProvider
}

func newWatch() *watch {
	w := &watch{reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	w.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	w.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
	return w
}

func (w *watch) options() Options {
	return Options{MeterProvider: w.meters, TracerProvider: w.traces}
}

// ended closes the supervisor, which hands over all, and gives the spans of a name.
func (w *watch) ended(t *testing.T, s *Supervisor, name string) (found []sdktrace.ReadOnlySpan) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, span := range w.spans.Ended() {
		if span.Name() == name {
			found = append(found, span)
		}
	}
	return found
}

// one is ended for a name that only one span has.
func (w *watch) one(t *testing.T, s *Supervisor, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	found := w.ended(t, s, name)
	if len(found) != 1 {
		t.Fatalf("there are %d spans %s", len(found), name)
	}
	return found[0]
}

// collect gives the metrics by name, and fails the test if a secret is in them or in a span.
func (w *watch) collect(t *testing.T) map[string]metricdata.Aggregation {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &data); err != nil {
		t.Fatal(err)
	}
	metrics := map[string]metricdata.Aggregation{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		metrics[m.Name] = m.Data
	}
	exported := fmt.Sprintf("%+v", data)
	for _, s := range w.spans.Ended() {
		exported += fmt.Sprintf("%s %v %v %v %v", s.Name(), s.Attributes(), s.Events(), s.Links(), s.Status())
	}
	if strings.Contains(exported, secret) {
		t.Errorf("the secret is in %s", exported)
	}
	return metrics
}

// counts gives the values of a counter by labels.
func counts(t *testing.T, data metricdata.Aggregation) map[string]int64 {
	t.Helper()
	sum, ok := data.(metricdata.Sum[int64])
	if !ok {
		t.Fatalf("got %T", data)
	}
	values := map[string]int64{}
	for _, p := range sum.DataPoints {
		values[p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
	}
	return values
}

func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	values := map[string]string{}
	for _, kv := range s.Attributes() {
		values[string(kv.Key)] = kv.Value.String()
	}
	return values
}

// linked tells whether a span has a link to another.
func linked(s sdktrace.ReadOnlySpan, to trace.SpanContext) bool {
	return slices.ContainsFunc(s.Links(), func(l sdktrace.Link) bool { return l.SpanContext.SpanID() == to.SpanID() })
}

// SPEC 18.3: an exec's spans and metrics, from the caller's span down to the gateway's own.
// Validation 23: transcript and telemetry show nested calls clearly
func TestTelemetryOfExec(t *testing.T) {
	w := newWatch()
	s := fakeWith(t, "call", w.options())
	cat, _ := tools(t)
	ctx, caller := w.traces.Tracer("gateway").Start(context.Background(), "turn")
	res := s.Exec(ctx, Program{Code: secret, Catalog: cat, Executor: ExecutorFunc(func(ctx context.Context, call *Call) (json.RawMessage, error) {
		_, own := w.traces.Tracer("gateway").Start(ctx, "http")
		own.End()
		return json.RawMessage(`"` + secret + `"`), nil
	})})
	if res.Status != Completed {
		t.Fatalf("got %s", res.JSON())
	}
	exec, call := w.one(t, s, "codemode.exec"), w.one(t, s, "codemode.call")
	for child, parent := range map[sdktrace.ReadOnlySpan]trace.SpanContext{
		exec: caller.SpanContext(), call: exec.SpanContext(), w.one(t, s, "http"): call.SpanContext(),
		w.one(t, s, "codemode.queue"): exec.SpanContext(), w.one(t, s, "codemode.start"): exec.SpanContext(),
	} {
		if child.Parent().SpanID() != parent.SpanID() || child.SpanContext().TraceID() != parent.TraceID() {
			t.Errorf("%s has another parent than it should", child.Name())
		}
		if child.EndTime().Before(child.StartTime()) {
			t.Errorf("%s ends before it begins", child.Name())
		}
	}
	if d := cmp.Diff(map[string]string{"codemode.run.id": res.RunID, "codemode.status": "completed", "codemode.calls": "1"}, attributes(exec)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"codemode.call.state": "done", "codemode.tool.id": "client:app:echo", "codemode.tool.source": "client"}, attributes(call)); d != "" {
		t.Error(d)
	}
	metrics := w.collect(t)
	for name, want := range map[string]map[string]int64{
		"codemode.run.ended":    {"codemode.status=completed": 1},
		"codemode.call.ended":   {"codemode.call.state=done,codemode.tool.source=client": 1},
		"codemode.worker.ended": {"codemode.worker.end=done": 1},
	} {
		if d := cmp.Diff(want, counts(t, metrics[name])); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for _, name := range []string{"codemode.exec.duration", "codemode.call.duration", "codemode.stage.duration", "codemode.worker.cpu.time"} {
		h, ok := metrics[name].(metricdata.Histogram[float64])
		if !ok || len(h.DataPoints) == 0 || h.DataPoints[0].Sum <= 0 || h.DataPoints[0].Sum > 60 {
			t.Errorf("%s: got %+v", name, metrics[name])
		}
	}
	if h, ok := metrics["codemode.worker.memory.peak"].(metricdata.Histogram[int64]); !ok || h.DataPoints[0].Sum < 1<<20 {
		t.Errorf("peak memory: got %+v", metrics["codemode.worker.memory.peak"])
	}
}

// Failures are codes: the text of an error and the code of an executor are content.
func TestTelemetryOfFailures(t *testing.T) {
	w := newWatch()
	s := fakeWith(t, "call", w.options())
	cat, _ := tools(t)
	s.Exec(context.Background(), Program{Code: "1", Catalog: cat, Executor: ExecutorFunc(func(context.Context, *Call) (json.RawMessage, error) {
		return nil, &ToolError{Message: secret, Code: secret}
	})})
	s.Exec(context.Background(), Program{Code: "1", Catalog: cat, Executor: ExecutorFunc(func(context.Context, *Call) (json.RawMessage, error) {
		return nil, errors.New(secret)
	})})
	s.Exec(context.Background(), Program{Code: " "})
	s.Exec(context.Background(), Program{Code: "1"}) // the call finds no tool
	s.Wait(context.Background(), WaitRequest{RunID: secret})
	var got []string
	for _, call := range w.ended(t, s, "codemode.call") {
		a := attributes(call)
		got = append(got, a["codemode.call.state"]+" "+a["error.type"]+" "+a["codemode.tool.id"])
	}
	if d := cmp.Diff([]string{"failed _OTHER client:app:echo", "failed tool_failed client:app:echo", "not_started unknown_tool "}, got); d != "" {
		t.Error(d)
	}
	if a := attributes(w.one(t, s, "codemode.wait")); a["error.type"] != "invalid_input" {
		t.Errorf("got %v", a)
	}
	metrics := w.collect(t)
	if n := counts(t, metrics["codemode.run.ended"])["codemode.status=failed,error.type=invalid_input"]; n != 1 {
		t.Errorf("%d runs were refused", n)
	}
	if n := counts(t, metrics["codemode.call.ended"])["codemode.call.state=not_started,codemode.tool.source=_OTHER"]; n != 1 {
		t.Errorf("%d calls named no tool", n)
	}
}

// SPEC 18.3: a call that ends while its run is parked is a child of the exec, and the wait is
// linked to that.
func TestTraceAcrossParking(t *testing.T) {
	w := newWatch()
	s := fakeWith(t, "park-call", w.options())
	cat, _ := tools(t)
	h := newHeld(func(c *Call) { c.Park(secret) })
	res := parked(t, s, Program{Code: secret, Catalog: cat, Executor: h})
	if state := s.look(); state.Parked != 1 || state.ParkedBytes == 0 || state.Workers != 0 {
		t.Errorf("got %+v", state)
	}
	<-h.arrived
	h.release <- json.RawMessage(`"` + secret + `"`)
	if end := wait(s, res.RunID); end.Status != Completed {
		t.Fatalf("got %s", end.JSON())
	}
	again := wait(s, res.RunID) // which measures nothing a second time
	if again.Status != Completed {
		t.Fatalf("got %s", again.JSON())
	}
	exec, call, waits := w.one(t, s, "codemode.exec"), w.one(t, s, "codemode.call"), w.ended(t, s, "codemode.wait")
	if call.Parent().SpanID() != exec.SpanContext().SpanID() {
		t.Error("the call is not the exec's child")
	}
	if len(waits) != 2 || !linked(waits[0], exec.SpanContext()) || attributes(exec)["codemode.status"] != "waiting" {
		t.Errorf("got %d waits, the exec %v", len(waits), attributes(exec))
	}
	if n := len(w.ended(t, s, "codemode.start")); n != 2 {
		t.Errorf("%d workers were started", n)
	}
	metrics := w.collect(t)
	if d := cmp.Diff(map[string]int64{"codemode.status=completed": 1}, counts(t, metrics["codemode.run.ended"])); d != "" {
		t.Error(d)
	}
	if h, ok := metrics["codemode.snapshot.size"].(metricdata.Histogram[int64]); !ok || h.DataPoints[0].Count != 1 || h.DataPoints[0].Sum == 0 {
		t.Errorf("snapshot: got %+v", metrics["codemode.snapshot.size"])
	}
}

// The same for a call that is made after a resume, by another supervisor.
func TestTraceAcrossSupervisors(t *testing.T) {
	w, dir := newWatch(), filepath.Join(t.TempDir(), "state")
	opts := w.options()
	opts.StateDir = dir
	s := fakeWith(t, "checkpoint", opts)
	cat, executor := tools(t)
	res := parked(t, s, Program{Catalog: cat, Executor: executor})
	exec := w.one(t, s, "codemode.exec")

	s = fakeWith(t, "checkpoint", opts)
	if end := s.Wait(context.Background(), WaitRequest{RunID: res.RunID, Executor: executor}); end.Status != Completed {
		t.Fatalf("got %s", end.JSON())
	}
	call, waited := w.one(t, s, "codemode.call"), w.one(t, s, "codemode.wait")
	if call.Parent().SpanID() != exec.SpanContext().SpanID() || !linked(call, waited.SpanContext()) || !linked(waited, exec.SpanContext()) {
		t.Errorf("call: parent %v, links %v; wait: links %v", call.Parent(), call.Links(), waited.Links())
	}
}

// A run that ends counts the calls that it leaves behind.
func TestTelemetryOfCallsLeftBehind(t *testing.T) {
	w := newWatch()
	s := fakeWith(t, "park-call", w.options())
	cat, _ := tools(t)
	release := make(chan struct{})
	res := parked(t, s, Program{Catalog: cat, Executor: ExecutorFunc(func(_ context.Context, c *Call) (json.RawMessage, error) {
		c.Park("long")
		<-release // it does not look at its context
		return nil, nil
	})})
	if err := s.Abort(context.Background(), res.RunID, Scope{}); err != nil {
		t.Fatal(err)
	}
	close(release)
	w.ended(t, s, "")
	metrics := w.collect(t)
	if d := cmp.Diff(map[string]int64{"codemode.call.state=in_flight,codemode.tool.source=client": 1}, counts(t, metrics["codemode.call.ended"])); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]int64{"codemode.status=failed,error.type=aborted": 1}, counts(t, metrics["codemode.run.ended"])); d != "" {
		t.Error(d)
	}
}

// Starts that fail and workers that are killed are counted by why.
func TestTelemetryOfWorkers(t *testing.T) {
	for behaviour, want := range map[string][2]string{
		"hang":       {"codemode.worker.start.failed", "error.type=given_up"},
		"early-exit": {"codemode.worker.start.failed", "error.type=failed"},
		"wrong-id":   {"codemode.worker.ended", "codemode.worker.end=violation"},
		"deaf":       {"codemode.worker.ended", "codemode.worker.end=timeout"},
		"killed":     {"codemode.worker.ended", "codemode.worker.end=signal"},
	} {
		w := newWatch()
		s := fakeWith(t, behaviour, w.options())
		cat, executor := tools(t)
		s.Exec(context.Background(), Program{Code: "1", Catalog: cat, Executor: executor, Limits: short()})
		w.ended(t, s, "")
		if got := counts(t, w.collect(t)[want[0]]); got[want[1]] != 1 {
			t.Errorf("%s: got %v", behaviour, got)
		}
	}
	if endOf(process.Exit{}) != telemetry.EndExit || endOf(process.Exit{Code: 2, OutOfMemory: true}) != telemetry.EndMemory {
		t.Error("a worker that ended by itself has another label than it should")
	}
	for reason := range ends {
		if endOf(process.Exit{Killed: reason}) == "" {
			t.Errorf("%q has no label", reason)
		}
	}
}

// Without a tracer of ours the gateway's spans find their place all the same.
func TestTraceWithoutProvider(t *testing.T) {
	w := newWatch()
	s := fake(t, "call")
	cat, _ := tools(t)
	ctx, caller := w.traces.Tracer("gateway").Start(context.Background(), "turn")
	var got trace.SpanContext
	s.Exec(ctx, Program{Code: "1", Catalog: cat, Limits: limits.Default(), Executor: ExecutorFunc(func(ctx context.Context, call *Call) (json.RawMessage, error) {
		got = trace.SpanContextFromContext(ctx)
		return call.Input, nil
	})})
	if got.SpanID() != caller.SpanContext().SpanID() {
		t.Errorf("the executor's context has %v", got)
	}
}
