package framework_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/zktest"
)

const timeout = 10 * time.Second

// config is of sessions that never sleep: what they prove is what most tests are about.
var config = framework.Config{SessionTimeout: timeout, AlwaysAwake: true}

// session returns the member's session.
func session(t *testing.T, m *zktest.Member) *framework.Session {
	t.Helper()
	s, err := m.Session(t.Context())
	require.NoError(t, err)
	return s
}

// aliveAt reports whether the server knows the session.
func alive(zk *zktest.Server, id framework.SessionID) bool {
	for _, s := range zk.Sessions() {
		if s.ID == id {
			return true
		}
	}
	return false
}

func TestSessionLivesOnWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		time.Sleep(24 * time.Hour)
		require.NoError(t, s.Err())
		require.Equal(t, framework.Connected, s.State())
		require.Equal(t, int64(1), s.Epoch())
		require.Greater(t, s.LeaseRemaining(), timeout/2-timeout/20)
	})
}

// TestSessionEndsBeforeServerExpiresIt breaks the link in each way and at many phases of the
// heartbeat, and demands that the client has given up strictly before the server does.
func TestSessionEndsBeforeServerExpiresIt(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Link){
		"cut":             (*zktest.Link).Cut,
		"black hole":      func(l *zktest.Link) { l.BlackHole(true, true) },
		"nothing goes up": func(l *zktest.Link) { l.BlackHole(true, false) },
		"nothing comes":   func(l *zktest.Link) { l.BlackHole(false, true) },
		"half open":       func(l *zktest.Link) { l.HalfOpen(true); l.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			for phase := range 25 {
				synctest.Test(t, func(t *testing.T) {
					zk := zktest.Start(t)
					m := zk.Member(t, "a", config)
					s := session(t, m)
					time.Sleep(3*timeout + time.Duration(phase)*timeout/100)
					fault(m.Link)
					<-s.Done()
					require.True(t, alive(zk, s.ID()), "phase %d: the server was first", phase)
					require.ErrorIs(t, s.Err(), framework.ErrSessionLost)
					require.ErrorIs(t, context.Cause(s.Context()), framework.ErrSessionLost)
					m.Link.Heal()
				})
			}
		})
	}
}

func TestSessionSurvivesAShortCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		var states []framework.State
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		changes := m.FollowState(ctx)
		go func() {
			defer close(done)
			for c := range changes {
				states = append(states, c.State)
			}
		}()
		for range 5 {
			time.Sleep(timeout)
			m.Link.Cut()
			time.Sleep(timeout / 8)
			m.Link.Heal()
		}
		time.Sleep(timeout)
		require.NoError(t, s.Err())
		cancel()
		<-done
		require.Equal(t, []framework.State{
			framework.Suspended, framework.Connected, framework.Suspended, framework.Connected, framework.Suspended,
			framework.Connected, framework.Suspended, framework.Connected, framework.Suspended, framework.Connected,
		}, states)
	})
}

func TestALostSessionIsFollowedByANewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		old := session(t, m)
		require.NoError(t, zk.Expire(old.ID()))
		<-old.Done()
		next := session(t, m)
		require.Equal(t, int64(2), next.Epoch())
		require.NotEqual(t, old.ID(), next.ID())
		_, err := old.Exists(t.Context(), "/")
		require.ErrorIs(t, err, framework.ErrSessionLost)
		require.True(t, failure.IsTransient(err))
		_, err = m.Exists(t.Context(), "/")
		require.NoError(t, err)
	})
}

func TestSessionSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		time.Sleep(timeout)
		zk.Restart()
		_, err := s.Exists(t.Context(), "/")
		require.NoError(t, err)
		time.Sleep(5 * timeout)
		require.NoError(t, s.Err())
	})
}

func TestAFrozenServerEndsTheLeaseInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		time.Sleep(2 * timeout)
		zk.Freeze()
		<-s.Done()
		zk.Thaw()
		require.ErrorIs(t, s.Err(), framework.ErrSessionLost)
		require.Equal(t, int64(2), session(t, m).Epoch())
	})
}

func TestCallsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		m.Link.BlackHole(true, true)
		for _, wait := range []time.Duration{0, time.Millisecond, timeout / 2} {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			began := time.Now()
			_, _, err := s.Get(ctx, "/")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, wait, time.Since(began))
			cancel()
		}
		_, _, err := s.Get(t.Context(), "/")
		require.ErrorIs(t, err, framework.ErrSessionLost, "a call of a session ends with it")
		m.Link.Heal()
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		require.NoError(t, s.Create(t.Context(), "/e", nil, framework.Ephemeral))
		require.NoError(t, m.Close(t.Context()))
		require.ErrorIs(t, s.Err(), framework.ErrClosed)
		require.Empty(t, zk.Sessions(), "the server heard of it")
		require.Empty(t, zk.Children("/e"))
		_, err := m.Session(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		require.False(t, failure.IsTransient(err))
		require.NoError(t, m.Close(t.Context()))
	})
}

// TestCloseAmidAHandshakeLeavesNoSession closes at each moment of a connection's making: the first,
// whose answer brings a session, and a later one, that takes a session with a node back.
func TestCloseAmidAHandshakeLeavesNoSession(t *testing.T) {
	for after := time.Duration(0); after < 150*time.Millisecond; after += 5 * time.Millisecond {
		for _, kept := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", config)
				if s := session(t, m); kept {
					require.NoError(t, s.Create(t.Context(), "/e", nil, framework.Ephemeral))
					m.Link.Reset()
				} else {
					require.NoError(t, zk.Expire(s.ID()))
				}
				m.Link.Delay(10 * time.Millisecond)
				time.Sleep(after)
				require.NoError(t, m.Close(t.Context()))
				require.Empty(t, zk.Sessions(), "%v after the loss, its session kept: %v", after, kept)
			})
		}
	}
}

func TestCloseOnADeadLinkEnds(t *testing.T) {
	for _, fault := range []func(*zktest.Link){
		(*zktest.Link).Cut,
		func(l *zktest.Link) { l.BlackHole(true, true) },
		func(l *zktest.Link) { l.HalfOpen(true); l.Reset() },
	} {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", config)
			fault(m.Link)
			time.Sleep(time.Second)
			began := time.Now()
			require.ErrorIs(t, m.Close(t.Context()), framework.ErrUnconfirmed)
			require.Less(t, time.Since(began), timeout)
		})
	}
}

func TestConnectListsWhyEachServerFailed(t *testing.T) {
	err := connectInVain(t, time.Second,
		framework.Config{Servers: []string{"127.0.0.1:1", "no-such-host.invalid:2181"}},
		"127.0.0.1:1: connect: ", "no-such-host.invalid:2181: ")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// connectInVain tries to connect for a time, and requires that the error says all of this. On a
// slow machine the client may not have tried each server by then: it gets more and more time.
func connectInVain(t *testing.T, limit time.Duration, cfg framework.Config, says ...string) error {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := framework.Connect(ctx, cfg)
		cancel()
		require.Error(t, err)
		unsaid := slices.DeleteFunc(slices.Clone(says),
			func(text string) bool { return strings.Contains(err.Error(), text) })
		if len(unsaid) == 0 {
			return err
		}
		require.Less(t, limit, time.Minute, "%q is not in: %v", unsaid, err)
		limit *= 2
	}
}

func TestConnectToASilentServerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		link := zk.Link("a")
		link.HalfOpen(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := framework.Connect(ctx, framework.Config{Servers: []string{"192.0.2.1:2181"}},
			framework.WithDialer(link.DialContext), framework.WithTimeClock())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "192.0.2.1:2181: ")
		require.ErrorContains(t, err, "timeout")
		link.HalfOpen(false)
		time.Sleep(time.Minute) // Connect closes the rest in the background, within seconds
	})
}

func TestRefusedCredentialsEndConnectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		link := zk.Link("a")
		cfg := config
		cfg.Servers = []string{"192.0.2.1:2181"}
		cfg.Auth = []framework.Credential{{Scheme: "nonsense", Auth: []byte("secret")}}
		_, err := framework.Connect(t.Context(), cfg, framework.WithDialer(link.DialContext),
			framework.WithTimeClock())
		require.ErrorIs(t, err, framework.ErrAuthFailed)
		require.NotContains(t, err.Error(), "secret")
		require.False(t, errors.Is(err, context.DeadlineExceeded))
	})
}

// TestSessionWithoutConnectionEndsWithItsLease to the moment, and not when the session tries the
// next server.
func TestSessionWithoutConnectionEndsWithItsLease(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Link){
		"cut":        (*zktest.Link).Cut,
		"black hole": func(l *zktest.Link) { l.BlackHole(true, true) },
		"half open":  func(l *zktest.Link) { l.HalfOpen(true); l.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			for phase := range 10 {
				synctest.Test(t, func(t *testing.T) {
					zk := zktest.Start(t)
					m := zk.Member(t, "a", config)
					s := session(t, m)
					time.Sleep(3*timeout + time.Duration(phase)*timeout/40 + time.Millisecond)
					fault(m.Link)
					left, began := s.LeaseRemaining(), time.Now()
					<-s.Done()
					require.Equal(t, left, time.Since(began))
					m.Link.Heal()
				})
			}
		})
	}
}
