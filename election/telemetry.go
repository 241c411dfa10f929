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
)

const scope = "github.com/lockstep-go/lockstep/election"

// telemetry is how the package is traced and measured.
type telemetry struct {
	tracer  trace.Tracer
	terms   metric.Float64Histogram
	leading metric.Int64UpDownCounter
}

func newTelemetry(c *framework.Client) telemetry {
	m := c.MeterProvider().Meter(scope)
	// An instrument that cannot be made is reported by the SDK and does nothing.
	terms, _ := m.Float64Histogram("lockstep.election.term.duration", metric.WithUnit("s"),
		metric.WithDescription("How long terms of this process have lasted, by why they ended."))
	leading, _ := m.Int64UpDownCounter("lockstep.election.leading", metric.WithUnit("{term}"),
		metric.WithDescription("Terms of this process that stand."))
	return telemetry{c.TracerProvider().Tracer(scope), terms, leading}
}

// campaign begins a span that lasts until the candidate leads or has given up. The wait itself is measured
// by package locks.
func (t telemetry) campaign(ctx context.Context, e *Election) (context.Context, func(*Term, error)) {
	ctx, span := t.tracer.Start(ctx, "lockstep.election.campaign",
		trace.WithAttributes(attribute.String("lockstep.path", e.path), attribute.String("lockstep.election.id", e.id)))
	return ctx, func(term *Term, err error) {
		outcome := outcomeOf(err)
		span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		if term != nil {
			span.SetAttributes(attribute.Int64("lockstep.token", term.Token()), attribute.Int64("lockstep.election.term", term.Number()))
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

// began and ended count a term.
func (t telemetry) began(*Term) { t.leading.Add(context.Background(), 1) }

func (t telemetry) ended(term *Term) {
	t.leading.Add(context.Background(), -1)
	t.terms.Record(context.Background(), time.Since(term.began).Seconds(),
		metric.WithAttributes(attribute.String("lockstep.reason", reasonOf(term.Err()))))
}

// reasonOf is a few words, whatever the error's text is.
func reasonOf(err error) string {
	for _, r := range []struct {
		err  error
		says string
	}{
		{ErrResigned, "resigned"}, {ErrTransferred, "transferred"}, {ErrMaxTerm, "over"}, {ErrUnhealthy, "unhealthy"},
		{ErrDisconnected, "disconnected"}, {framework.ErrSessionLost, "session lost"}, {framework.ErrNodeGone, "node deleted"},
		{framework.ErrClosed, "closed"},
	} {
		if errors.Is(err, r.err) {
			return r.says
		}
	}
	return "other"
}
