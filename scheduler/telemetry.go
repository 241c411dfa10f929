package scheduler

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/lockstep-go/lockstep/scheduler"

// trace begins a run's span, the root of a trace, which lasts until the run has ended.
func (s *Scheduler) trace(ctx context.Context, run Run) (context.Context, func(error)) {
	began := s.now()
	ctx, span := s.client.TracerProvider().Tracer(scope).Start(ctx, "lockstep.scheduler.run", trace.WithNewRoot(),
		trace.WithAttributes(attribute.String("lockstep.path", s.path), attribute.String("lockstep.job", run.Job),
			attribute.String("lockstep.run", run.ID), attribute.String("lockstep.tick", run.Tick.Format("2006-01-02T15:04:05Z")),
			attribute.Int64("lockstep.token", run.Token)))
	return ctx, func(err error) {
		outcome := "succeeded"
		if err != nil {
			outcome = "failed"
			span.SetStatus(codes.Error, err.Error())
		}
		span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		span.End()
		s.measure(ctx, run, s.now().Sub(began).Seconds(), outcome)
	}
}

func (s *Scheduler) measure(ctx context.Context, run Run, seconds float64, outcome string) {
	h, err := s.client.MeterProvider().Meter(scope).Float64Histogram("lockstep.scheduler.run.duration",
		metric.WithUnit("s"), metric.WithDescription("Time that runs of jobs took"))
	if err != nil {
		otel.Handle(err)
		return
	}
	h.Record(ctx, seconds, metric.WithAttributes(
		attribute.String("lockstep.job", run.Job), attribute.String("lockstep.outcome", outcome)))
}

// countMissed counts ticks that were not run.
func (d *duty) countMissed(g Gap) {
	c, err := d.client.MeterProvider().Meter(scope).Int64Counter("lockstep.scheduler.missed",
		metric.WithUnit("{tick}"), metric.WithDescription("Ticks that were due and not run"))
	if err != nil {
		otel.Handle(err)
		return
	}
	c.Add(context.Background(), g.Count, metric.WithAttributes(
		attribute.String("lockstep.job", d.job.Name), attribute.String("lockstep.reason", string(g.Reason))))
}
