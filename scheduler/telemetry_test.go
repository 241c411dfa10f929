package scheduler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
)

func TestRunsAreTraced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		m := w.Member(t, "a", config,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
			framework.WithPropagators(propagation.TraceContext{}))
		s := New(m.Client, testPath)
		require.NoError(t, s.Add(Job{Name: "good", Spec: "* * * * *", Run: lasting(2 * time.Second)}))
		require.NoError(t, s.Add(Job{Name: "bad", Spec: "* * * * *",
			Run: func(context.Context, Run) error { panic("x") }}))
		require.NoError(t, s.Add(Job{Name: "slow", Spec: "*/30 * * * * *", Run: lasting(50 * time.Second)}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(85 * time.Second)
		cancel()
		require.NoError(t, <-done)
		synctest.Wait()

		outcomes := map[string]codes.Code{}
		var campaign trace.SpanContext
		for _, s := range spans.Ended() {
			if s.Name() == "lockstep.election.campaign" && !campaign.IsValid() {
				campaign = s.SpanContext()
			}
			if s.Name() == "lockstep.scheduler.run" {
				require.Len(t, s.Links(), 1, "to the campaign of the term")
				require.Equal(t, campaign.SpanID(), s.Links()[0].SpanContext.SpanID())
				require.False(t, s.Parent().IsValid(), "a trace of its own")
				for _, a := range s.Attributes() {
					if a.Key == "lockstep.job" {
						outcomes[a.Value.AsString()] = s.Status().Code
					}
				}
			}
		}
		require.Equal(t, map[string]codes.Code{testPath + "/good": codes.Unset, testPath + "/bad": codes.Error,
			testPath + "/slow": codes.Unset}, outcomes)

		var got metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &got))
		require.Contains(t, missedPoints(got),
			attribute.NewSet(attribute.String("lockstep.job", testPath+"/slow"),
				attribute.String("lockstep.reason", "overlap")))
	})
}

func missedPoints(got metricdata.ResourceMetrics) (out []attribute.Set) {
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "lockstep.scheduler.missed" {
				for _, p := range sum.DataPoints {
					out = append(out, p.Attributes)
				}
			}
		}
	}
	return out
}
