package telemetry

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// row is one metric as docs/telemetry.md has it.
type row struct{ Kind, Unit, Labels string }

// collect gives what a reader sees, in the form of the document's table.
func collect(t *testing.T, reader *sdkmetric.ManualReader) (rows map[string]row, values map[string][]string) {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		t.Fatal(err)
	}
	rows, values = map[string]row{}, map[string][]string{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		labels := map[string]bool{}
		kind := ""
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			if kind = "up-down counter"; d.IsMonotonic {
				kind = "counter"
			}
			see(d.DataPoints, labels, values)
		case metricdata.Gauge[int64]:
			kind = "gauge"
			see(d.DataPoints, labels, values)
		case metricdata.Histogram[int64]:
			kind = "histogram"
			seeHistogram(d.DataPoints, labels, values)
		case metricdata.Histogram[float64]:
			kind = "histogram"
			seeHistogram(d.DataPoints, labels, values)
		}
		rows[m.Name] = row{kind, m.Unit, strings.Join(slices.Sorted(maps.Keys(labels)), ", ")}
	}
	return rows, values
}

func see(points []metricdata.DataPoint[int64], labels map[string]bool, values map[string][]string) {
	for _, p := range points {
		for _, kv := range p.Attributes.ToSlice() {
			labels[string(kv.Key)] = true
			values[string(kv.Key)] = append(values[string(kv.Key)], kv.Value.String())
		}
	}
}

func seeHistogram[N int64 | float64](points []metricdata.HistogramDataPoint[N], labels map[string]bool, values map[string][]string) {
	for _, p := range points {
		for _, kv := range p.Attributes.ToSlice() {
			labels[string(kv.Key)] = true
			values[string(kv.Key)] = append(values[string(kv.Key)], kv.Value.String())
		}
	}
}

// SPEC 18.3: docs/telemetry.md lists the metrics, their kinds, units and labels as they are, and
// each value that this package has a name for.
func TestDocument(t *testing.T) {
	reader, registry := sdkmetric.NewManualReader(), prometheus.NewRegistry()
	scraped, err := bridge.New(bridge.WithRegisterer(registry), bridge.WithoutScopeInfo())
	if err != nil {
		t.Fatal(err)
	}
	rec := New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithReader(scraped)), nil, slog.New(slog.DiscardHandler))
	rec.Watch(func() State { return State{} })
	failed := Outcome{"failed", Guest}
	rec.RunEnded(failed, 1)
	rec.Exec(context.Background()).End(failed, 0, 0)
	rec.Wait(context.Background()).End(failed, 0, 0)
	for _, s := range []string{Queue, Start, Transform, GuestCode, Tools, Snapshot, Restore} {
		rec.Stages(Stage{s, 1})
	}
	for _, end := range []string{EndDone, EndTimeout, EndAbort, EndViolation, EndStart, EndUndead, EndMemory, EndSignal, EndExit} {
		rec.WorkerEnded(end)
	}
	for _, why := range []string{StartUnavailable, StartIsolation, StartHeldBack, StartGivenUp, StartFailed} {
		rec.StartFailed(why)
	}
	rec.Worker(1, 1)
	rec.CallEnded("done", "", 1)
	rec.Parked(1)
	rec.Denied()
	rec.Close()
	got, values := collect(t, reader)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	rec.Unwatch()

	doc, err := os.ReadFile("../../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]row{}
	var names, gathered []string // for Prometheus
	for _, cells := range table(t, string(doc), "## Metrics") {
		want[cells[0]] = row{cells[1], cells[2], cells[3]}
		names = append(names, cells[5])
	}
	for _, f := range families {
		if f.GetName() != "target_info" {
			gathered = append(gathered, f.GetName())
		}
	}
	slices.Sort(names)
	if d := cmp.Diff(gathered, names); d != "" {
		t.Errorf("Prometheus has (-code +document):\n%s", d)
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("metrics (-code +document):\n%s", d)
	}
	words := map[string][]string{}
	for _, cells := range table(t, string(doc), "## Labels") {
		words[cells[0]] = append(words[cells[0]], regexp.MustCompile(`\w+`).FindAllString(cells[1], -1)...)
	}
	for label, seen := range values {
		for _, v := range seen {
			if !slices.Contains(words[label], v) {
				t.Errorf("the document does not say that %s can be %q", label, v)
			}
		}
	}
}

// The same for spans and their attributes.
func TestDocumentOfSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	rec := New(nil, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), slog.New(slog.DiscardHandler))
	exec, wait := rec.Exec(context.Background()), rec.Wait(context.Background())
	for _, op := range []*Op{exec, wait} {
		op.Of("r", exec.Context())
		op.End(Outcome{"failed", Guest}, 300, 44)
	}
	exec.Span(Queue, time.Now(), "timeout", false)
	exec.Span(Start, time.Now(), "timeout", false)
	_, call := rec.Call(context.Background(), exec.Context(), wait.Context(), true)
	call.End("failed", "client:app:x", "client", Other)
	rec.Close()
	got, want := map[string][]string{}, map[string][]string{}
	for _, span := range spans.Ended() {
		for _, kv := range span.Attributes() {
			got[span.Name()] = append(got[span.Name()], string(kv.Key))
		}
		slices.Sort(got[span.Name()])
	}
	doc, err := os.ReadFile("../../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range table(t, string(doc), "## Spans") {
		want[cells[0]] = strings.Split(cells[2], ", ")
		slices.Sort(want[cells[0]])
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("spans (-code +document):\n%s", d)
	}
}

// table gives the rows of the table under a heading, without backquotes.
func table(t *testing.T, doc, heading string) (rows [][]string) {
	t.Helper()
	_, after, ok := strings.Cut(doc, heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	for _, line := range strings.Split(strings.TrimSpace(after), "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.ReplaceAll(strings.TrimSpace(cell), "`", ""))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 4 {
		t.Fatalf("no table under %q", heading)
	}
	return rows[2:]
}

// wicked providers panic, or block until release is closed.
type wickedMeters struct {
	metricnoop.MeterProvider
	release chan struct{} // nil: panic
}

type wickedMeter struct {
	metricnoop.Meter
	release chan struct{}
}

type wickedCounter struct {
	metricnoop.Int64Counter
	release chan struct{}
}

func (p wickedMeters) Meter(string, ...metric.MeterOption) metric.Meter {
	return wickedMeter{release: p.release}
}

func (m wickedMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return wickedCounter{release: m.release}, nil
}

func (c wickedCounter) Add(context.Context, int64, ...metric.AddOption) {
	if c.release == nil {
		panic("wicked")
	}
	<-c.release
}

type wickedTracers struct{ tracenoop.TracerProvider }
type wickedTracer struct{ tracenoop.Tracer }

func (wickedTracers) Tracer(string, ...trace.TracerOption) trace.Tracer { return wickedTracer{} }

func (wickedTracer) Start(context.Context, string, ...trace.SpanStartOption) (context.Context, trace.Span) {
	panic("wicked")
}

func TestProviderPanics(t *testing.T) {
	rec := New(wickedMeters{}, wickedTracers{}, slog.New(slog.DiscardHandler))
	rec.Watch(func() State { return State{} })
	op := rec.Exec(context.Background())
	op.Of("r", op.Context())
	_, call := rec.Call(context.Background(), op.Context(), trace.SpanContext{}, true)
	call.End("done", "x", "client", "")
	rec.Denied()
	op.End(Outcome{Status: "completed"}, 1, 0)
	rec.Unwatch()
	rec.Close()
	rec.Close()
}

func TestProviderBlocks(t *testing.T) {
	release := make(chan struct{})
	rec := New(wickedMeters{release: release}, nil, slog.New(slog.DiscardHandler))
	began := time.Now()
	for range 2 * maxWaiting {
		rec.Denied()
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("a provider that blocks held us up for %v", took)
	}
	if n := rec.dropped.Load(); n < maxWaiting-1 {
		t.Errorf("%d records were counted as dropped", n)
	}
	close(release)
	rec.Close()
}

func TestPlace(t *testing.T) {
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	want := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	if got := PlaceOf(want).Context(); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, p := range []*Place{nil, {}, {Trace: "x", Span: "y"}, PlaceOf(trace.SpanContext{})} {
		if p.Context().IsValid() {
			t.Errorf("%+v is a place", p)
		}
	}
}

// What a nested call costs: nothing that can be seen without providers.
func BenchmarkCall(b *testing.B) {
	exporter := tracetest.NewInMemoryExporter()
	for _, c := range []struct {
		name    string
		meters  metric.MeterProvider
		tracers trace.TracerProvider
	}{
		{"nil", nil, nil},
		{"metrics", sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), nil},
		{"unsampled", nil, sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))},
		{"both", sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))},
	} {
		b.Run(c.name, func(b *testing.B) {
			rec := New(c.meters, c.tracers, slog.New(slog.DiscardHandler))
			defer rec.Close()
			exec := rec.Exec(context.Background()).Context()
			b.ReportAllocs()
			for b.Loop() {
				_, call := rec.Call(context.Background(), exec, trace.SpanContext{}, true)
				call.End("done", "client:app:echo", "client", "")
				rec.CallEnded("done", "client", time.Millisecond)
			}
		})
	}
}
