package workflow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/metricstest"
	"github.com/lockstep-go/lockstep/workflow"
)

// TestSpansOfARun: each call of the function links to who has started the run, and the steps are
// below it.
func TestSpansOfARun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recorder, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		m := w.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second},
			framework.WithTracerProvider(provider),
			framework.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
			framework.WithPropagators(propagation.TraceContext{}))
		flows := workflow.New(m.Client, runsPath)
		f := &worker{m, flows, t, func() {}, func() {}, make(chan error, 1)}
		calls := 0
		f.work(newFunction("order", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			if calls++; calls == 1 {
				return 0, errors.New("boom")
			}
			if err := run.Do(ctx, "pay", func(context.Context, workflow.Key) error { return nil }); err != nil {
				return 0, err
			}
			return workflow.Await[int](ctx, run, "approved", 0)
		}))
		ctx, span := provider.Tracer("test").Start(t.Context(), "starter")
		require.NoError(t, f.Start(ctx, "order", "x", 1))
		span.End()
		time.Sleep(time.Minute)
		require.NoError(t, f.Signal(t.Context(), "x", "approved", 1))
		f.await("x", workflow.Done)
		f.stop()
		require.NoError(t, flows.Close(t.Context()))

		var outcomes []string
		for _, s := range recorder.Ended() {
			attributes := map[string]string{}
			for _, a := range s.Attributes() {
				attributes[string(a.Key)] = a.Value.String()
			}
			switch s.Name() {
			case "lockstep.workflow.run":
				require.Len(t, s.Links(), 1)
				require.Equal(t, span.SpanContext().SpanID(), s.Links()[0].SpanContext.SpanID())
				require.Equal(t, "order", attributes["lockstep.workflow.kind"])
				outcomes = append(outcomes, attributes["lockstep.outcome"])
			case "lockstep.workflow.step":
				require.Equal(t, "pay", attributes["lockstep.workflow.step"])
				require.Equal(t, "recorded", attributes["lockstep.outcome"])
			}
		}
		require.Equal(t, []string{"retried", "waiting", "done"}, outcomes)
		measured := metricstest.Read(t, reader)
		require.EqualValues(t, 1, measured["lockstep.workflow.execution.duration done order"], measured)
		require.EqualValues(t, 1, measured["lockstep.workflow.step.duration recorded"], measured)
	})
}
