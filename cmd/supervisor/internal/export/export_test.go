package export

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector is an OTLP collector that notes the names of what it gets.
type fake struct {
	*httptest.Server
	answer func(http.ResponseWriter, *http.Request)

	mu    sync.Mutex
	names []string
}

func newFake(t *testing.T) *fake {
	f := &fake{answer: func(http.ResponseWriter, *http.Request) {}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		switch r.URL.Path {
		case "/v1/traces":
			var m traces.ExportTraceServiceRequest
			if err := proto.Unmarshal(body, &m); err != nil {
				t.Error(err)
			}
			for _, span := range m.ResourceSpans[0].ScopeSpans[0].Spans {
				f.names = append(f.names, "span "+span.Name)
			}
			for _, a := range m.ResourceSpans[0].Resource.Attributes {
				if strings.HasPrefix(a.Key, "service.") {
					f.names = append(f.names, a.Key+" "+a.Value.GetStringValue())
				}
			}
		case "/v1/metrics":
			var m metrics.ExportMetricsServiceRequest
			if err := proto.Unmarshal(body, &m); err != nil {
				t.Error(err)
			}
			for _, metric := range m.ResourceMetrics[0].ScopeMetrics[0].Metrics {
				f.names = append(f.names, "metric "+metric.Name)
			}
		default:
			t.Errorf("a request for %s", r.URL.Path)
		}
		f.mu.Unlock()
		f.answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// measure makes a span and a metric.
func measure(t *testing.T, e *Exporters) {
	t.Helper()
	counter, err := e.Meter().Meter("test").Int64Counter("a.counter")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(context.Background(), 1)
	_, span := e.Tracer().Tracer("test").Start(context.Background(), "a.span")
	span.End()
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		if i := slices.Index(pairs, name); i >= 0 {
			return pairs[i+1]
		}
		return ""
	}
}

// SPEC 18.3: spans and metrics are with the collector when Close returns.
func TestCollector(t *testing.T) {
	f := newFake(t)
	e, err := Open(context.Background(), Options{OTLP: f.URL, Version: "1.2.3", Getenv: env(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	measure(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(f.names)
	want := []string{"metric a.counter", "service.name codemode-supervisor", "service.version 1.2.3", "span a.span"}
	if d := cmp.Diff(want, f.names); d != "" {
		t.Error(d)
	}
}

// A collector that refuses costs a warning in the log and an error at the end; one that hangs
// holds the end of the program up for two seconds, not for ever.
func TestCollectorFails(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"refuses": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.answer = answer
			var log bytes.Buffer
			e, err := Open(context.Background(), Options{OTLP: f.URL, Getenv: env(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			measure(t, e)
			err = e.Close()
			for _, what := range []string{"metrics", "spans"} {
				if err == nil || !strings.Contains(err.Error(), "the last "+what+" did not reach their collector") {
					t.Errorf("%s: got %v", what, err)
				}
			}
			if name == "refuses" && strings.Count(log.String(), "does not take") != 2 {
				t.Errorf("the log has %s", &log)
			}
		})
	}
}

func TestCollectors(t *testing.T) {
	on := func(url string) collector { return collector{true, url} }
	for _, c := range []struct {
		name            string
		o               Options
		traces, metrics collector
		err             string
	}{
		{name: "nothing", o: Options{Getenv: env()}},
		{name: "flag", o: Options{OTLP: "https://c:4318/base/", Getenv: env("OTEL_SDK_DISABLED", "true")},
			traces: on("https://c:4318/base/v1/traces"), metrics: on("https://c:4318/base/v1/metrics")},
		{name: "environment", o: Options{Getenv: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")}, traces: on(""), metrics: on("")},
		{name: "spans only", o: Options{Getenv: env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c")}, traces: on("")},
		{name: "no spans", o: Options{Getenv: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c", "OTEL_TRACES_EXPORTER", "none")}, metrics: on("")},
		{name: "disabled", o: Options{Getenv: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c", "OTEL_SDK_DISABLED", "true")}},
		{name: "no URL", o: Options{OTLP: "localhost:4318"}, err: "http://localhost:4318"},
		{name: "secrets", o: Options{OTLP: "http://user:hunter2@c"}, err: "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			traces, metrics, err := c.o.collectors()
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "hunter2") {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || traces != c.traces || metrics != c.metrics {
				t.Errorf("got %+v, %+v, %v", traces, metrics, err)
			}
		})
	}
}

func TestNothing(t *testing.T) {
	e, err := Open(context.Background(), Options{Getenv: env()})
	if e != nil || err != nil || e.Meter() != nil || e.Tracer() != nil || e.Address() != "" || e.Close() != nil {
		t.Errorf("got %v, %v", e, err)
	}
}

// SPEC 18.3: a page for Prometheus, on the loopback interface unless somebody says otherwise.
func TestPage(t *testing.T) {
	e, err := Open(context.Background(), Options{Metrics: ":0", Getenv: env(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if !strings.HasPrefix(e.Address(), "http://127.0.0.1:") || e.Tracer() != nil {
		t.Errorf("the page is at %s, and the tracer %v", e.Address(), e.Tracer())
	}
	counter, err := e.Meter().Meter("test").Int64Counter("a.counter")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(context.Background(), 7)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	status := func(method, url string) (int, string) {
		t.Helper()
		request, err := http.NewRequest(method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if code, body := status("GET", e.Address()); code != 200 || !strings.Contains(body, "a_counter_total 7") {
		t.Errorf("got %d %s", code, body)
	}
	if code, _ := status("POST", e.Address()); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
	if code, _ := status("GET", strings.TrimSuffix(e.Address(), "metrics")+"debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("another page: %d", code)
	}
}

func TestPageOfSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	e, err := Open(context.Background(), Options{Metrics: "unix:" + path, Getenv: env(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", path)
	}}}
	response, err := client.Get("http://metrics/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestPageOfNothing(t *testing.T) {
	for _, address := range []string{"9464", "256.0.0.1:1", "unix:/nowhere/at/all"} {
		if e, err := Open(context.Background(), Options{Metrics: address, Getenv: env(), Logger: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%s: got a page at %s", address, e.Address())
			e.Close()
		}
	}
}
