package locks

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
)

const scope = "github.com/lockstep-go/lockstep/locks"

// telemetry is a line's tracer and instruments, made once.
type telemetry struct {
	tracer trace.Tracer
	waits  metric.Float64Histogram
}

func newTelemetry(c *framework.Client) telemetry {
	t := telemetry{tracer: c.TracerProvider().Tracer(scope)}
	var err error
	t.waits, err = c.MeterProvider().Meter(scope).Float64Histogram("lockstep.lock.wait.duration",
		metric.WithUnit("s"), metric.WithDescription("Time from asking for a lock to being granted it or not"))
	if err != nil {
		otel.Handle(err)
	}
	return t
}

// startSpan begins a span that lasts until the lock is granted or not. Being refused is an outcome, not
// an error. A lease carries the values of the context given, not the span.
func (l *Line) startSpan(ctx context.Context, op string) (context.Context, func(*Lease, error)) {
	began := time.Now()
	ctx, span := l.tel.tracer.Start(context.WithValue(ctx, callerKey{}, ctx), "lockstep.lock."+op,
		trace.WithAttributes(attribute.String("lockstep.path", l.name), attribute.String("lockstep.lock.kind", l.label)))
	return ctx, func(lease *Lease, err error) {
		outcome := outcomeOf(err)
		span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		if lease != nil {
			span.SetAttributes(attribute.Int64("lockstep.token", lease.token))
		}
		if outcome == "error" {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
		l.recordAcquire(ctx, time.Since(began), outcome)
	}
}

func (l *Line) recordAcquire(ctx context.Context, waited time.Duration, outcome string) {
	l.tel.waits.Record(ctx, waited.Seconds(), metric.WithAttributes(
		attribute.String("lockstep.lock.kind", l.label), attribute.String("lockstep.outcome", outcome)))
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "granted"
	case errors.Is(err, ErrNotAcquired):
		return "not acquired"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given up"
	}
	return "error"
}

// traceContext is the trace context to write into a node.
func (l *Line) traceContext(ctx context.Context) map[string]string {
	c := propagation.MapCarrier{}
	l.client.Propagators().Inject(ctx, c)
	return c
}
