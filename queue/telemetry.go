package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// The names follow OpenTelemetry's conventions for messaging, which are still in development. Only
// this file names these conventions.
const (
	scope  = "github.com/lockstep-go/lockstep/queue"
	system = "lockstep"
)

// telemetry is a queue's tracer and instruments.
type telemetry struct {
	client   *framework.Client
	path     string
	tracer   trace.Tracer
	takeOpts []trace.SpanStartOption // of the span of each call of Take
	sent     metric.Int64Counter
	consumed metric.Int64Counter
	settled  metric.Int64Counter
	duration metric.Float64Histogram
}

func newTelemetry(c *framework.Client, path string) telemetry {
	t := telemetry{client: c, path: path, tracer: c.TracerProvider().Tracer(scope)}
	t.takeOpts = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(takes.attrs...),
		trace.WithAttributes(attribute.String("messaging.destination.name", path))}
	p := c.MeterProvider()
	t.sent, t.consumed, t.settled = metrics.QueueSent.Counter(p), metrics.QueueConsumed.Counter(p),
		metrics.QueueSettled.Counter(p)
	t.duration = metrics.QueueDuration.Histogram(p)
	return t
}

// The attributes of spans and metrics. Sets of them are made once, since there are many items. Only
// spans have paths.
var (
	puts    = newOperation("put", "send")
	takes   = newOperation("take", "receive")
	settles = newOperation("settle", "settle")
	ends    = byOutcome(nil)
)

// tracedOperation is a kind of call, with the attributes of its spans and metrics.
type tracedOperation struct {
	attrs []attribute.KeyValue
	plain metric.MeasurementOption
	with  map[string]metric.MeasurementOption // by outcome
}

func newOperation(name, kind string) tracedOperation {
	attrs := []attribute.KeyValue{attribute.String("messaging.system", system),
		attribute.String("messaging.operation.name", name), attribute.String("messaging.operation.type", kind)}
	return tracedOperation{attrs, metrics.With(attrs...), byOutcome(attrs)}
}

// byOutcome are the attributes with each outcome.
func byOutcome(attrs []attribute.KeyValue) map[string]metric.MeasurementOption {
	with := map[string]metric.MeasurementOption{}
	for _, how := range allOutcomes {
		with[how] = metrics.With(append(slices.Clip(attrs), attribute.String("lockstep.outcome", how))...)
	}
	return with
}

// startPut begins a producer's span. It returns its trace context for the items, and a function
// that ends the span.
func (t *telemetry) startPut(ctx context.Context, items int) (map[string]string, func(error)) {
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, "put "+t.path, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(puts.attrs...),
		trace.WithAttributes(attribute.String("messaging.destination.name", t.path),
			attribute.Int("messaging.batch.message_count", items)))
	carrier := propagation.MapCarrier{}
	t.client.Propagators().Inject(ctx, carrier)
	return carrier, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
		with := puts.with[outcomeOf(err)]
		t.sent.Add(ctx, int64(items), with)
		t.duration.Record(ctx, time.Since(began).Seconds(), with)
	}
}

// takeSpan is the span of a call of Take.
type takeSpan struct{ span trace.Span }

// within returns ctx with the span, for spans of the item's work.
func (s takeSpan) within(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, s.span)
}

// recordTake makes a consumer's span, which began with the call of Take and links to the
// producer's. It returns the span, which has ended.
func (t *telemetry) recordTake(ctx context.Context, began time.Time, header queuelayout.Header, attempt int) takeSpan {
	producer := trace.SpanContextFromContext(t.client.Propagators().Extract(context.Background(),
		propagation.MapCarrier(header.Trace)))
	opts := append(slices.Clip(t.takeOpts), trace.WithTimestamp(began),
		trace.WithAttributes(attribute.Int("lockstep.queue.attempt", attempt)))
	if id := header.ID; id != "" {
		opts = append(opts, trace.WithAttributes(attribute.String("messaging.message.id", id)))
	}
	if producer.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: producer}))
	}
	_, span := t.tracer.Start(ctx, "take "+t.path, opts...)
	span.End()
	t.consumed.Add(ctx, 1, takes.plain)
	return takeSpan{span}
}

// recordEnd counts the end of a delivery.
func (t *telemetry) recordEnd(how string, began time.Time, err error) {
	if err != nil {
		how = outcomeOf(err)
	}
	ctx := context.Background()
	t.settled.Add(ctx, 1, ends[how])
	t.duration.Record(ctx, time.Since(began).Seconds(), settles.with[how])
}

// allOutcomes are the values of the attribute lockstep.outcome.
var allOutcomes = []string{"ack", "nack", "permanent", "return", "done", "lost", "settled before", "full", "duplicate",
	"refused", "unknown", "given up", "error"}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, errRefused):
		return "refused"
	case errors.Is(err, ErrLost):
		return "lost"
	case errors.Is(err, ErrSettled):
		return "settled before"
	case errors.Is(err, ErrFull):
		return "full"
	case errors.Is(err, ErrDuplicate):
		return "duplicate"
	case errors.Is(err, errUnknown):
		return "unknown"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given up"
	}
	return "error"
}
