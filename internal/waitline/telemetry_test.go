package waitline

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"

	"github.com/lockstep-go/lockstep/internal/metrics"
)

// TestNothingIsAllocatedForMetricsWithoutAProvider: with OpenTelemetry's globals, as a program has them that sets none.
func TestNothingIsAllocatedForMetricsWithoutAProvider(t *testing.T) {
	p := otel.GetMeterProvider()
	tel := &Telemetry{path: "/a", kind: "mutex", waits: metrics.LockWait.Histogram(p), holds: metrics.LockHold.Histogram(p),
		waiting: metrics.LockWaiting.UpDown(p), held: metrics.LockHeld.UpDown(p)}
	require.Zero(t, testing.AllocsPerRun(100, func() { tel.StartHold().End(context.Canceled, context.Canceled, nil) }), "hold")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tel.measureWait(t.Context(), tel.countWait(t.Context()), time.Time{}, "granted")
	}), "wait")
}
