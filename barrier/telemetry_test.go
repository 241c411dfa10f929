package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
)

func TestWaitsAreTracedAndMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		m := w.Member(t, "a", config,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		b := barrier.NewDoubleBarrier(m.Client, path, 1)
		leaveAll(t, enterAll(t, b)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, barrier.NewLatch(m.Client, "/latch", 1).Wait(ctx))
		require.Error(t, barrier.NewGate(m.Client, "/latch").Wait(t.Context()))

		ended := spans.Ended()
		require.Len(t, ended, 4)
		for i, want := range []struct{ name, path, outcome string }{
			{"lockstep.barrier.enter", path, "passed"}, {"lockstep.barrier.leave", path, "passed"},
			{"lockstep.latch.wait", "/latch", "given up"}, {"lockstep.gate.wait", "/latch", "error"},
		} {
			require.Equal(t, want.name, ended[i].Name())
			require.Contains(t, ended[i].Attributes(), attribute.String("lockstep.path", want.path))
			require.Contains(t, ended[i].Attributes(), attribute.String("lockstep.outcome", want.outcome))
			require.Equal(t, want.outcome == "error", ended[i].Status().Code == codes.Error)
		}
		var got metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &got))
		names := map[string]string{}
		for _, s := range got.ScopeMetrics {
			for _, m := range s.Metrics {
				names[m.Name] = m.Unit
			}
		}
		require.Equal(t, "s", names["lockstep.barrier.wait.duration"])
	})
}
