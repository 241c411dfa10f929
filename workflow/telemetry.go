package workflow

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
)

const scope = "github.com/lockstep-go/lockstep/workflow"

// telemetry is what ledgers and runs measure.
type telemetry struct {
	tracer      trace.Tracer
	propagators propagation.TextMapPropagator
	executions  metric.Float64Histogram
	steps       metric.Float64Histogram
}

func newTelemetry(c *framework.Client) telemetry {
	p := c.MeterProvider()
	return telemetry{tracer: c.TracerProvider().Tracer(scope), propagators: c.Propagators(),
		executions: metrics.WorkflowExecutions.Histogram(p), steps: metrics.WorkflowSteps.Histogram(p)}
}

// traceContext is the trace context of the caller of Start, for the run's record.
func (t telemetry) traceContext(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	t.propagators.Inject(ctx, carrier)
	return carrier
}

// startExecution begins the span of one call of a run's function, which links to the span of Start.
// The function that it returns ends the span.
func (t telemetry) startExecution(ctx context.Context, path, kind string, starter map[string]string,
	token int64) (context.Context, func(outcome string, err error)) {
	began, name := time.Now(), attribute.String(metrics.WorkflowKind, kind)
	var links []trace.Link
	if started := trace.SpanContextFromContext(t.propagators.Extract(context.Background(),
		propagation.MapCarrier(starter))); started.IsValid() {
		links = append(links, trace.Link{SpanContext: started})
	}
	ctx, span := t.tracer.Start(ctx, "lockstep.workflow.run", trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("lockstep.path", path), name, attribute.Int64("lockstep.token", token)))
	return ctx, func(outcome string, err error) {
		how := attribute.String(metrics.Outcome, outcome)
		if err != nil && !errors.Is(err, ErrWaiting) {
			span.SetStatus(codes.Error, err.Error())
		}
		span.SetAttributes(how)
		span.End()
		t.executions.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(name, how))
	}
}

// startStep begins the span of a step that is run, with all its attempts and its record. The
// function that it returns ends the span.
func (t telemetry) startStep(ctx context.Context, path, step string, token int64) (context.Context, func(error)) {
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, "lockstep.workflow.step",
		trace.WithAttributes(attribute.String("lockstep.path", path), attribute.String("lockstep.workflow.step", step),
			attribute.Int64("lockstep.token", token)))
	return ctx, func(err error) {
		outcome := "recorded"
		switch {
		case errors.Is(err, ErrEnded):
			outcome = "lost"
		case err != nil:
			outcome = "failed"
		}
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		how := attribute.String(metrics.Outcome, outcome)
		span.SetAttributes(how)
		span.End()
		t.steps.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(how))
	}
}
