package members_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/metricstest"
	"github.com/lockstep-go/lockstep/members"
)

func TestMembershipsAreMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		m := w.Member(t, "a", framework.Config{SessionTimeout: timeout, Identity: "a"},
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		a := &peer{members.New(m.Client, path), m, t}
		a.watch(t.Context())
		one := a.join("one", members.WithDrain(func(context.Context, members.Cordon) error { return nil }))
		a.join("two")
		require.NoError(t, one.Update(t.Context(), func(i *members.Info) { i.Load = 1 }))
		time.Sleep(time.Second) // until the watcher has seen both: only then does it see them join again
		require.NoError(t, w.Expire(a.sessionID()))
		time.Sleep(time.Minute)
		require.NoError(t, a.Cordon(t.Context(), "two"))
		require.NoError(t, a.Drain(t.Context(), "one"))
		time.Sleep(time.Second) // until the watcher, which reads at most ten times a second, has seen the changes
		synctest.Wait()
		got := metricstest.Read(t, reader)
		require.EqualValues(t, 2, got["lockstep.members.listed"])
		require.EqualValues(t, 2, got["lockstep.members.joins first"])
		require.EqualValues(t, 2, got["lockstep.members.joins again"])
		require.EqualValues(t, 1, got["lockstep.members.updates"])
		require.EqualValues(t, 2, got["lockstep.members.cordoned"])
		require.EqualValues(t, 1, got["lockstep.members.drain.duration drained"])
		require.GreaterOrEqual(t, got["lockstep.members.changes joined"], int64(4),
			"this watcher, and that of Drain, see two members; it may see them leave and join or rejoin")
		require.NotZero(t, got["lockstep.members.changes changed"])

		require.NoError(t, a.Uncordon(t.Context(), "two"))
		require.NoError(t, one.Leave(t.Context()))
		synctest.Wait()
		got = metricstest.Read(t, reader)
		require.EqualValues(t, 1, got["lockstep.members.listed"])
		require.EqualValues(t, 0, got["lockstep.members.cordoned"], "one has left, two was uncordoned")
	})
}
