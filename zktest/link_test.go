package zktest

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDialOnABrokenLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		k := srv.Link("k")
		dial := func() (time.Duration, error) {
			start := time.Now()
			c, err := k.Dial("tcp", "anywhere", 5*time.Second)
			if err == nil {
				require.NoError(t, c.Close())
			}
			return time.Since(start), err
		}
		k.Cut()
		took, err := dial()
		require.ErrorIs(t, err, errRefused)
		require.Zero(t, took)
		k.Heal()
		_, err = dial()
		require.NoError(t, err)

		k.BlackHole(false, true)
		took, err = dial()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 5*time.Second, took)
		time.AfterFunc(time.Second, k.Heal)
		took, err = dial()
		require.NoError(t, err)
		require.Equal(t, time.Second, took)

		k.BlackHole(true, true)
		time.AfterFunc(time.Second, k.Cut)
		took, err = dial()
		require.ErrorIs(t, err, errRefused)
		require.Equal(t, time.Second, took)
		k.Heal()
		require.Equal(t, 5, k.Dials())
	})
}

func TestHalfOpenSwallowsAndIsResetByHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		k := srv.Link("k")
		k.HalfOpen(true)
		k.BlackHole(true, true) // a proxy answers the dial all the same
		c, err := k.Dial("tcp", "", time.Second)
		require.NoError(t, err)
		_, err = c.Write(make([]byte, 10*pipeLimit))
		require.NoError(t, err)
		require.Zero(t, srv.Connections())
		time.AfterFunc(time.Minute, k.Heal)
		start := time.Now()
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, errReset)
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, c.Close())
		require.Zero(t, k.Connections())
	})
}

func TestAClosedServerRefusesDials(t *testing.T) {
	srv, err := New()
	require.NoError(t, err)
	srv.Close()
	k := srv.Link("k")
	_, err = k.Dial("tcp", "", time.Second)
	require.ErrorIs(t, err, errRefused)
	require.Zero(t, k.Connections())
	require.Equal(t, "k", k.Name())
	var op *net.OpError
	require.True(t, errors.As(err, &op))
}

// TestADialEndsWithItsContext cancels one that hangs.
func TestADialEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := Start(t).Link("k")
		k.BlackHole(true, true)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := k.DialContext(ctx, "tcp", "")
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Second, time.Since(began))
	})
}
