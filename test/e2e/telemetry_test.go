package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/openclaw/codemode-supervisor/supervisor"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
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
