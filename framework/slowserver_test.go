package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// slowSyncs is a server that answers writes at once and syncs late. A heartbeat is both.
func slowSyncs(zk *zktest.Server, late time.Duration) *zktest.Fault {
	return zk.DelayReplies(late, zktest.Match{Op: zktest.OpSync})
}

// awake returns a session that is awake and has nothing at stake.
func awake(t *testing.T, m *zktest.Member) *framework.Session {
	s := session(t, m)
	held(t, s, "/was-held").End(nil)
	require.Positive(t, s.LeaseRemaining())
	return s
}

// TestALateProofEndsNoConnectionWithoutStake: a session that holds nothing, and is not next in a
// line, falls asleep and keeps its connection. Others change the server.
func TestALateProofEndsNoConnectionWithoutStake(t *testing.T) {
	for name, c := range map[string]struct {
		begin  func(t *testing.T, s *framework.Session)
		leaves bool
	}{
		"nothing":      {func(*testing.T, *framework.Session) {}, false},
		"a join":       {func(_ *testing.T, s *framework.Session) { primitives.Of(s).BeginJoin() }, false},
		"next in line": {func(_ *testing.T, s *framework.Session) { primitives.Of(s).StayAwake() }, true},
		"a hold":       {func(t *testing.T, s *framework.Session) { held(t, s, "/held") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", sleepy)
				s := awake(t, m)
				c.begin(t, s)
				slow := slowSyncs(zk, timeout*3/10)
				time.Sleep(timeout*3/4 - time.Second) // a heartbeat, and no answer for T/4
				require.Equal(t, c.leaves, m.Link.Dials() > 1)
				slow.Cancel()
				time.Sleep(timeout)
				held(t, s, "/later")
				require.NoError(t, s.Err())
			})
		})
	}
}

// TestASilentServerIsLeftAtOnce: nothing is at stake, but the server answers no write.
func TestASilentServerIsLeftAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := zktest.Start(t).Member(t, "a", sleepy)
		s := awake(t, m)
		primitives.Of(s).BeginJoin()
		m.Link.BlackHole(true, true)
		time.Sleep(timeout/2 + time.Second)
		require.Greater(t, m.Link.Dials(), 1)
		m.Link.Heal()
		primitives.Of(s).EndJoin()
	})
}

// TestAHoldOnASlowServerHasAWholeLease: a session has kept its connection although a proof was
// late. Now a recipe expects a grant, so it changes the server, and the grant gets a lease by the
// usual rules.
func TestAHoldOnASlowServerHasAWholeLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		s := awake(t, m)
		node := createOwn(t, s, "/held")
		slow := slowSyncs(zk, timeout)
		time.Sleep(timeout*5/8 - time.Second) // a heartbeat is due after a quarter or so, and late after another
		require.Zero(t, s.LeaseRemaining())
		require.Equal(t, 1, m.Link.Dials())
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		go func() {
			for m.Link.Dials() == 1 {
				time.Sleep(timeout / 100)
			}
			slow.Cancel()
		}()
		_, err := primitives.Of(s).Hold(ctx, node)
		require.NoError(t, err)
		require.Equal(t, 2, m.Link.Dials())
		require.Less(t, time.Since(began), timeout/4+time.Second)
		require.Greater(t, s.LeaseRemaining(), timeout/2)
	})
}

// TestASlowServerIsLeftAfterATimeout: it answers writes, and each proof too late.
func TestASlowServerIsLeftAfterATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		s := awake(t, m)
		primitives.Of(s).BeginJoin()
		slow := slowSyncs(zk, timeout*28/100)
		defer slow.Cancel()
		time.Sleep(timeout)
		require.Equal(t, 1, m.Link.Dials())
		time.Sleep(timeout * 3 / 4)
		require.Greater(t, m.Link.Dials(), 1)
	})
}
