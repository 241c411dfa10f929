package election

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
	"github.com/lockstep-go/lockstep/locks"
)

const scope = "github.com/lockstep-go/lockstep/election"

// telemetry traces and measures an election.
type telemetry struct {
	tracer  trace.Tracer
	terms   metric.Float64Histogram
	leading metric.Int64UpDownCounter
	level   metric.MeasurementOption // of leading
}

func newTelemetry(c *framework.Client, path string) telemetry {
	p := c.MeterProvider()
	return telemetry{c.TracerProvider().Tracer(scope), metrics.TermDuration.Histogram(p), metrics.Leading.UpDown(p),
		metrics.PathsOf(c).With(path)}
}

// startCampaign starts the span of a campaign. It lasts until end is called, when the candidate
// leads or its campaign has failed. Package waitline measures the wait in line.
func (t telemetry) startCampaign(ctx context.Context, path,
	id string) (within context.Context, end func(token, number int64, err error)) {
	ctx, span := t.tracer.Start(ctx, "lockstep.election.campaign",
		trace.WithAttributes(attribute.String("lockstep.path", path), attribute.String("lockstep.election.id", id)))
	return ctx, func(token, number int64, err error) {
		outcome := outcomeOf(err)
		span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		if err == nil {
			span.SetAttributes(attribute.Int64("lockstep.token", token),
				attribute.Int64("lockstep.election.term", number))
		}
		if outcome == "error" {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "elected"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given up"
	}
	return "error"
}

// startTerm counts a term that began at a time. Call ended once, with the reason of the term's end.
func (t telemetry) startTerm(began time.Time) (ended func(reason error)) {
	t.leading.Add(context.Background(), 1, t.level)
	return func(reason error) {
		t.leading.Add(context.Background(), -1, t.level)
		t.terms.Record(context.Background(), time.Since(began).Seconds(),
			metric.WithAttributes(attribute.String(metrics.Reason, reasonOf(reason))))
	}
}

// reasonOf names the reason why a term ended, for a metric.
func reasonOf(err error) string {
	for _, r := range []struct {
		err  error
		says string
	}{
		{locks.ErrReleased, "resigned"}, {ErrTransferred, "transferred"}, {errMaxTerm, "over"},
		{ErrUnhealthy, "unhealthy"},
		{ErrDisconnected, "disconnected"}, {framework.ErrSessionLost, "session lost"},
		{framework.ErrNodeGone, "node deleted"},
		{framework.ErrClosed, "closed"},
	} {
		if errors.Is(err, r.err) {
			return r.says
		}
	}
	return "other"
}
