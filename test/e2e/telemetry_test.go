package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/openclaw/codemode-supervisor/supervisor"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// SPEC 18.2, 18.3: a cell with a real worker is traced over a yield, and what it says, calls,
// gets and throws is in no metric and no span.
func TestTelemetryHoldsNoContent(t *testing.T) {
	const secret = "hunter2"
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	s := embed(t, supervisor.Options{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
	})
	res := s.Exec(context.Background(), supervisor.Program{
		Code: `
			const got = await tools.call("ask", { password: "hunter2" });
			text(got);
			await yield_control("hunter2");
			await tools.call("hunter2", {}).catch(() => {});
			await tools.call("fail", {}).catch(() => {});
			throw new Error("hunter2");`,
		Catalog: tools(t, "ask", "fail"),
		Executor: supervisor.ExecutorFunc(func(_ context.Context, call *supervisor.Call) (json.RawMessage, error) {
			if call.Tool.Name == "fail" {
				return nil, &supervisor.ToolError{Message: secret, Code: secret}
			}
			return call.Input, nil
		}),
	})
	if res.Status != supervisor.Waiting {
		t.Fatalf("got %s", res.JSON())
	}
	res = s.Wait(context.Background(), supervisor.WaitRequest{RunID: res.RunID})
	if res.Phase != supervisor.PhaseGuest || !strings.Contains(res.Error, secret) {
		t.Fatalf("got %s", res.JSON())
	}
	// The run's last metrics come before Close ends them.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		t.Fatal(err)
	}
	exported := fmt.Sprintf("%+v", data)
	stubs, children := tracetest.SpanStubsFromReadOnlySpans(spans.Ended()), 0
	for _, span := range stubs {
		exported += fmt.Sprintf("%+v", span)
		for _, parent := range stubs {
			if span.Name == "codemode.call" && parent.Name == "codemode.exec" && span.Parent.SpanID() == parent.SpanContext.SpanID() {
				children++
			}
		}
	}
	if children != 3 {
		t.Errorf("%d calls are children of the exec, want 3", children)
	}
	for _, name := range []string{"codemode.run.ended", "codemode.stage.duration", "restore", "guest_exception", "unknown_tool"} {
		if !strings.Contains(exported, name) {
			t.Errorf("nothing exported has %s", name)
		}
	}
	if strings.Contains(exported, secret) {
		t.Errorf("the secret is in %s", exported)
	}
}

// SPEC 18.3: the program sends spans by OTLP, a nested call as a child of its exec, and nothing
// that a cell handles.
func TestProgramSendsTelemetry(t *testing.T) {
	var mu sync.Mutex
	var spans []*tracepb.Span
	var bodies bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies.Write(body)
		var m collectorpb.ExportTraceServiceRequest
		if r.URL.Path == "/v1/traces" {
			if err := proto.Unmarshal(body, &m); err != nil {
				t.Error(err)
			}
			for _, of := range m.ResourceSpans {
				for _, scope := range of.ScopeSpans {
					spans = append(spans, scope.Spans...)
				}
			}
		}
	}))
	defer collector.Close()
	tools := filepath.Join(t.TempDir(), "tools.json5")
	if err := os.WriteFile(tools, []byte(`{tools: [{name: "ask", echo: true}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(binaries(t), "supervisor"), "run", "--otlp", collector.URL, "--tools", tools, "-e", `(await tools.ask({password: "hunter2"})).password`)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome(t), "OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_SDK_DISABLED=")
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "hunter2" {
		t.Fatalf("%v: %s", err, out)
	}
	mu.Lock()
	defer mu.Unlock()
	named := map[string]*tracepb.Span{}
	for _, s := range spans {
		named[s.Name] = s
	}
	call, parent := named["codemode.call"], named["codemode.exec"]
	if call == nil || parent == nil || !bytes.Equal(call.ParentSpanId, parent.SpanId) {
		t.Errorf("the call's span is %v, the exec's %v", call, parent)
	}
	if !bytes.Contains(bodies.Bytes(), []byte("codemode.run.ended")) {
		t.Error("no metrics came")
	}
	if bytes.Contains(bodies.Bytes(), []byte("hunter2")) {
		t.Error("the secret was sent")
	}
}
