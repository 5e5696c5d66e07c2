// Package export brings what the supervisor measures to where an operator looks: to an
// OpenTelemetry collector by OTLP over HTTP, and to Prometheus by a page that it scrapes
// (SPEC 18.3; docs/telemetry.md). The library has the names, this package the ways out.
package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	bridge "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options say where telemetry goes. The zero value is nowhere, unless the environment names a
// collector.
type Options struct {
	// OTLP is the URL of a collector, such as http://localhost:4318; metrics go to
	// /v1/metrics below it, spans to /v1/traces. Empty means what the environment says:
	// OTEL_EXPORTER_OTLP_ENDPOINT, or _TRACES_ENDPOINT and _METRICS_ENDPOINT of that name;
	// headers, certificates and the rest come from there in any case, as the OpenTelemetry
	// specification has them. OTEL_SDK_DISABLED=true switches the environment off.
	OTLP string
	// Metrics is the address of a page for Prometheus: host:port, :port (of the loopback
	// interface) or unix:PATH. Empty means none.
	Metrics string
	// Version is the program's, for service.version.
	Version string
	// Getenv is os.Getenv.
	Getenv func(string) string
	// Logger is told of a collector that does not take what it is sent.
	Logger *slog.Logger
}

// flush is how long the end of the program waits for a collector.
const flush = 2 * time.Second

// Exporters are the ways out that are open. The owner must Close them, after the supervisor.
// A nil one has no way out.
type Exporters struct {
	meter   *sdkmetric.MeterProvider
	tracer  *sdktrace.TracerProvider
	page    *page
	metrics complaint
	spans   complaint
	cancel  context.CancelFunc // of exports that are under way
}

// Open opens what is asked for; nil, and no error, if that is nothing. It connects to nobody
// yet: a collector may come later. An error names what cannot be used.
func Open(ctx context.Context, o Options) (*Exporters, error) {
	traces, metrics, err := o.collectors()
	if err != nil {
		return nil, err
	}
	if !traces.on && !metrics.on && o.Metrics == "" {
		return nil, nil
	}
	closed, cancel := context.WithCancel(context.Background())
	e := &Exporters{cancel: cancel, metrics: complaint{what: "metrics", log: o.Logger, closed: closed}, spans: complaint{what: "spans", log: o.Logger, closed: closed}}
	// What the exporters tell the world at large they have told us.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Debug("OpenTelemetry", "error", err) }))
	who := resource.NewSchemaless(attribute.String("service.name", "codemode-supervisor"), attribute.String("service.version", o.Version))
	if r, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK()); err == nil { // its service.name wins
		if who, err = resource.Merge(who, r); err != nil {
			return nil, errors.Join(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err), e.Close())
		}
	}
	if traces.on {
		to, err := otlptracehttp.New(ctx, traces.trace()...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the collector for spans: %w", err), e.Close())
		}
		e.tracer = sdktrace.NewTracerProvider(sdktrace.WithResource(who), sdktrace.WithBatcher(loudSpans{to, &e.spans}))
	}
	readers := []sdkmetric.Option{sdkmetric.WithResource(who)}
	if metrics.on {
		to, err := otlpmetrichttp.New(ctx, metrics.metric()...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the collector for metrics: %w", err), e.Close())
		}
		readers = append(readers, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(loudMetrics{to, &e.metrics})))
	}
	if o.Metrics != "" {
		registry := prometheus.NewRegistry()
		reader, err := bridge.New(bridge.WithRegisterer(registry), bridge.WithoutScopeInfo())
		if err == nil {
			e.page, err = newPage(o.Metrics, registry)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the page for Prometheus: %w", err), e.Close())
		}
		readers = append(readers, sdkmetric.WithReader(reader))
	}
	if len(readers) > 1 {
		e.meter = sdkmetric.NewMeterProvider(readers...)
	}
	return e, nil
}

// Meter is for supervisor.Options; nil if no metrics are wanted.
func (e *Exporters) Meter() metric.MeterProvider {
	if e == nil || e.meter == nil {
		return nil
	}
	return e.meter
}

// Tracer is for supervisor.Options; nil if no spans are wanted.
func (e *Exporters) Tracer() trace.TracerProvider {
	if e == nil || e.tracer == nil {
		return nil
	}
	return e.tracer
}

// Address is where the page for Prometheus is; "" if there is none.
func (e *Exporters) Address() string {
	if e == nil || e.page == nil {
		return ""
	}
	return e.page.address()
}

// Close sends what is left, and waits two seconds for that at most. It says what was lost.
func (e *Exporters) Close() error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flush)
	defer cancel()
	var ends sync.WaitGroup
	var metrics, spans, page error
	if e.meter != nil {
		ends.Go(func() { metrics = e.metrics.end(ctx, e.meter.Shutdown) })
	}
	if e.tracer != nil { // side by side, or the second collector that hangs would have no time left
		ends.Go(func() { spans = e.spans.end(ctx, e.tracer.Shutdown) })
	}
	ends.Wait()
	e.cancel()
	if e.page != nil {
		page = e.page.close()
	}
	return errors.Join(metrics, spans, page)
}

// collector is where one signal goes.
type collector struct {
	on  bool
	url string // "" leaves it to the environment
}

// collectors tells where spans and metrics go.
func (o *Options) collectors() (traces, metrics collector, err error) {
	if o.OTLP != "" {
		u, err := url.Parse(o.OTLP)
		switch {
		case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
			return traces, metrics, fmt.Errorf("--otlp %q is no URL of a collector; write http://localhost:4318", o.OTLP)
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return traces, metrics, errors.New("--otlp takes a URL without user, query and fragment; credentials go into OTEL_EXPORTER_OTLP_HEADERS")
		}
		return collector{true, u.JoinPath("v1/traces").String()}, collector{true, u.JoinPath("v1/metrics").String()}, nil
	}
	if o.Getenv("OTEL_SDK_DISABLED") == "true" {
		return traces, metrics, nil
	}
	set := func(signal string) bool {
		const prefix = "OTEL_EXPORTER_OTLP_"
		return o.Getenv("OTEL_"+signal+"_EXPORTER") != "none" && (o.Getenv(prefix+"ENDPOINT") != "" || o.Getenv(prefix+signal+"_ENDPOINT") != "")
	}
	return collector{on: set("TRACES")}, collector{on: set("METRICS")}, nil
}

func (c collector) trace() (options []otlptracehttp.Option) {
	if c.url != "" {
		options = append(options, otlptracehttp.WithEndpointURL(c.url))
	}
	return options
}

func (c collector) metric() (options []otlpmetrichttp.Option) {
	if c.url != "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(c.url))
	}
	return options
}
