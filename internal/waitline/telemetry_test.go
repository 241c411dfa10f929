package waitline

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
)

// TestNothingIsAllocatedForMetricsWithoutAProvider uses OpenTelemetry's global provider, as a
// program has it that sets none.
func TestNothingIsAllocatedForMetricsWithoutAProvider(t *testing.T) {
	p := otel.GetMeterProvider()
	tel := &Telemetry{kind: "mutex", waits: metrics.LockWait.Histogram(p),
		holds:   metrics.LockHold.Histogram(p),
		waiting: metrics.LockWaiting.UpDown(p), holdMetric: metrics.LockHeld.UpDown(p)}
	require.Zero(t, testing.AllocsPerRun(100, func() { tel.StartHold().End(context.Canceled, context.Canceled, nil) }),
		"hold")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tel.measureWait(t.Context(), tel.countWait(t.Context()), time.Time{}, "granted")
	}), "wait")
}

// BenchmarkTelemetryOfALock measures what telemetry adds to one lock and its release, without the
// requests: the span and metrics of the wait, and the metrics of the hold.
func BenchmarkTelemetryOfALock(b *testing.B) {
	for _, with := range []struct {
		name   string
		meters metric.MeterProvider
	}{{"no provider", otel.GetMeterProvider()},
		{"reader in memory", sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))}} {
		b.Run(with.name, func(b *testing.B) {
			p := with.meters
			tel := &Telemetry{kind: "mutex", tracer: otel.GetTracerProvider().Tracer(module),
				propagators: otel.GetTextMapPropagator(),
				waits:       metrics.LockWait.Histogram(p), holds: metrics.LockHold.Histogram(p),
				waiting: metrics.LockWaiting.UpDown(p), holdMetric: metrics.LockHeld.UpDown(p),
				levels: byKind["mutex"]}
			b.ReportAllocs()
			for b.Loop() {
				_, w := tel.StartWait(b.Context(), "acquire")
				w.End(1, nil)
				tel.StartHold().End(context.Canceled, context.Canceled, nil)
			}
		})
	}
}

// anyBytes is a propagator whose trace context is not text.
type anyBytes struct{ propagation.TextMapPropagator }

func (anyBytes) Inject(_ context.Context, c propagation.TextMapCarrier) { c.Set("k", "a\xff") }

// TestATraceContextIsStoredAsText: JSON would change other bytes, and a record that is compared
// with what was stored would differ.
func TestATraceContextIsStoredAsText(t *testing.T) {
	client, err := framework.New(framework.Config{Servers: []string{"127.0.0.1:1"}},
		framework.WithPropagators(anyBytes{}))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "a\uFFFD"}, TraceContext(t.Context(), client))
	require.NoError(t, client.Close(t.Context()))
}
