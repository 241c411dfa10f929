package registry_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/cleanuptest"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

func registered(t *testing.T, m *zktest.Member, opts ...registry.RegisterOption) *registry.Registration {
	t.Helper()
	g, err := registry.New(m.Client, base).Register(t.Context(), registry.Instance{Service: billing, ID: "one", Address: "10.0.0.1", Port: 1}, opts...)
	require.NoError(t, err)
	return g
}

func TestCloseOfARegistrationIsACleanup(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error { return registered(t, m).Close }}.Check(t)
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
