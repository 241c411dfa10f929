package framework_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/zktest"
)

// stoppableClock is the clock of a process that can be stopped: Skip moves it on at once, and no
// alarm rings for that time.
type stoppableClock struct {
	clock.Clock
	skipped atomic.Int64
}

func newStoppableClock() *stoppableClock { return &stoppableClock{Clock: clock.Time()} }

func (c *stoppableClock) Now() time.Duration { return c.Clock.Now() + time.Duration(c.skipped.Load()) }

func (c *stoppableClock) Skip(d time.Duration) { c.skipped.Add(int64(d)) }

// NewAlarm returns an alarm that rings as late as the process was stopped.
func (c *stoppableClock) NewAlarm(ring func()) clock.Alarm {
	return c.Clock.NewAlarm(ring)
}

// TestALapsedLeaseIsNotRevived: heartbeats that are acknowledged after the process was stopped for
// longer than the lease do not bring the session back, although the servers still know it.
func TestALapsedLeaseIsNotRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newStoppableClock()
		s := session(t, zktest.Start(t).Member(t, "a", config, testclock.WithClock(clock)))
		time.Sleep(3 * timeout)
		clock.Skip(2 * timeout)
		time.Sleep(timeout)
		select {
		case <-s.Done():
		default:
			t.Fatal("the session goes on after its lease has lapsed")
		}
		require.ErrorIs(t, context.Cause(s.Context()), framework.ErrSessionLost)
	})
}

// TestErrReadsTheClock: a process that was stopped learns of the end at its first question.
func TestErrReadsTheClock(t *testing.T) {
	for name, err := range map[string]func(*framework.Session) error{
		"of the session": (*framework.Session).Err,
		"of its context": func(s *framework.Session) error { return s.Context().Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := newStoppableClock()
				s := session(t, zktest.Start(t).Member(t, "a", config, testclock.WithClock(clock)))
				time.Sleep(3 * timeout)
				require.NoError(t, err(s))
				clock.Skip(2 * timeout)
				require.Error(t, err(s))
			})
		})
	}
}

// TestOverdueHeartbeatChangesServer: a connection that does not answer a heartbeat within T/4 is
// given up while enough of the lease is left for another server.
func TestOverdueHeartbeatChangesServer(t *testing.T) {
	for phase := range 25 {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			silent, healthy := zk.Link("silent"), zk.Link("healthy")
			var once sync.Once
			m := zk.Member(t, "a", config,
				framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					link := healthy
					once.Do(func() { link = silent })
					return link.DialContext(ctx, network, address)
				}))
			s := session(t, m)
			time.Sleep(3*timeout + time.Duration(phase)*timeout/100)
			silent.BlackHole(true, true)
			var gaveUp time.Time
			for c := range m.FollowState(t.Context()) {
				if c.State == framework.Suspended {
					gaveUp = time.Now()
					require.Greater(t, s.LeaseRemaining(), timeout/8, "phase %d", phase)
				}
				if c.State == framework.Connected {
					break
				}
			}
			require.Less(t, time.Since(gaveUp), time.Second, "phase %d", phase)
			time.Sleep(2 * timeout)
			require.NoError(t, s.Err())
		})
	}
}

// sendIntoTheVoid runs f, loses what it sends, and cuts the link. heal brings the link back.
func sendIntoTheVoid(m *zktest.Member, f func() error) (heal func(), done <-chan error) {
	out := make(chan error, 1)
	m.Link.BlackHole(true, false)
	go func() { out <- f() }()
	synctest.Wait()
	m.Link.Reset()
	m.Link.Cut()
	return m.Link.Heal, out
}

// TestAnEphemeralNodeOfAnotherSessionIsNotOurs: after a lost connection the node is there, and
// another session has created it.
func TestAnEphemeralNodeOfAnotherSessionIsNotOurs(t *testing.T) {
	for name, create := range map[string]func(context.Context, *framework.Session) error{
		"created by Create": func(ctx context.Context, s *framework.Session) error {
			return s.Create(ctx, "/dir/e", nil, framework.Ephemeral)
		},
		"created in a transaction": func(ctx context.Context, s *framework.Session) error {
			_, err := createTogether(ctx, s,
				primitives.ProtectedCreate{Dir: "/dir", Name: "e", Plain: true, Unnumbered: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, zk := t.Context(), zktest.Start(t)
				m := zk.Member(t, "a", config)
				a, b := session(t, m), session(t, zk.Member(t, "b", config))
				require.NoError(t, b.MakeDirs(ctx, "/dir"))
				heal, done := sendIntoTheVoid(m, func() error { return create(ctx, a) })
				require.NoError(t, b.Create(ctx, "/dir/e", nil, framework.Ephemeral))
				heal()
				require.ErrorIs(t, <-done, framework.ErrNodeExists)
			})
		})
	}
}

// TestProtectedNodeCreatedByAnotherSessionIsNotOwned: an operator's tool copies a node while the
// reply to its create is lost.
func TestProtectedNodeCreatedByAnotherSessionIsNotOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		m := zk.Member(t, "a", config)
		a, b := session(t, m), session(t, zk.Member(t, "b", config))
		require.NoError(t, b.MakeDirs(ctx, "/dir"))
		m.Link.BlackHole(false, true)
		done := make(chan error, 1)
		go func() { _, err := createProtected(ctx, a, "/dir", "lock-", nil); done <- err }()
		synctest.Wait()
		path := "/dir/" + zk.Children("/dir")[0]
		require.NoError(t, b.Delete(ctx, path, framework.AnyVersion))
		require.NoError(t, b.Create(ctx, path, nil, framework.Ephemeral))
		m.Link.Reset()
		m.Link.Heal()
		require.ErrorContains(t, <-done, "belongs to another session")
	})
}

// TestACreateGivenUpAsItSettlesIsUndone: the outcome is known and the caller's context has ended,
// both before the caller looked.
func TestACreateGivenUpAsItSettlesIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		created, err := createProtected(t.Context(), s, "/dir", "lock-", nil)
		require.NoError(t, err)
		gone := errors.New("the caller has left")
		require.ErrorIs(t, framework.GiveUpSettledCreate(s, created, gone), gone)
		synctest.Wait()
		require.Empty(t, zk.Children("/dir"))
	})
}

// TestDiscardOwnSparesANodeOfAnotherSession: an operator has deleted the node, and another session
// has created one of the same name.
func TestDiscardOwnSparesANodeOfAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		a, b := session(t, zk.Member(t, "a", config)), session(t, zk.Member(t, "b", config))
		claim := primitives.ProtectedCreate{Dir: "/dir", Name: "claim", Plain: true, Unnumbered: true}
		require.NoError(t, a.MakeDirs(ctx, "/dir"))
		created, err := createTogether(ctx, a, claim)
		require.NoError(t, err)
		require.NoError(t, b.Delete(ctx, "/dir/claim", framework.AnyVersion))
		_, err = createTogether(ctx, b, claim)
		require.NoError(t, err)
		<-primitives.Of(a).DiscardOwn(nil, created[0]).Done()
		require.Equal(t, []string{"claim"}, zk.Children("/dir"))
	})
}

// TestRefusedDeletionHasNoZxid: the node is gone already, so nothing tells which transaction
// deleted it.
func TestRefusedDeletionHasNoZxid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		created, err := createProtected(ctx, s, "/dir", "lock-", nil)
		require.NoError(t, err)
		require.NoError(t, s.Delete(ctx, created.Path, framework.AnyVersion))
		d := primitives.Of(s).Discard(nil, created.Path)
		<-d.Done()
		require.Zero(t, d.Zxid())
	})
}

// TestWatchJoinedDuringExistsOfMissingNodeFires: the request that was to arm the watch finds no
// node.
func TestWatchJoinedDuringExistsOfMissingNodeFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		m.Link.Delay(10 * time.Millisecond)
		go func() { _, _, _, _ = s.WatchData(ctx, "/n") }()
		synctest.Wait()
		joined := s.WatchNodes("/n")[0]
		require.Equal(t, framework.NodeDeleted, (<-joined.C()).Kind)
	})
}

// TestATransactionOfCreatesAsksItsConditions: one of the other operations has a condition that does
// not hold.
func TestATransactionOfCreatesAsksItsConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		require.NoError(t, s.MakeDirs(ctx, "/dir"))
		ended := errors.New("the lease has ended")
		_, err := createTogether(ctx, s, primitives.ProtectedCreate{
			Dir: "/dir", Name: "lock-", Count: 1,
			With: []framework.Op{primitives.When(framework.CheckOp("/dir", framework.AnyVersion),
				func() error { return ended })},
		})
		require.ErrorIs(t, err, ended)
		require.Empty(t, zk.Children("/dir"))
	})
}

// TestAnEndedSessionGivesNoHold: the session ends between a create and its hold.
func TestAnEndedSessionGivesNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		created, err := createProtected(t.Context(), s, "/dir", "lock-", nil)
		require.NoError(t, err)
		require.NoError(t, zk.Expire(s.ID()))
		<-s.Done()
		_, err = primitives.Of(s).Hold(t.Context(), created)
		require.ErrorIs(t, err, framework.ErrSessionLost)
	})
}
