package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/backoff"
)

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	b := backoff.New(time.Second, 8*time.Second)
	for range 2 {
		for _, middle := range []time.Duration{1, 2, 4, 8, 8} {
			middle *= time.Second
			d := b.Next()
			require.GreaterOrEqual(t, d, middle/2)
			require.LessOrEqual(t, d, middle*3/2)
		}
		b.Reset()
	}
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, backoff.Pause(t.Context(), time.Second))
		require.Equal(t, time.Second, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, backoff.Pause(ctx, 0))
		require.ErrorIs(t, backoff.Pause(ctx, time.Minute), context.DeadlineExceeded)
		require.ErrorIs(t, backoff.New(time.Minute, time.Minute).Pause(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, backoff.Pause(ctx, 0), context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}
