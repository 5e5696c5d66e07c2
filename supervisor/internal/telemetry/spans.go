package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// The keys that only spans have.
const (
	keyRun     = attribute.Key("codemode.run.id")
	keyTool    = attribute.Key("codemode.tool.id")
	keyCalls   = attribute.Key("codemode.calls")
	keyOmitted = attribute.Key("codemode.calls.omitted")
	keySpare   = attribute.Key("codemode.worker.spare")
)

// maxID bounds the ids of tools on spans, in bytes.
const maxID = 256

// Op is an exec or a wait that goes on.
type Op struct {
	t     *Recorder
	span  trace.Span
	began time.Time
	exec  bool
}

// Exec begins the span of an exec, a child of that in ctx.
func (t *Recorder) Exec(ctx context.Context) *Op {
	began := time.Now()
	return &Op{t, t.start(ctx, "codemode.exec", trace.WithTimestamp(began)), began, true}
}

// Wait begins the span of a wait, a child of that in ctx. The run's exec is linked to it when
// the run is known.
func (t *Recorder) Wait(ctx context.Context) *Op {
	began := time.Now()
	return &Op{t, t.start(ctx, "codemode.wait", trace.WithTimestamp(began)), began, false}
}

// start starts a span. It is never nil; a provider that does not give one is as good as none.
func (t *Recorder) start(ctx context.Context, name string, options ...trace.SpanStartOption) trace.Span {
	span := trace.SpanFromContext(context.Background()) // does nothing
	t.guard(func() {
		if _, got := t.tracer.Start(ctx, name, options...); got != nil {
			span = got
		}
	})
	return span
}

// Context is the place of the span in its trace.
func (o *Op) Context() (c trace.SpanContext) {
	o.t.guard(func() { c = o.span.SpanContext() })
	return c
}

// Of says which run it is, and which exec began that: a wait is linked to it.
func (o *Op) Of(runID string, exec trace.SpanContext) {
	o.later(func() {
		o.span.SetAttributes(keyRun.String(runID))
		if !o.exec && exec.IsValid() {
			o.span.AddLink(trace.Link{SpanContext: exec})
		}
	})
}

// Span records a part of it that is over: its name is that of the stage.
func (o *Op) Span(stage string, began time.Time, code string, spare bool) {
	ended := time.Now()
	o.later(func() {
		var attributes []attribute.KeyValue
		if stage == Start {
			attributes = append(attributes, keySpare.Bool(spare))
		}
		ctx := trace.ContextWithSpan(context.Background(), o.span)
		_, span := o.t.tracer.Start(ctx, "codemode."+stage, trace.WithTimestamp(began), trace.WithAttributes(attributes...))
		fail(span, code)
		span.End(trace.WithTimestamp(ended))
	})
}

// later queues what is done with the span, if anybody gets it.
func (o *Op) later(f func()) {
	if recording(o.t, o.span) {
		o.t.add(f)
	}
}

func recording(t *Recorder, span trace.Span) (yes bool) {
	if t.queue != nil { // which never becomes nil
		t.guard(func() { yes = span.IsRecording() })
	}
	return yes
}

// End ends it. calls are all nested calls of the run so far, omitted those without a span.
func (o *Op) End(out Outcome, calls, omitted int) {
	ended := time.Now()
	o.later(func() {
		o.span.SetAttributes(keyStatus.String(out.Status), keyCalls.Int(calls))
		if omitted > 0 {
			o.span.SetAttributes(keyOmitted.Int(omitted))
		}
		fail(o.span, out.Code)
		o.span.End(trace.WithTimestamp(ended))
	})
	o.t.count(func(_ context.Context, m *instruments) {
		h := m.wait
		if o.exec {
			h = m.exec
		}
		// With the span in the context a provider can keep it as an exemplar.
		h.Record(trace.ContextWithSpan(context.Background(), o.span), ended.Sub(o.began).Seconds(), metric.WithAttributes(out.labels()...))
	})
}

// fail marks a span as failed. The description stays empty: texts are content.
func fail(span trace.Span, code string) {
	if code != "" {
		span.SetAttributes(keyError.String(code))
		span.SetStatus(codes.Error, "")
	}
}

// Call is the span of a nested call.
type Call struct {
	t    *Recorder
	span trace.Span
}

// Call begins the span of a nested call: always a child of its run's exec, which may have ended
// by now (SPEC 18.3), and linked to the wait in which the call is made. A call that is not
// shown has no span. The context that it gives is ctx with the call's span, or else that of
// the exec, so that an executor's own spans find their place.
func (t *Recorder) Call(ctx context.Context, exec, during trace.SpanContext, shown bool) (context.Context, Call) {
	if exec.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, exec)
	}
	if !shown || t.queue == nil {
		return ctx, Call{t: t}
	}
	var links []trace.Link
	if during.IsValid() && !during.Equal(exec) {
		links = []trace.Link{{SpanContext: during}}
	}
	c := Call{t, t.start(ctx, "codemode.call", trace.WithLinks(links...))}
	return trace.ContextWithSpan(ctx, c.span), c
}

// End ends it. toolID and source are "" if the call named no tool; code is one of our own, or
// [Other].
func (c Call) End(state, toolID, source, code string) {
	if c.span == nil || !recording(c.t, c.span) {
		return
	}
	ended := time.Now()
	c.t.add(func() {
		c.span.SetAttributes(keyState.String(state))
		if toolID != "" {
			c.span.SetAttributes(keyTool.String(strings.ToValidUTF8(toolID[:min(len(toolID), maxID)], "")), keySource.String(source))
		}
		fail(c.span, code)
		c.span.End(trace.WithTimestamp(ended))
	})
}

// Place is a span's place in its trace, as the record of a parked run keeps it.
type Place struct {
	Trace, Span string // hexadecimal
	Flags       byte
	State       string `json:",omitempty"` // W3C tracestate
}

// PlaceOf gives nil for the place of no span.
func PlaceOf(c trace.SpanContext) *Place {
	if !c.IsValid() {
		return nil
	}
	return &Place{c.TraceID().String(), c.SpanID().String(), byte(c.TraceFlags()), c.TraceState().String()}
}

// Context gives the place back. One that cannot be read is none: a run goes on without its trace.
func (p *Place) Context() trace.SpanContext {
	if p == nil {
		return trace.SpanContext{}
	}
	traceID, err := trace.TraceIDFromHex(p.Trace)
	if err != nil {
		return trace.SpanContext{}
	}
	spanID, err := trace.SpanIDFromHex(p.Span)
	if err != nil {
		return trace.SpanContext{}
	}
	state, _ := trace.ParseTraceState(p.State)
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(p.Flags), TraceState: state, Remote: true})
}
