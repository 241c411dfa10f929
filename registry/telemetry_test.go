package registry_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/metricstest"
	"github.com/lockstep-go/lockstep/registry"
)

// TestEjectionsAreCountedWithoutDurations: a view drops the histogram of the calls.
func TestEjectionsAreCountedWithoutDurations(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		drop := sdkmetric.NewView(sdkmetric.Instrument{Name: "lockstep.registry.call.duration"},
			sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}})
		m := w.Member(t, "a", framework.Config{SessionTimeout: timeout},
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader),
				sdkmetric.WithView(drop))))
		w.register(m, "one")
		pick(t, w.pool(m, registry.WithEjection(1, time.Minute)), 1, map[string]error{"one": errors.New("no")})
		got := metricstest.Read(t, reader)
		require.NotContains(t, got, "lockstep.registry.call.duration failed billing")
		require.EqualValues(t, 1, got["lockstep.registry.ejections "+base+"/billing"])
	})
}

func TestRegistrationsAndCallsAreMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		provider := framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		m := w.Member(t, "a", framework.Config{SessionTimeout: timeout}, provider)
		var sick atomic.Bool
		one := w.register(m, "one", registry.WithHealth(func(context.Context) error {
			if sick.Load() {
				return errors.New("no")
			}
			return nil
		}, time.Hour))
		w.register(m, "two")
		synctest.Wait()
		got := metricstest.Read(t, reader)
		require.EqualValues(t, 2, got["lockstep.registry.registered"])
		require.EqualValues(t, 2, got["lockstep.registry.registrations first"])
		require.EqualValues(t, 1, got["lockstep.registry.health.checks healthy"])

		require.NoError(t, w.Expire(w.session(m).ID()))
		synctest.Wait()
		time.Sleep(time.Second)
		require.EqualValues(t, 2, metricstest.Read(t, reader)["lockstep.registry.registered"])
		require.EqualValues(t, 2, metricstest.Read(t, reader)["lockstep.registry.registrations again"])

		require.NoError(t, w.session(m).Create(t.Context(), base+"/billing/junk", []byte("{"), framework.Persistent))
		require.NoError(t, one.Disable(t.Context(), "x"))
		p := w.pool(m, registry.WithEjection(2, time.Minute))
		pick(t, p, 3, nil)
		pick(t, p, 3, map[string]error{"two": errors.New("no")})
		got = metricstest.Read(t, reader)
		require.EqualValues(t, 1, got["lockstep.registry.instances "+base+"/billing enabled"])
		require.EqualValues(t, 1, got["lockstep.registry.instances "+base+"/billing disabled"])
		require.EqualValues(t, 1, got["lockstep.registry.instances "+base+"/billing unusable"])
		require.EqualValues(t, 3, got["lockstep.registry.call.duration succeeded "+base+"/billing"])
		require.EqualValues(t, 3, got["lockstep.registry.call.duration failed "+base+"/billing"])
		require.EqualValues(t, 1, got["lockstep.registry.ejections "+base+"/billing"])
		require.NotZero(t, got["lockstep.registry.lists "+base+"/billing"])

		sick.Store(true)
		for _, id := range []string{"one", "two"} {
			require.NoError(t, registry.New(m.Client, base).Disable(t.Context(), billing, id, "x"))
		}
		synctest.Wait()
		_, err := p.Pick(t.Context())
		require.ErrorIs(t, err, registry.ErrNoInstance)
		require.NoError(t, p.Close(t.Context()))
		require.NoError(t, one.Close(t.Context()))
		time.Sleep(time.Hour)
		got = metricstest.Read(t, reader)
		require.EqualValues(t, 1, got["lockstep.registry.pick.failures no instance "+base+"/billing"])
		require.EqualValues(t, 0, got["lockstep.registry.instances "+base+"/billing enabled"])
		require.EqualValues(t, 0, got["lockstep.registry.instances "+base+"/billing disabled"])
		require.EqualValues(t, 0, got["lockstep.registry.instances "+base+"/billing unusable"])
		require.EqualValues(t, 1, got["lockstep.registry.registered"])
	})
}
