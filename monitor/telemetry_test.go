package monitor_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
)

// gauges returns a process's gauges, by name and the attributes except the root.
func gauges(t *testing.T, r *sdk.ManualReader) map[string]float64 {
	t.Helper()
	var found metricdata.ResourceMetrics
	require.NoError(t, r.Collect(t.Context(), &found))
	values := map[string]float64{}
	for _, scope := range found.ScopeMetrics {
		for _, m := range scope.Metrics {
			if g, ok := m.Data.(metricdata.Gauge[float64]); ok {
				for _, p := range g.DataPoints {
					name := m.Name
					for _, kv := range p.Attributes.ToSlice() {
						if kv.Key != attribute.Key("lockstep.root") {
							name += " " + kv.Value.AsString()
						}
					}
					values[name] = p.Value
				}
			}
		}
	}
	return values
}

// TestGauges: only the leader has them, and they name 20 paths at most.
func TestGauges(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		for n := range 25 {
			for c := range n + 2 {
				w.put(m, contender(fmt.Sprintf("/app/l%02d", n), c), "", framework.Ephemeral)
			}
		}
		q := queue.New(m.Client, "/app/mails", codec.Bytes())
		defer q.Close(t.Context())
		require.NoError(t, q.PutBatch(t.Context(), [][]byte{{1}, {2}}))
		d, err := q.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		_, err = q.Take(t.Context())
		require.NoError(t, err)
		first, second := sdk.NewManualReader(), sdk.NewManualReader()
		x := w.run(w.member("x", framework.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(first)))),
			monitor.WithoutProblems(monitor.ProblemHold))
		w.run(w.member("y", framework.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(second)))),
			monitor.WithoutProblems(monitor.ProblemHold))
		w.scans(2)
		values := gauges(t, first)
		require.Equal(t, 1.0, values["lockstep.monitor.up"])
		require.Equal(t, 15.0, values["lockstep.monitor.findings many waiters"])
		require.Contains(t, values, "lockstep.monitor.findings orphan")
		require.Equal(t, 25.0, values["lockstep.monitor.lock.waiters /app/l24"])
		require.Equal(t, 1.0+2+3+4+5, values["lockstep.monitor.lock.waiters other"])
		require.NotContains(t, values, "lockstep.monitor.lock.waiters /app/l04")
		require.Equal(t, 2.0, values["lockstep.monitor.queue.items /app/mails items"])
		require.GreaterOrEqual(t, values["lockstep.monitor.queue.oldest /app/mails"], 60.0)
		require.Equal(t, 1.0, values["lockstep.monitor.queue.attempts /app/mails"])
		require.GreaterOrEqual(t, values["lockstep.monitor.queue.held /app/mails"], 60.0)
		require.Contains(t, values, "lockstep.monitor.queue.attempts other")
		require.Less(t, values["lockstep.monitor.scan.requests"], 80.0)
		require.NotContains(t, gauges(t, second), "lockstep.monitor.up")
		require.NoError(t, w.Expire(x.Status().SessionID)) // it stands by from now on
		w.scans(1)
		require.Empty(t, gauges(t, first))
		require.Equal(t, 1.0, gauges(t, second)["lockstep.monitor.up"])
	})
}
