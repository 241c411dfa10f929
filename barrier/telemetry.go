package barrier

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
)

const scope = "github.com/lockstep-go/lockstep/barrier"

// telemetry is a barrier's tracer and instruments, made once.
type telemetry struct {
	tracer trace.Tracer
	waits  metric.Float64Histogram
}

func newTelemetry(c *framework.Client) telemetry {
	t := telemetry{tracer: c.TracerProvider().Tracer(scope)}
	var err error
	t.waits, err = c.MeterProvider().Meter(scope).Float64Histogram("lockstep.barrier.wait.duration",
		metric.WithUnit("s"), metric.WithDescription("Time that a member waits for the others, a gate or a latch"))
	if err != nil {
		otel.Handle(err)
	}
	return t
}

// wait begins a span that lasts as long as a wait. Giving up is an outcome, not an error.
func (t telemetry) wait(ctx context.Context, op, path string) (context.Context, func(error)) {
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, "lockstep."+op, trace.WithAttributes(attribute.String("lockstep.path", path)))
	return ctx, func(err error) {
		outcome := outcomeOf(err)
		span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		if outcome == "error" {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
		t.waits.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(
			attribute.String("lockstep.barrier.wait", op), attribute.String("lockstep.outcome", outcome)))
	}
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "passed"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given up"
	}
	return "error"
}
