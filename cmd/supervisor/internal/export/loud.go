package export

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// complaint tells the operator that a collector does not take what it is sent, and that it
// does so again: OpenTelemetry would tell a global handler, over and over.
type complaint struct {
	what   string
	log    *slog.Logger
	closed context.Context // ends when nobody waits for an export any more

	mu   sync.Mutex
	last error // guarded by mu: of the last export
}

func (c *complaint) note(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && c.last == nil:
		c.log.Warn("the OTLP collector does not take what it is sent, and that is lost", "what", c.what, "error", err)
	case err == nil && c.last != nil:
		c.log.Info("the OTLP collector takes what it is sent again", "what", c.what)
	}
	c.last = err
	return err
}

// end shuts a provider down, and says whether what it had left was lost.
func (c *complaint) end(ctx context.Context, shutdown func(context.Context) error) error {
	err := shutdown(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err = cmp.Or(c.last, err); err != nil {
		return fmt.Errorf("the last %s did not reach their collector: %w", c.what, err)
	}
	return nil
}

type loudSpans struct {
	sdktrace.SpanExporter
	complaint *complaint
}

func (l loudSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.complaint.closed, cancel)() // the processor has no end of its own
	return l.complaint.note(l.SpanExporter.ExportSpans(ctx, spans))
}

type loudMetrics struct {
	sdkmetric.Exporter
	complaint *complaint
}

func (l loudMetrics) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	return l.complaint.note(l.Exporter.Export(ctx, data))
}
