package framework_test

import (
	"context"
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

// TestCloseWhileSuspendedDoesNotExtendHolds: the link comes back amid the farewell, but its answer
// comes after it.
func TestCloseWhileSuspendedDoesNotExtendHolds(t *testing.T) {
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
				m.Link.Delay(600 * time.Millisecond) // before a dial can pass without it
				m.Link.Heal()
			})
			began := time.Now()
			require.ErrorIs(t, m.Close(t.Context()), framework.ErrUnconfirmed)
			for _, there := zk.Node("/e"); there; _, there = zk.Node("/e") {
				time.Sleep(10 * time.Millisecond)
			}
			worst = max(worst, time.Since(began))
		})
	}
	require.LessOrEqual(t, worst, 6*time.Second+100*time.Millisecond)
}

// TestConnectEndsWithItsContext dials servers that accept and stay silent.
func TestConnectEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := zktest.Start(t).Link("a")
		link.HalfOpen(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := framework.Connect(ctx, framework.Config{Servers: []string{"192.0.2.1"}},
			framework.WithDialer(link.DialContext), framework.WithTimeClock())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		time.Sleep(time.Minute)
		require.Zero(t, link.Connections(), "what was left has ended by itself")
	})
}

// TestStatesTellsOfTheEnd closes the client before its states are read.
func TestStatesTellsOfTheEnd(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			m := zktest.Start(t).Member(t, "a", config)
			changes := m.FollowState(t.Context())
			require.NoError(t, m.Close(t.Context()))
			var states []framework.State
			for c := range changes {
				states = append(states, c.State)
			}
			require.Equal(t, []framework.State{framework.Lost}, states)
		})
	}
}
