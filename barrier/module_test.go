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
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestModule(t *testing.T) {
	zk := zktest.Start(t)
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	var f *barrier.Factory
	app := fxtest.New(t, framework.Module, barrier.Module, framework.WaitForSession,
		fx.Supply(framework.Config{Servers: []string{addr}}), fx.Populate(&f))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := f.Double("/phase", 1).Enter(ctx)
	require.NoError(t, err)
	require.NoError(t, f.Gate("/gate").Wait(ctx))
	require.NoError(t, f.Latch("/latch", 1).CountDown(ctx, "x"))
	app.RequireStop()
	require.ErrorIs(t, r.Err(), framework.ErrClosed)
	require.Empty(t, zk.Children("/phase/in"), "the session was closed, not left to expire")
}

func TestWaitsAreTracedAndMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		m := w.Member(t, "a", config,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		b := barrier.NewDouble(m.Client, path, 1)
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
