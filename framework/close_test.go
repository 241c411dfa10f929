package framework_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestACloseAfterALongCutTellsTheServers: they can be reached at once when Close is called.
func TestACloseAfterALongCutTellsTheServers(t *testing.T) {
	left := 0
	for i := range 50 {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t, zktest.WithExactExpiry())
			m := zk.Member(t, "a", config)
			s := session(t, m)
			require.NoError(t, s.Create(t.Context(), "/e", nil, framework.Ephemeral))
			time.Sleep(3 * timeout)
			m.Link.Cut()
			time.Sleep(3*time.Second + time.Duration(i)*20*time.Millisecond)
			m.Link.Heal()
			require.NoError(t, m.Close(t.Context()))
			if _, there := zk.Node("/e"); there {
				left++
			}
		})
	}
	require.Zero(t, left)
}

// TestACloseWhileSuspendedKeepsNothingLonger: the link comes back amid the farewell, but its answer comes after it.
func TestACloseWhileSuspendedKeepsNothingLonger(t *testing.T) {
	worst := time.Duration(0)
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t, zktest.WithExactExpiry())
			m := zk.Member(t, "a", config)
			s := session(t, m)
			require.NoError(t, s.Create(t.Context(), "/e", nil, framework.Ephemeral))
			time.Sleep(3 * timeout)
			m.Link.Cut()
			time.Sleep(4 * time.Second) // the servers end the session 6 s later at the latest
			require.Equal(t, framework.Suspended, s.State())
			time.AfterFunc(100*time.Millisecond, func() {
				m.Link.Heal()
				m.Link.Delay(600 * time.Millisecond)
			})
			began := time.Now()
			require.NoError(t, m.Close(t.Context()))
			for _, there := zk.Node("/e"); there; _, there = zk.Node("/e") {
				time.Sleep(10 * time.Millisecond)
			}
			worst = max(worst, time.Since(began))
		})
	}
	require.LessOrEqual(t, worst, 6*time.Second+100*time.Millisecond)
}
