package election_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// ids are the candidates in order.
func ids(t *testing.T, e *election.Election) (all []string) {
	t.Helper()
	line, err := e.Candidates(t.Context())
	require.NoError(t, err)
	for _, c := range line {
		all = append(all, c.ID)
	}
	return all
}

func TestATermIsTransferredPastOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		term := a.lead(t)
		won := map[string]<-chan *election.Term{}
		for _, id := range []string{"b", "c", "d", "e"} {
			won[id] = campaign(t, w.member(id).Election)
		}
		require.NoError(t, term.TransferTo(t.Context(), "d"))
		require.ErrorIs(t, term.Err(), election.ErrTransferred)
		require.ErrorContains(t, term.Err(), `"d"`)
		synctest.Wait()
		next := got(t, won["d"])
		require.Greater(t, next.Token(), term.Token())
		require.EqualValues(t, 2, next.Number(), "the others have not led")
		require.Equal(t, []string{"d", "e"}, ids(t, a.Election)[:2])
		require.ElementsMatch(t, []string{"d", "e", "b", "c"}, ids(t, a.Election), "who was passed over queues again")
		require.NoError(t, term.Resign(t.Context()))
		last := next.Token()
		for _, id := range ids(t, a.Election) {
			tm := next
			if id != "d" {
				tm = got(t, won[id])
				require.Greater(t, tm.Token(), last)
				last = tm.Token()
			}
			require.NoError(t, tm.Resign(t.Context()))
			synctest.Wait()
		}
		require.Empty(t, w.Children(path))
	})
}

func TestATransferWithinLeadWaitsForTheFunction(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var order []string
		var done time.Time
		lead := func(m *member, f func(context.Context, *election.Term) error) {
			go func() { _ = m.Lead(ctx, f) }()
			synctest.Wait()
		}
		stay := func(id string) func(context.Context, *election.Term) error {
			return func(ctx context.Context, term *election.Term) error {
				order = append(order, fmt.Sprint(id, term.Number()))
				<-ctx.Done()
				return nil
			}
		}
		first := true
		lead(a, func(ctx context.Context, term *election.Term) error {
			if !first {
				return stay("a")(ctx, term)
			}
			first = false
			time.Sleep(time.Minute)
			require.NoError(t, term.TransferTo(ctx, "c"))
			require.ErrorIs(t, context.Cause(ctx), election.ErrTransferred)
			time.Sleep(time.Second)
			done = time.Now()
			return nil
		})
		lead(b, stay("b"))
		lead(c, func(ctx context.Context, term *election.Term) error {
			require.Equal(t, done, time.Now())
			return stay("c")(ctx, term)
		})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"c2"}, order)
		require.ElementsMatch(t, []string{"c", "b", "a"}, ids(t, a.Election))
	})
}

func TestATransferToNobodyChangesNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		campaign(t, b.Election)
		for _, id := range []string{"x", "", "a"} {
			err := term.TransferTo(t.Context(), id)
			require.ErrorIs(t, err, framework.ErrNotFound)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, fmt.Sprintf("%q", id))
		}
		require.NoError(t, term.Err())
		require.NoError(t, term.Resign(t.Context()))
		require.ErrorIs(t, term.TransferTo(t.Context(), "b"), locks.ErrReleased)
	})
}

// yieldingClock lets other goroutines go on whenever a lease is looked at.
type yieldingClock struct{ clock.Clock }

func (c yieldingClock) Now() time.Duration {
	for range 1000 {
		runtime.Gosched()
	}
	return c.Clock.Now()
}

// TestOfTransfersAtOnceOneIsDone lets the transfers race: whichever returns nil names the next
// leader.
func TestOfTransfersAtOnceOneIsDone(t *testing.T) {
	for range 10 {
		in(t, func(t *testing.T, w *world) {
			clock := yieldingClock{clock.Time()}
			term, err := election.New(w.Member(t, "a", config, testclock.WithClock(clock)).Client,
				path).Campaign(t.Context())
			require.NoError(t, err)
			won := map[string]<-chan *election.Term{}
			for _, id := range []string{"b", "c"} {
				won[id] = campaign(t, w.member(id).Election)
			}
			const each = 10
			type result struct {
				id  string
				err error
			}
			results := make(chan result, 2*each)
			for i := range 2 * each {
				id := []string{"b", "c"}[i%2]
				go func() { results <- result{id, term.TransferTo(t.Context(), id)} }()
			}
			var done []string
			for range 2 * each {
				if r := <-results; r.err == nil {
					done = append(done, r.id)
				} else {
					require.ErrorIs(t, r.err, election.ErrTransferred)
				}
			}
			require.Len(t, done, 1)
			next := got(t, won[done[0]])
			require.ErrorContains(t, term.Err(), fmt.Sprintf("%q", done[0]))
			require.NoError(t, next.Resign(t.Context()))
		})
	}
}

// TestTransferReportsEndOfTermDuringList: the line that it has listed is that of the next term.
func TestTransferReportsEndOfTermDuringList(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		term := a.lead(t)
		a.link.Delay(50 * time.Millisecond)
		result := make(chan error)
		go func() { result <- term.TransferTo(t.Context(), "b") }()
		synctest.Wait()
		require.NoError(t, term.Resign(t.Context()))
		err := <-result
		require.ErrorIs(t, err, term.Err())
		require.NotErrorIs(t, err, framework.ErrNotFound)
	})
}

func TestATransferWhoseReplyIsLostIsDoneOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		term := a.lead(t)
		won := map[string]<-chan *election.Term{}
		for _, id := range []string{"b", "c", "d"} {
			won[id] = campaign(t, w.member(id).Election)
		}
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		require.NoError(t, term.TransferTo(t.Context(), "d"))
		next := got(t, won["d"])
		require.NoError(t, next.Err())
		time.Sleep(timeout)
		require.Equal(t, "d", ids(t, a.Election)[0])
		require.NoError(t, next.Err())
	})
}

func TestATransferToWhoHasLeftGoesToTheFirst(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c, d := w.member("a"), w.member("b"), w.member("c"), w.member("d")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		proceed := make(chan struct{})
		go func() {
			_ = a.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				<-proceed
				require.NoError(t, term.TransferTo(ctx, "c"))
				require.NoError(t, c.client.Close(context.Background()))
				return election.ErrStop
			})
		}()
		synctest.Wait()
		won := campaign(t, b.Election)
		campaign(t, c.Election)
		campaign(t, d.Election)
		close(proceed)
		require.EqualValues(t, 2, got(t, won).Number(), "it has kept its place before d")
	})
}

func TestATransferSkipsWhoHasLeftMeanwhile(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c, d := w.member("a"), w.member("b"), w.member("c"), w.member("d")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		proceed := make(chan struct{})
		go func() {
			_ = a.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				<-proceed
				require.NoError(t, term.TransferTo(ctx, "d"))
				require.NoError(t, b.client.Close(context.Background()))
				return election.ErrStop
			})
		}()
		synctest.Wait()
		campaign(t, b.Election)
		campaign(t, c.Election)
		won := campaign(t, d.Election)
		close(proceed)
		require.EqualValues(t, 2, got(t, won).Number())
	})
}

func TestATransferIsFinishedWhenLeadsContextHasEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		proceed := make(chan struct{})
		go func() {
			done <- a.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				<-proceed
				require.NoError(t, term.TransferTo(ctx, "c"))
				cancel()
				return nil
			})
		}()
		synctest.Wait()
		campaign(t, b.Election)
		won := campaign(t, c.Election)
		close(proceed)
		require.NoError(t, got(t, done))
		require.NoError(t, got(t, won).Err())
	})
}

func TestALeaderThatIsCutOffTransfersNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		proceed := make(chan struct{})
		go func() {
			_ = a.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				<-proceed
				require.NoError(t, term.TransferTo(ctx, "c"))
				a.link.Cut()
				return election.ErrStop
			})
		}()
		synctest.Wait()
		won := campaign(t, b.Election)
		campaign(t, c.Election)
		close(proceed)
		next := got(t, won)
		require.NoError(t, next.Err())
		a.link.Heal()
		time.Sleep(timeout)
		require.NoError(t, next.Err(), "a transfer that comes late does nothing")
		require.Equal(t, []string{"b", "c"}, ids(t, b.Election))
	})
}

// TestCandidatesOfOneClientArePassedOverToo: the release of the leader's place wakes the next place
// of its client, whose node is gone. None of these candidates gets a term before the successor's
// has ended, whether that is of the same client or not, and all are in line again.
func TestCandidatesOfOneClientArePassedOverToo(t *testing.T) {
	for name, other := range map[string]bool{"to the same client": false, "to another client": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a := w.member("a")
				of := func(id string) *election.Election { return election.New(a.client, path, election.WithID(id)) }
				term, err := of("1").Campaign(t.Context())
				require.NoError(t, err)
				passed := make(chan *election.Term, 3)
				for _, id := range []string{"2", "3", "4"} {
					won := campaign(t, of(id))
					go func() {
						for term := range won {
							passed <- term
						}
					}()
				}
				successor := of("5")
				if other {
					successor = election.New(w.member("b").client, path, election.WithID("5"))
				}
				won := campaign(t, successor)
				require.NoError(t, term.TransferTo(t.Context(), "5"))
				next := got(t, won)
				time.Sleep(timeout)
				require.NoError(t, next.Err())
				require.EqualValues(t, 2, next.Number())
				line := ids(t, of("x"))
				require.Equal(t, "5", line[0])
				require.ElementsMatch(t, []string{"2", "3", "4"}, line[1:])
				require.Empty(t, passed)
				require.NoError(t, next.Resign(t.Context()))
				for number := int64(3); number <= 5; number++ {
					following := got(t, passed)
					require.Equal(t, number, following.Number())
					require.NoError(t, following.Resign(t.Context()))
				}
			})
		})
	}
}

// TestTransfersUnderFaults transfers at random while links are taken away: nobody leads beside
// another, and all stay in line.
func TestTransfersUnderFaults(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { storm(t, w, seed) })
		})
	}
}

// TestTransferBehindALaggingServer: the candidate is in line, but the server of the leader, or of
// who asks for the transfer, does not show that yet.
func TestTransferBehindALaggingServer(t *testing.T) {
	for name, transfer := range map[string]func(ctx context.Context, a *member, term *election.Term) error{
		"TransferTo": func(ctx context.Context, _ *member,
			term *election.Term) error {
			return term.TransferTo(ctx, "b")
		},
		"RequestTransfer": func(ctx context.Context, a *member,
			_ *election.Term) error {
			return a.RequestTransfer(ctx, "b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				began, _ := reigns(t.Context(), a.Election)
				term := got(t, began)
				s, err := a.client.Session(t.Context())
				require.NoError(t, err)
				catchUp, err := w.Lag(s.ID())
				require.NoError(t, err)
				defer catchUp()
				next, _ := reigns(t.Context(), b.Election)
				require.NoError(t, transfer(t.Context(), a, term))
				got(t, next)
			})
		})
	}
}
