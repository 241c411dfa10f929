package config_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/metricstest"
)

func TestChangesAndSetsAreMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		m := w.Member(t, "c", framework.Config{SessionTimeout: timeout},
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		v := w.limits(m)
		w.run(v)
		synctest.Wait() // here and below, until Run has seen what there is: it does not see what is replaced at once
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}))
		synctest.Wait()
		require.ErrorIs(t, v.Set(t.Context(), limits{Rate: 2}, config.WithExpectedVersion(7)), framework.ErrConflict)
		require.ErrorIs(t, v.Set(t.Context(), limits{Rate: -2}), framework.ErrBadValue)
		w.write("bad")
		synctest.Wait()
		require.NoError(t, v.Set(t.Context(), limits{Rate: 3}))
		synctest.Wait()
		records, err := v.History(t.Context())
		require.NoError(t, err)
		require.NoError(t, v.Rollback(t.Context(), records[2].Version))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, v.Set(ctx, limits{Rate: 4}), context.Canceled)
		synctest.Wait()
		got := metricstest.Read(t, reader)
		require.EqualValues(t, 3, got["lockstep.config.changes"])
		require.EqualValues(t, 2, got["lockstep.config.refused"], "no node, and bad bytes")
		for outcome, n := range map[string]int64{"written": 3, "conflict": 1, "refused": 1, "given up": 1} {
			require.EqualValues(t, n, got["lockstep.config.sets "+outcome], outcome)
		}
	})
}
