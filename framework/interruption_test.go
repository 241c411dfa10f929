package framework_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAHoldSurvivesTheLongestInterruption begins an interruption at many moments between two
// heartbeats. A hold survives it if it is no longer than promised, and at some moment is lost if it
// lasts T/2.
func TestAHoldSurvivesTheLongestInterruption(t *testing.T) {
	for _, timeout := range []time.Duration{10 * time.Second, framework.Config{}.WithDefaults().SessionTimeout,
		40 * time.Second} {
		for name, fault := range map[string]struct {
			begin, end func(*zktest.Link)
			noticed    time.Duration // the end of the interruption may be noticed so much later
		}{
			"refused": {(*zktest.Link).Cut, (*zktest.Link).Heal, 0},
			"silent":  {func(l *zktest.Link) { l.BlackHole(true, true) }, (*zktest.Link).Heal, 0},
			"half-open": {func(l *zktest.Link) { l.HalfOpen(true); l.Reset() },
				func(l *zktest.Link) { l.HalfOpen(false) }, max(3*time.Second, timeout/8)},
		} {
			t.Run(timeout.String()+" "+name, func(t *testing.T) {
				longest := framework.Config{SessionTimeout: timeout}.LongestInterruption() - fault.noticed
				require.Positive(t, longest)
				lost := 0
				for phase := range 8 {
					// at most just before the next heartbeat
					after := timeout/32*time.Duration(phase+1) - 20*time.Millisecond
					require.NoError(t, holdThrough(t, timeout, after, longest, fault.begin, fault.end),
						"begun %v after a heartbeat", after)
					if holdThrough(t, timeout, after, timeout/2, fault.begin, fault.end) != nil {
						lost++
					}
				}
				require.Positive(t, lost, "the promise is far too modest")
			})
		}
	}
}

// holdThrough returns how a hold has ended, nil if it has not, after an interruption that begins
// some time after a heartbeat.
func holdThrough(t *testing.T, timeout, after, lasts time.Duration, begin, end func(*zktest.Link)) (err error) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", framework.Config{SessionTimeout: timeout},
			framework.WithLogger(slog.New(slog.DiscardHandler)))
		s := session(t, m)
		c, err2 := createProtected(t.Context(), s, "/d", "lock-", nil)
		require.NoError(t, err2)
		h, err2 := primitives.Of(s).Hold(t.Context(), c)
		require.NoError(t, err2)
		awaitHeartbeat(t, s)
		time.Sleep(after)
		begin(m.Link)
		time.Sleep(lasts)
		end(m.Link)
		time.Sleep(timeout)
		err = h.Err()
	})
	return err
}

// TestSilentServerEndsNoHold: of three servers the client's own is cut off and another one accepts
// connections and says nothing.
func TestSilentServerEndsNoHold(t *testing.T) {
	for range 8 { // servers are tried in random order
		loseOwnServer(t, framework.Config{Servers: []string{"own", "mute", "fine"}, AlwaysAwake: true})
	}
}

// TestALostServerEndsNoHoldBehindAnObserverMaster: less of the lease is left then, so the client
// gives its server up sooner.
func TestALostServerEndsNoHoldBehindAnObserverMaster(t *testing.T) {
	loseOwnServer(t, framework.Config{Servers: []string{"own", "fine"}, ObserverMasters: true})
}

// loseOwnServer cuts a client off from its server, just before a heartbeat. Its session must go on
// with another.
func loseOwnServer(t *testing.T, cfg framework.Config) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		own, mute, fine := zk.Link("own"), zk.Link("mute"), zk.Link("fine")
		mute.HalfOpen(true)
		fine.Cut()
		links := map[string]*zktest.Link{"own:2181": own, "mute:2181": mute, "fine:2181": fine}
		c, err := framework.Connect(t.Context(), cfg,
			framework.WithLogger(slog.New(slog.DiscardHandler)), framework.WithTimeClock(),
			framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				return links[address].DialContext(ctx, network, address)
			}))
		require.NoError(t, err)
		s, err := c.Session(t.Context())
		require.NoError(t, err)
		fine.Heal()
		awaitHeartbeat(t, s)
		time.Sleep(s.Timeout()/4 - 20*time.Millisecond)
		own.BlackHole(true, true)
		time.Sleep(s.Timeout())
		require.NoError(t, s.Err())
		require.NoError(t, c.Close(t.Context()))
	})
}

// TestALeaseIsShorterBehindObserverMasters: one heartbeat further back counts.
func TestALeaseIsShorterBehindObserverMasters(t *testing.T) {
	for masters, want := range map[bool]time.Duration{false: 22*time.Second + 500*time.Millisecond,
		true: 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := session(t, zktest.Start(t).Member(t, "a",
				framework.Config{ObserverMasters: masters, AlwaysAwake: true}))
			awaitHeartbeat(t, s)
			const margin = 650 * time.Millisecond
			require.InDelta(t, want-margin, s.LeaseRemaining(), float64(2*time.Millisecond),
				"T − 2 or 3 of its quarters")
			require.Equal(t, masters, framework.Config{ObserverMasters: masters}.LongestInterruption() < 6*time.Second)
		})
	}
}

// awaitHeartbeat returns when a heartbeat has just extended the lease, after some heartbeats.
func awaitHeartbeat(t *testing.T, s *framework.Session) {
	t.Helper()
	time.Sleep(3 * s.Timeout())
	for last := s.LeaseRemaining(); ; time.Sleep(time.Millisecond) {
		left := s.LeaseRemaining()
		require.Positive(t, left)
		if left > last {
			return
		}
		last = left
	}
}

// TestShorterGrantedTimeoutIsLoggedOnce: the servers grant 20 ticks at most.
func TestShorterGrantedTimeoutIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, more logtest.Buffer
		log := func(to *logtest.Buffer) framework.Option {
			return framework.WithLogger(slog.New(slog.NewTextHandler(to, nil)))
		}
		zk := zktest.Start(t, zktest.WithTick(500*time.Millisecond))
		m := zk.Member(t, "a", framework.Config{}, log(&out))
		s := session(t, m)
		require.Equal(t, 10*time.Second, s.Timeout())
		require.NoError(t, zk.Expire(s.ID()))
		<-s.Done()
		session(t, m)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(out.String(), "shorter session timeout"), out.String())
		require.Contains(t, out.String(), "asked=30s granted=10s survived=3.4")
		session(t, zk.Member(t, "b", framework.Config{SessionTimeout: time.Millisecond}, log(&more)))
		synctest.Wait()
		require.Contains(t, more.String(), "asked=1ms granted=1s")
		require.NotContains(t, more.String(), "shorter session timeout")
	})
}
