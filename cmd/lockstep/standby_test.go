package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli/hold"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestWaitersSayWhoHoldsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		a := srv.Member(t, "web-2", framework.Config{}).Client
		require.Equal(t, "waiting for /l, 1 ahead", hold.WaitingText(t.Context(), a, "/l", 1))
		_, err := locks.NewMutex(a, "/l").Lock(t.Context())
		require.NoError(t, err)
		since := time.Now().Local()
		require.Equal(t, "waiting for /l, 1 ahead; the holder web-2 asked for it at "+since.Format(time.DateTime),
			hold.WaitingText(t.Context(), a, "/l", 1))
		_, err = locks.NewSemaphore(a, "/s", 1).Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, "waiting for /s, first in line; the holder web-2 has had it since "+
			time.Now().Local().Format(time.DateTime), hold.WaitingText(t.Context(), a, "/s", 0))
	})
}
