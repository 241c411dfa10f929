package scheduler

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
	"github.com/lockstep-go/lockstep/internal/znode"
)

const scope = "github.com/lockstep-go/lockstep/scheduler"

// telemetry is what a scheduler measures.
type telemetry struct {
	path        string
	tracer      trace.Tracer
	propagators propagation.TextMapPropagator
	durations   metric.Float64Histogram
	lags        metric.Float64Histogram
	misses      metric.Int64Counter
	stucks      metric.Int64Counter
	successes   metric.Float64Gauge
}

func newTelemetry(client *framework.Client, path string) telemetry {
	p := client.MeterProvider()
	return telemetry{path: path, tracer: client.TracerProvider().Tracer(scope), propagators: client.Propagators(),
		durations: metrics.RunDuration.Histogram(p), lags: metrics.StartLag.Histogram(p),
		misses: metrics.MissedTicks.Counter(p), stucks: metrics.StuckRuns.Counter(p),
		successes: metrics.LastSuccess.Gauge(p)}
}

// job returns the attribute that names a job. It is the job's path, which alerts print and the
// command line takes: the jobs of two schedulers may have the same name.
func (t telemetry) job(name string) attribute.KeyValue {
	return attribute.String(metrics.Job, jobPath(t.path, name))
}

// startRunSpan begins a run's span, which is the root of a trace. It links to the span of the
// campaign that has won the term: term is that campaign's trace context, or nil for a spread job.
// The function that it returns ends the span with the run's error, outcome and number of attempts.
func (t telemetry) startRunSpan(ctx context.Context, job string, r RunRecord, term map[string]string,
	now func() time.Time) (context.Context, func(error, Outcome, int)) {
	path, began := t.job(job), now()
	var links []trace.Link
	if campaign := trace.SpanContextFromContext(t.propagators.Extract(context.Background(),
		propagation.MapCarrier(term))); campaign.IsValid() {
		links = append(links, trace.Link{SpanContext: campaign})
	}
	ctx, span := t.tracer.Start(ctx, "lockstep.scheduler.run", trace.WithNewRoot(), trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("lockstep.path", t.path), path, attribute.String("lockstep.run", r.ID),
			attribute.String("lockstep.tick", r.Tick.Format("2006-01-02T15:04:05Z")),
			attribute.Int64("lockstep.token", r.Token)))
	if !r.Manual {
		t.lags.Record(ctx, max(0, began.Sub(r.Tick).Seconds()), metric.WithAttributes(path))
	}
	return ctx, func(err error, outcome Outcome, attempt int) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		how := attribute.String("lockstep.outcome", string(outcome))
		span.SetAttributes(how, attribute.Int("lockstep.attempt", attempt))
		span.End()
		if outcome == Succeeded {
			t.successes.Record(ctx, float64(now().UnixMilli())/1000, metric.WithAttributes(path))
		}
		t.durations.Record(ctx, now().Sub(began).Seconds(), metric.WithAttributes(path, how))
	}
}

// countMissed counts ticks that were not run.
func (t telemetry) countMissed(job string, g Gap) {
	t.misses.Add(context.Background(), g.Count, metric.WithAttributes(
		t.job(job), attribute.String(metrics.Reason, string(g.Reason))))
}

// countStuck counts a run that does not return.
func (t telemetry) countStuck(job string) {
	t.stucks.Add(context.Background(), 1, metric.WithAttributes(t.job(job)))
}

func jobPath(schedulerPath, job string) string {
	if _, last := znode.Split(schedulerPath); last == job {
		return schedulerPath
	}
	return znode.Join(schedulerPath, job)
}
