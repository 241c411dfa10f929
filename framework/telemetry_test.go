package framework

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestNothingIsAllocatedForMetricsWithoutAProvider: with OpenTelemetry's globals, as a program has
// them that sets none.
func TestNothingIsAllocatedForMetricsWithoutAProvider(t *testing.T) {
	tel := newTelemetry()
	for name, measure := range map[string]func(){
		"request":        func() { tel.countRequest(wire.OpCreate, link.Reply{}) },
		"proof of life":  func() { tel.heartbeatEnded(time.Second, ErrSuspended) },
		"lease extended": func() { tel.leaseExtended(time.Second) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, measure), name)
	}
}

func TestRequestsAreCountedByOutcome(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	tel := newTelemetry()
	tel.useMeters(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	for _, r := range []link.Reply{{}, {Code: wire.NoNode}, {Code: wire.ThrottledOp}, {Err: link.ErrDown},
		{Err: link.ErrTooLong}, {Err: link.ErrNotSent}} {
		tel.countRequest(wire.OpCreate, r)
	}
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	outcomes := map[string]int64{}
	for _, m := range got.ScopeMetrics[0].Metrics {
		require.Equal(t, "lockstep.requests", m.Name)
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			operation, _ := p.Attributes.Value("lockstep.operation")
			outcome, _ := p.Attributes.Value("lockstep.outcome")
			outcomes[operation.AsString()+" "+outcome.AsString()] = p.Value
		}
	}
	require.Equal(t, map[string]int64{"create answered": 1, "create refused": 2, "create overloaded": 1,
		"create lost": 1, "create not sent": 1}, outcomes)
}

// BenchmarkTelemetryOfARequest is what one request pays for telemetry.
func BenchmarkTelemetryOfARequest(b *testing.B) {
	for name, meters := range map[string]metric.MeterProvider{
		"no provider":      otel.GetMeterProvider(),
		"reader in memory": sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
	} {
		b.Run(name, func(b *testing.B) {
			tel := newTelemetry()
			tel.useMeters(meters)
			b.ReportAllocs()
			for b.Loop() {
				tel.countRequest(wire.OpCreate, link.Reply{})
			}
		})
	}
}
