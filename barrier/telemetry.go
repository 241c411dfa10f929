package barrier

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
)

const scope = "github.com/lockstep-go/lockstep/barrier"

// telemetry is a barrier's tracer and instruments, made once.
type telemetry struct {
	tracer trace.Tracer
	waits  metric.Float64Histogram
	rounds metric.Int64Counter
}

func newTelemetry(c *framework.Client) telemetry {
	p := c.MeterProvider()
	return telemetry{tracer: c.TracerProvider().Tracer(scope), waits: metrics.BarrierWaits.Histogram(p),
		rounds: metrics.BarrierRounds.Counter(p)}
}

// countRound counts a round that a member has entered.
func (t telemetry) countRound() { t.rounds.Add(context.Background(), 1) }

// startWaitSpan begins the span of a wait. The function that it returns ends the span. A wait that
// ended with its context has the outcome "given up" and no error status.
func (t telemetry) startWaitSpan(ctx context.Context, op, path string) (context.Context, func(error)) {
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
			attribute.String(metrics.BarrierWait, op), attribute.String(metrics.Outcome, outcome)))
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
