package recipe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// in runs a test in virtual time, with an in-memory server and a client of it.
func in(t *testing.T, test func(t *testing.T, server *zktest.Server, m *zktest.Member)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		test(t, server, server.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second}))
	})
}

func session(t *testing.T, m *zktest.Member) *framework.Session {
	t.Helper()
	s, err := m.Session(t.Context())
	require.NoError(t, err)
	return s
}

// TestPathsOfTheServersAreRefused, below the client's root, too.
func TestPathsOfTheServersAreRefused(t *testing.T) {
	in(t, func(t *testing.T, server *zktest.Server, m *zktest.Member) {
		check := func(client *framework.Client, path string) error {
			return recipe.CheckClientAndPath(client, path, "a test")
		}
		for _, path := range []string{"/zookeeper", "/zookeeper/config", "/zookeeper/x/y"} {
			require.ErrorIs(t, check(m.Client, path), framework.ErrInvalid)
			require.ErrorContains(t, check(m.Client, path), "belong to the servers")
		}
		require.NoError(t, check(m.Client, "/zookeepers"))
		inside := server.Member(t, "b", framework.Config{Root: "/zookeeper", SessionTimeout: 10 * time.Second})
		require.ErrorContains(t, check(inside.Client, "/a"), "belong to the servers")
		outside := server.Member(t, "c", framework.Config{Root: "/app", SessionTimeout: 10 * time.Second})
		require.NoError(t, check(outside.Client, "/zookeeper"))
	})
}

func TestOnSessionGoesOnWithTheNextSession(t *testing.T) {
	in(t, func(t *testing.T, server *zktest.Server, m *zktest.Member) {
		var epochs []int64
		err := recipe.OnSession(t.Context(), m.Client, func(s *framework.Session) error {
			epochs = append(epochs, s.Epoch())
			if len(epochs) == 1 {
				require.NoError(t, server.Expire(s.ID()))
				<-s.Done()
				return context.Cause(s.Context())
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []int64{1, 2}, epochs)
	})
}

func TestOnSessionClassifiesErrors(t *testing.T) {
	lost, suspended, other := framework.ErrSessionLost, framework.ErrSuspended, errors.New("refused")
	for _, c := range []struct {
		name   string
		err    error
		repeat []func(error) bool
		calls  int
	}{
		{"refusal", other, nil, 1},
		{"closed client", framework.ErrClosed, nil, 1},
		{"write of an unknown outcome", suspended, nil, 1},
		{"repeated by the caller's choice", suspended, []func(error) bool{failure.IsTransient}, 3},
		{"try again", recipe.ErrAgain, nil, 3},
		{"loss of something else while the session stands", lost, nil, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T, _ *zktest.Server, m *zktest.Member) {
				calls := 0
				err := recipe.OnSession(t.Context(), m.Client, func(*framework.Session) error {
					if calls++; calls == 3 {
						return nil
					}
					return c.err
				}, c.repeat...)
				require.Equal(t, c.calls, calls)
				if c.calls == 3 {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.err)
				}
			})
		})
	}
}

func TestOnSessionEndsWithItsContext(t *testing.T) {
	in(t, func(t *testing.T, _ *zktest.Server, m *zktest.Member) {
		why := errors.New("no longer needed")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := recipe.OnSession(ctx, m.Client, func(*framework.Session) error {
			cancel(why)
			return recipe.ErrAgain
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
	})
}

func TestRetryPausesBeginANewSeriesAfterALongAttempt(t *testing.T) {
	in(t, func(t *testing.T, _ *zktest.Server, m *zktest.Member) {
		pauses := recipe.RetryPauses{Client: m.Client}
		pause := func(attempt time.Duration) time.Duration {
			began := time.Now()
			time.Sleep(attempt)
			ended := time.Now()
			require.NoError(t, pauses.Wait(t.Context(), began))
			return time.Since(ended)
		}
		require.Zero(t, pause(0))
		require.NotZero(t, pause(0))
		require.NotZero(t, pause(10*time.Second))
		require.Zero(t, pause(11*time.Second))
		require.NotZero(t, pause(0))
	})
}

// TestWatchUntilGoneEndsWithTheNode, also if another node has its path by then.
func TestWatchUntilGoneEndsWithTheNode(t *testing.T) {
	in(t, func(t *testing.T, _ *zktest.Server, m *zktest.Member) {
		s := session(t, m)
		write := func(ops ...framework.Op) framework.OpResult {
			results, err := s.Multi(t.Context(), ops...)
			require.NoError(t, err)
			return results[len(results)-1]
		}
		create := framework.CreateOp("/n", []byte("1"), framework.Persistent)
		node := primitives.Created{Path: "/n", Zxid: write(create).Zxid}
		var seen []string
		again := recipe.ErrAgain
		watch := func(node primitives.Created) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- recipe.WatchUntilGone(t.Context(), s, node, func(data []byte, _ framework.Stat) error {
					seen = append(seen, string(data))
					result := again
					again = nil
					return result
				})
			}()
			synctest.Wait()
			return done
		}
		done := watch(node)
		write(framework.SetOp("/n", []byte("2"), framework.AnyVersion))
		synctest.Wait()
		require.Equal(t, []string{"1", "1", "2"}, seen, "the first one is read again at once")
		write(framework.DeleteOp("/n", framework.AnyVersion), create)
		require.ErrorIs(t, <-done, framework.ErrNodeGone)
		require.ErrorIs(t, <-watch(node), framework.ErrNodeGone, "another node")
		require.Len(t, seen, 3)
		again = framework.ErrNoAuth
		require.ErrorIs(t, <-watch(primitives.Created{Path: "/n"}), framework.ErrNoAuth)
		require.ErrorIs(t, <-watch(primitives.Created{Path: "/m"}), framework.ErrNodeGone)
	})
}

func TestWaitEndsWithTheFirstSource(t *testing.T) {
	in(t, func(t *testing.T, server *zktest.Server, m *zktest.Member) {
		s := session(t, m)
		watch := func(path string) *framework.Watch {
			_, w, err := s.WatchExists(t.Context(), path)
			require.ErrorIs(t, err, framework.ErrNoNode)
			return w
		}
		a, b := watch("/a"), watch("/b")
		require.NoError(t, s.Create(t.Context(), "/b", nil, framework.Persistent))
		which, event, err := recipe.WaitForFirst(t.Context(), s.Context(), recipe.Sources{Watch: a, SecondWatch: b})
		require.NoError(t, err)
		require.Equal(t, recipe.FromSecondWatch, which)
		require.Equal(t, framework.NodeCreated, event.Kind)

		signal := make(chan struct{}, 1)
		signal <- struct{}{}
		which, _, err = recipe.WaitForFirst(t.Context(), s.Context(), recipe.Sources{Watch: a, Signal: signal})
		require.NoError(t, err)
		require.Equal(t, recipe.FromSignal, which)

		which, _, err = recipe.WaitForFirst(t.Context(), s.Context(),
			recipe.Sources{Watch: a, Timer: time.After(time.Second)})
		require.NoError(t, err)
		require.Equal(t, recipe.FromTimer, which)

		why := errors.New("no longer needed")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		_, err = recipe.WaitForWatch(ctx, s, a)
		require.ErrorIs(t, err, why)

		c := watch("/c")
		require.NoError(t, server.Expire(s.ID()))
		_, err = recipe.WaitForWatch(t.Context(), s, c)
		require.ErrorIs(t, err, framework.ErrSessionLost)
	})
}

func TestEnsembleClockFollowsTheLeadersStamps(t *testing.T) {
	in(t, func(t *testing.T, server *zktest.Server, m *zktest.Member) {
		var clock recipe.EnsembleClock
		require.False(t, clock.Known())
		ask := func() {
			stamp, err := clock.ReadTime(t.Context(), session(t, m), "/clock")
			require.NoError(t, err)
			require.Equal(t, time.UTC, stamp.Location())
			require.WithinDuration(t, stamp, clock.Now(), time.Millisecond)
		}
		ask()
		require.True(t, clock.Known())
		time.Sleep(time.Minute)
		require.WithinDuration(t, time.Now(), clock.Now(), time.Millisecond)
		require.Equal(t, time.Minute, clock.Age())
		server.Skew(time.Hour)
		ask()
		require.WithinDuration(t, time.Now().Add(time.Hour), clock.Now(), time.Millisecond)
		require.Zero(t, clock.Age())
		server.Skew(0)
		ask()
		require.WithinDuration(t, time.Now(), clock.Now(), time.Millisecond)
	})
}

func TestEnsembleClockIgnoresAgreeingAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock recipe.EnsembleClock
		clock.AddStamp(time.Now(), time.Now())
		requested := time.Now()
		time.Sleep(5 * time.Second)
		clock.AddStamp(requested.Add(time.Second), requested) // stamped on its way
		require.Equal(t, time.Now(), clock.Now())
	})
}

func TestEnsembleClockStaysWithinLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock recipe.EnsembleClock
		answerAfter := func(request, reply time.Duration) {
			requested := time.Now()
			time.Sleep(request)
			stamp := time.Now().Add(time.Hour) // the ensemble's clock is ahead of this one
			time.Sleep(reply)
			clock.AddStamp(stamp, requested)
		}
		late := func() time.Duration { return clock.Latest().Sub(time.Now().Add(time.Hour)) }
		answerAfter(0, 3*time.Second)
		require.Equal(t, time.Duration(0), late())
		answerAfter(2*time.Second, time.Second)
		require.Equal(t, time.Duration(0), late(), "an answer that says less changes nothing")
		time.Sleep(time.Minute)
		require.Equal(t, time.Duration(0), late())
		clock.AddStamp(time.Now(), time.Now()) // it was set back
		require.Equal(t, -time.Hour, late())
	})
}
