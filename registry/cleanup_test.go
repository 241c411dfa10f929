package registry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/cleanuptest"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

func registered(t *testing.T, m *zktest.Member, opts ...registry.RegisterOption) *registry.Registration {
	t.Helper()
	one := registry.Instance{Service: billing, ID: "one", Address: "10.0.0.1", Port: 1}
	g, err := registry.New(m.Client, base).Register(t.Context(), one, opts...)
	require.NoError(t, err)
	return g
}

func TestCloseOfARegistrationIsACleanup(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
		return registered(t, m).Close
	}}.Check(t)
}

func TestDrainGoesOnAfterTheEndOfItsContext(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
		g := registered(t, m, registry.WithLinger(time.Second))
		return func(ctx context.Context) error {
			began := time.Now()
			err := g.Drain(ctx)
			require.GreaterOrEqual(t, time.Since(began), time.Second, "pools need that time")
			return err
		}
	}}.CheckConfirmed(t)
}

// TestUpdateEndsWithClose, which begins while there is no connection: the deletion of the node
// lasts longer.
func TestUpdateEndsWithClose(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		g := w.register(m, "one")
		m.Link.Cut()
		updated := make(chan error, 1)
		go func() { updated <- g.Update(context.Background(), func(i *registry.Instance) { i.Port = 2 }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, g.Close(ctx), framework.ErrUnconfirmed)
		synctest.Wait()
		require.Len(t, updated, 1, "it has ended")
		require.ErrorIs(t, <-updated, framework.ErrClosed)
		m.Link.Heal()
	})
}
