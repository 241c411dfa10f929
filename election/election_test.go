package election_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestCandidatesLeadInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		_, err := a.Leader(t.Context())
		require.ErrorIs(t, err, election.ErrNoLeader)
		require.ErrorContains(t, err, path)
		none, err := a.Candidates(t.Context())
		require.NoError(t, err)
		require.Empty(t, none)

		first := a.lead(t)
		elected := make(chan *election.Term)
		go func() {
			term, err := b.Campaign(context.Background())
			require.NoError(t, err)
			elected <- term
		}()
		synctest.Wait()
		all, err := b.Candidates(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, election.Candidate{ID: "a", Token: first.Token(), Node: first.Node(), Session: first.Session(),
			Number: 1, Since: first.Since()}, all[0])
		require.Equal(t, "b", all[1].ID)
		leader, err := b.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, all[0], leader)

		require.NoError(t, first.Resign(t.Context()))
		require.NoError(t, first.Resign(t.Context()))
		require.ErrorIs(t, first.Err(), locks.ErrReleased)
		require.ErrorIs(t, context.Cause(first.Context()), locks.ErrReleased)
		second := <-elected
		require.Greater(t, second.Token(), first.Token())
		require.Equal(t, "b", second.ID())
		require.NoError(t, second.Resign(t.Context()))
		require.Empty(t, w.Children(path))
	})
}

func TestTheLayoutIsLeaderLatchs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		_, err := election.New(m.client, path, election.WithID("the id")).Campaign(t.Context())
		require.NoError(t, err)
		names := w.Children(path)
		require.Len(t, names, 1)
		require.Regexp(t, `^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-latch-\d{10}$`, names[0])
		n, _ := w.Node(znode.Join(path, names[0]))
		require.Equal(t, "the id", string(n.Data))
		require.Equal(t, zktest.Ephemeral, n.Mode)
	})
}

func TestLeadRunsAgainUntilItIsStopped(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		var tokens []int64
		err := a.Lead(t.Context(), func(ctx context.Context, term *election.Term) error {
			require.NoError(t, ctx.Err())
			tokens = append(tokens, term.Token())
			if len(tokens) == 3 {
				return fmt.Errorf("enough: %w", election.ErrStop)
			}
			return nil
		})
		require.NoError(t, err)
		require.Len(t, tokens, 3)
		require.True(t, tokens[0] < tokens[1] && tokens[1] < tokens[2])
		require.Empty(t, w.Children(path))
	})
}

func TestLeadPausesAfterAnError(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		var starts []time.Time
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		err := a.Lead(ctx, func(context.Context, *election.Term) error {
			if starts = append(starts, time.Now()); len(starts) == 6 {
				cancel()
			}
			return errors.New("not able")
		})
		require.NoError(t, err)
		require.Less(t, starts[0].Sub(began), 10*time.Millisecond)
		require.Greater(t, starts[5].Sub(starts[0]), 31*config.WithDefaults().RetryBase/4, "pauses grow")
		b.lead(t) // nobody is left in the way
	})
}

func TestLeadPausesAfterTermsOfNoTime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		for name, give := range map[string]func(context.Context, *election.Term){
			"returns": func(context.Context, *election.Term) {},
			"resigns": func(ctx context.Context, term *election.Term) { require.NoError(t, term.Resign(ctx)) },
		} {
			terms := 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			err := a.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				terms++
				give(ctx, term)
				return nil
			})
			cancel()
			require.NoError(t, err)
			require.Less(t, terms, int(2*time.Hour/framework.Config{}.WithDefaults().RetryMax),
				"a function that %s at once", name)
			require.Greater(t, terms, int(time.Hour/framework.Config{}.WithDefaults().RetryMax/2),
				"the pause has a bound")
		}

		var began []time.Time
		err := a.Lead(t.Context(), func(context.Context, *election.Term) error {
			if began = append(began, time.Now()); len(began) == 100 {
				return election.ErrStop
			}
			time.Sleep(time.Second)
			return nil
		})
		require.NoError(t, err)
		require.Less(t, began[99].Sub(began[0]), 101*time.Second, "no pause after terms of a second")
	})
}

func TestLeadWaitsForItsFunctionBeforeItGivesUp(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("rolling over")
		var returned time.Time
		done := make(chan error)
		go func() {
			done <- a.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), why)
				require.NoError(t, term.Err(), "the term stands until the function has returned")
				time.Sleep(3 * time.Second)
				returned = time.Now()
				return ctx.Err()
			})
		}()
		synctest.Wait()
		cancel(why)
		b.lead(t)
		require.Equal(t, returned, time.Now(), "at once, and not before")
		require.NoError(t, <-done)
	})
}

func TestLeadGivesUpWhenItsFunctionPanics(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		require.PanicsWithValue(t, "bang", func() {
			_ = a.Lead(t.Context(), func(context.Context, *election.Term) error { panic("bang") })
		})
		b.lead(t)
	})
}

func TestALeaderWhoseNodeIsDeletedStops(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		require.NoError(t, b.client.Delete(t.Context(), term.Node(), framework.AnyVersion))
		<-term.Context().Done()
		require.ErrorIs(t, term.Err(), framework.ErrNodeGone)
		_, err := a.client.Multi(t.Context(), term.Guard(), framework.CreateOp("/x", nil, framework.Persistent))
		require.ErrorIs(t, err, framework.ErrNodeGone)
		b.lead(t)
	})
}

func TestALeaderThatIsCutOffStopsBeforeTheNextLeads(t *testing.T) {
	for _, how := range []func(*zktest.Link){(*zktest.Link).Cut, func(k *zktest.Link) { k.BlackHole(true, true) },
		func(k *zktest.Link) { k.BlackHole(true, false) }, func(k *zktest.Link) { k.BlackHole(false, true) }} {
		in(t, func(t *testing.T, w *world) {
			a, b := w.member("a"), w.member("b")
			var stopped time.Time
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				_ = a.Lead(ctx, func(ctx context.Context, term *election.Term) error {
					<-ctx.Done()
					stopped = time.Now()
					require.ErrorIs(t, context.Cause(ctx), framework.ErrSessionLost)
					return nil
				})
			}()
			time.Sleep(33 * time.Second)
			synctest.Wait()
			how(a.link)
			term, err := b.Campaign(t.Context())
			require.NoError(t, err)
			synctest.Wait() // nothing else orders the read of stopped behind the write: a is cut off
			require.False(t, stopped.IsZero())
			require.Greater(t, time.Since(stopped), time.Duration(0))
			require.NoError(t, term.Err())
			a.link.Heal()
		})
	}
}

// TestLeadNeverRunsInTwoMembers takes links away at random for hours.
func TestLeadNeverRunsInTwoMembers(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { neverTwo(t, w, rand.New(rand.NewPCG(seed, 77))) })
		})
	}
}

func neverTwo(t *testing.T, w *world, r *rand.Rand) {
	const members = 5
	var running, terms atomic.Int64
	var last atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	links := make([]*zktest.Link, members)
	for i := range members {
		m := w.member(fmt.Sprint("m", i))
		links[i] = m.link
		all.Go(func() {
			err := m.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				if n := running.Add(1); n != 1 {
					t.Errorf("%d members lead", n)
				}
				defer running.Add(-1)
				if before := last.Swap(term.Token()); before >= term.Token() {
					t.Errorf("token %d after %d", term.Token(), before)
				}
				terms.Add(1)
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return nil
			})
			if err != nil {
				t.Errorf("Lead ended: %v", err)
			}
		})
	}
	for range 300 {
		time.Sleep(time.Duration(r.Int64N(int64(15 * time.Second))))
		hurt(w, r, links[r.IntN(members)])
	}
	for _, l := range links {
		l.Heal()
	}
	time.Sleep(2 * timeout)
	if running.Load() == 0 {
		time.Sleep(time.Second) // a term has ended at this very instant, perhaps
	}
	require.EqualValues(t, 1, running.Load(), "somebody leads again")
	cancel()
	all.Wait()
	synctest.Wait()
	require.Empty(t, w.Children(path), "nothing is left behind")
	require.Greater(t, terms.Load(), int64(30))
}

// hurt does something to one link, or to the server. Sessions are not expired by hand: an ensemble
// that does so before the timeout is beyond any client's promise.
func hurt(w *world, r *rand.Rand, l *zktest.Link) {
	switch r.IntN(8) {
	case 0, 1:
		l.Cut()
	case 2:
		l.BlackHole(true, true)
	case 3:
		l.BlackHole(r.IntN(2) == 0, true)
	case 4:
		l.Reset()
	case 5:
		w.DropReply(1, zktest.Match{Op: zktest.OpCreate})
	case 6:
		w.Restart()
	default:
		l.Heal()
	}
	if r.IntN(3) == 0 {
		l.Heal()
	}
}

func TestBadArgumentsComeFromEveryCall(t *testing.T) {
	c, err := framework.New(framework.Config{Servers: []string{"192.0.2.1"}})
	require.NoError(t, err)
	for says, e := range map[string]*election.Election{
		"client is nil": election.New(nil, path),
		"invalid path":  election.New(c, "a"),
		"the root":      election.New(c, "/"),
		"id is empty":   election.New(c, path, election.WithID("")),
		"5000 bytes":    election.New(c, path, election.WithID(strings.Repeat("x", 5000))),
	} {
		_, err := e.Campaign(t.Context())
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, e.Lead(t.Context(), func(context.Context, *election.Term) error { return nil }), says)
		_, err = e.Leader(t.Context())
		require.ErrorContains(t, err, says)
		_, err = e.Candidates(t.Context())
		require.ErrorContains(t, err, says)
		seen := 0
		for leader, err := range e.Follow(t.Context()) {
			require.Nil(t, leader)
			require.ErrorContains(t, err, says)
			seen++
		}
		require.Equal(t, 1, seen)
	}
	require.ErrorContains(t, election.New(c, path).Lead(t.Context(), nil), "function is nil")
}

func TestLocksAndElectionsShareNoPath(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		_, err := locks.NewMutex(a.client, path).Lock(t.Context())
		require.NoError(t, err)
		_, err = a.Campaign(t.Context())
		require.ErrorIs(t, err, framework.ErrForeign)
		require.ErrorIs(t, a.Lead(t.Context(), func(context.Context, *election.Term) error { return nil }),
			framework.ErrForeign)
		_, err = a.Leader(t.Context())
		require.ErrorIs(t, err, framework.ErrForeign)
		for _, err := range a.Follow(t.Context()) {
			require.ErrorIs(t, err, framework.ErrForeign)
		}
		synctest.Wait()
		require.Len(t, w.Children(path), 1, "the refused candidates are gone")
	})
}

func TestGivingUpLeavesNoCandidate(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := b.Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Len(t, w.Children(path), 1)
		require.NoError(t, term.Err())
		require.NoError(t, a.client.Close(t.Context()))
		require.ErrorIs(t, term.Err(), framework.ErrClosed)
		_, err = a.Campaign(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}
