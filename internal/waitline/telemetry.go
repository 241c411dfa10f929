package waitline

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

// scope is the package that users see in their telemetry.
const scope = "github.com/lockstep-go/lockstep/locks"

// Telemetry traces and measures the waits for one lock or election.
type Telemetry struct {
	path, kind string
	tracer     trace.Tracer
	waits      metric.Float64Histogram
}

// NewTelemetry returns the telemetry of what is at path. kind is the lock's kind in words.
func NewTelemetry(c *framework.Client, path, kind string) *Telemetry {
	t := &Telemetry{path: path, kind: kind, tracer: c.TracerProvider().Tracer(scope)}
	var err error
	t.waits, err = c.MeterProvider().Meter(scope).Float64Histogram("lockstep.lock.wait.duration",
		metric.WithUnit("s"), metric.WithDescription("Time from asking for a lock to being granted it or not"))
	if err != nil {
		otel.Handle(err)
	}
	return t
}

// StartWait starts a span that lasts until end is called: the lock was granted with a token, or err says why not. A refusal is an outcome,
// not an error. The returned context belongs to the span; CallerContext returns the original ctx.
func (t *Telemetry) StartWait(ctx context.Context, op string) (_ context.Context, end func(token int64, err error)) {
	began := time.Now()
	within, span := t.tracer.Start(context.WithValue(ctx, callerKey{}, ctx), "lockstep.lock."+op,
		trace.WithAttributes(attribute.String("lockstep.path", t.path), attribute.String("lockstep.lock.kind", t.kind)))
	return within, func(token int64, err error) {
		outcome := outcomeOf(err)
		span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		if err == nil {
			span.SetAttributes(attribute.Int64("lockstep.token", token))
		}
		if outcome == "error" {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
		t.waits.Record(within, time.Since(began).Seconds(), metric.WithAttributes(
			attribute.String("lockstep.lock.kind", t.kind), attribute.String("lockstep.outcome", outcome)))
	}
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

// callerKey is the key of the caller's context in the context of the wait's span.
type callerKey struct{}

// CallerContext returns the context that StartWait was called with. A lease carries its values: the span ends when the lease begins.
func CallerContext(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
}

// TraceContext is the trace context to write into a node.
func TraceContext(ctx context.Context, client *framework.Client) map[string]string {
	c := propagation.MapCarrier{}
	client.Propagators().Inject(ctx, c)
	return c
}
