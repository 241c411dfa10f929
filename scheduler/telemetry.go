package scheduler

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
)

const scope = "github.com/lockstep-go/lockstep/scheduler"

// telemetry is what a scheduler measures.
type telemetry struct {
	path      string
	tracer    trace.Tracer
	durations metric.Float64Histogram
	lags      metric.Float64Histogram
	misses    metric.Int64Counter
	stucks    metric.Int64Counter
}

func newTelemetry(client *framework.Client, path string) telemetry {
	m := client.MeterProvider().Meter(scope)
	t := telemetry{path: path, tracer: client.TracerProvider().Tracer(scope)}
	var errs [4]error
	t.durations, errs[0] = m.Float64Histogram("lockstep.scheduler.run.duration",
		metric.WithUnit("s"), metric.WithDescription("Time that runs of jobs took"))
	t.lags, errs[1] = m.Float64Histogram("lockstep.scheduler.start.lag",
		metric.WithUnit("s"), metric.WithDescription("Time from a tick to the start of its run"))
	t.misses, errs[2] = m.Int64Counter("lockstep.scheduler.missed",
		metric.WithUnit("{tick}"), metric.WithDescription("Ticks that were due and not run"))
	t.stucks, errs[3] = m.Int64Counter("lockstep.scheduler.stuck",
		metric.WithUnit("{run}"), metric.WithDescription("Runs that did not return in time after their contexts' end"))
	for _, err := range errs {
		if err != nil {
			otel.Handle(err)
		}
	}
	return t
}

// startRun begins a run's span, the root of a trace. The function that it returns ends the span with the run's error, outcome and
// number of attempts.
func (t telemetry) startRun(ctx context.Context, job string, r RunRecord, now func() time.Time) (context.Context, func(error, Outcome, int)) {
	name, began := attribute.String("lockstep.job", job), now()
	ctx, span := t.tracer.Start(ctx, "lockstep.scheduler.run", trace.WithNewRoot(),
		trace.WithAttributes(attribute.String("lockstep.path", t.path), name, attribute.String("lockstep.run", r.ID),
			attribute.String("lockstep.tick", r.Tick.Format("2006-01-02T15:04:05Z")), attribute.Int64("lockstep.token", r.Token)))
	if !r.Manual {
		t.lags.Record(ctx, max(0, began.Sub(r.Tick).Seconds()), metric.WithAttributes(name))
	}
	return ctx, func(err error, outcome Outcome, attempt int) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		how := attribute.String("lockstep.outcome", string(outcome))
		span.SetAttributes(how, attribute.Int("lockstep.attempt", attempt))
		span.End()
		t.durations.Record(ctx, now().Sub(began).Seconds(), metric.WithAttributes(name, how))
	}
}

// missed counts ticks that were not run.
func (t telemetry) missed(job string, g Gap) {
	t.misses.Add(context.Background(), g.Count, metric.WithAttributes(
		attribute.String("lockstep.job", job), attribute.String("lockstep.reason", string(g.Reason))))
}

// stuck counts a run that does not return.
func (t telemetry) stuck(job string) {
	t.stucks.Add(context.Background(), 1, metric.WithAttributes(attribute.String("lockstep.job", job)))
}
