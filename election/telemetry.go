package election

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/lockstep-go/lockstep/election"

// trace begins a span that lasts until the candidate leads or has given up. The wait itself is measured
// by package locks, as that of the kind latch-.
func (e *Election) trace(ctx context.Context) (context.Context, func(*Term, error)) {
	ctx, span := e.client.TracerProvider().Tracer(scope).Start(ctx, "lockstep.election.campaign",
		trace.WithAttributes(attribute.String("lockstep.path", e.path), attribute.String("lockstep.election.id", e.id)))
	return ctx, func(term *Term, err error) {
		outcome := outcomeOf(err)
		span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		if term != nil {
			span.SetAttributes(attribute.Int64("lockstep.token", term.Token()))
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
