package election_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestObserveAThousandLeaders compares what observers are told with the terms that there were, told
// by the leaders themselves: quick ones, slow ones, and one behind a link that is hurt all the
// time.
func TestObserveAThousandLeaders(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const terms = 1000
		r := rand.New(rand.NewPCG(5, 100))
		observing, stop := context.WithCancel(t.Context())
		quick := watch(observing, w.member("quick").Election)
		slow := watchSlowly(observing, w.member("slow").Election, 5*time.Second)
		bad := w.member("bad")
		cut := watch(observing, bad.Election)

		book := &book{}
		ctx, enough := context.WithCancel(t.Context())
		defer enough()
		var all sync.WaitGroup
		for i := range 5 {
			e := election.New(w.member(fmt.Sprint("m", i)).client, path,
				election.WithMetadata(map[string]string{"i": fmt.Sprint(i)}))
			mine := rand.New(rand.NewPCG(6, uint64(i)))
			all.Go(func() {
				_ = e.Lead(ctx, func(ctx context.Context, term *election.Term) error {
					if book.enter(term) == terms {
						enough()
					}
					time.Sleep(time.Duration(mine.Int64N(int64(2 * time.Second))))
					return nil
				})
			})
		}
		hurt := make(chan struct{})
		go func() {
			defer close(hurt)
			for ctx.Err() == nil {
				time.Sleep(time.Duration(r.Int64N(int64(20 * time.Second))))
				hurtObserver(w, r, bad.link)
			}
			bad.link.Heal()
		}()
		all.Wait()
		<-hurt
		time.Sleep(3 * timeout)
		synctest.Wait()
		stop()
		require.Len(t, book.tokens, terms)
		require.Equal(t, terms, book.check(t, quick), "a quick observer on a good link misses none")
		require.Less(t, book.check(t, slow), terms/2)
		require.Greater(t, book.check(t, cut), terms/10)
	})
}

// book is all terms in the order of their numbers, which begin at 1 and have no gaps here: no
// winner is lost.
type book struct {
	mu     sync.Mutex
	tokens []int64
}

func (b *book) enter(term *election.Term) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = append(b.tokens, term.Token())
	return len(b.tokens)
}

// check makes sure that the sightings are terms in order, each once, with their own numbers, so
// that gaps in the numbers are exactly the terms that are missing; and that nobody leads in the
// end. It counts the terms.
func (b *book) check(t *testing.T, s *sightings) (seen int) {
	t.Helper()
	<-s.done
	require.NoError(t, s.err)
	last := int64(0)
	for _, c := range s.all {
		if c == nil {
			continue
		}
		require.Greater(t, c.Number, last)
		require.Equal(t, b.tokens[c.Number-1], c.Token)
		require.Equal(t, "m"+c.Metadata["i"], c.ID)
		last = c.Number
		seen++
	}
	require.Nil(t, s.all[len(s.all)-1])
	return seen
}

// watchSlowly takes its time with each sighting.
func watchSlowly(ctx context.Context, e *election.Election, each time.Duration) *sightings {
	s := &sightings{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for leader, err := range e.Follow(ctx) {
			s.add(leader, err)
			time.Sleep(each)
		}
	}()
	return s
}

func TestALeaderThatCountsNoTermsIsTold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		seen := watch(t.Context(), b.Election)
		synctest.Wait()
		require.NoError(t, b.client.Create(t.Context(), path+"/_c_0-latch-0000000005", []byte("java"), 1)) // ephemeral
		ended := time.Now()
		require.NoError(t, term.Resign(t.Context()))
		time.Sleep(400 * time.Millisecond)
		require.Equal(t, []string{"a"}, seen.seen())
		time.Sleep(200 * time.Millisecond)
		require.Equal(t, []string{"a", "java"}, seen.seen())
		require.Zero(t, seen.last().Number)
		require.Less(t, time.Since(ended), time.Second)
		leader, err := a.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "java", leader.ID)
		require.Zero(t, leader.Number)
		require.NoError(t, b.client.Delete(t.Context(), path+"/_c_0-latch-0000000005", -1))
		synctest.Wait()
		require.EqualValues(t, 2, a.lead(t).Number())
		synctest.Wait()
		require.Equal(t, []string{"a", "java", "", "a"}, seen.seen())
	})
}

func TestObserversOfAReignAskLittle(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const observers = 10
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		won := campaign(t, b.Election)
		var all []*sightings
		for i := range observers {
			all = append(all, watch(t.Context(), w.member(fmt.Sprint("o", i)).Election))
		}
		synctest.Wait()
		reads := func() (n int64) {
			got := w.Requests()
			return got[zktest.OpGetChildren] + got[zktest.OpGetChildren2] + got[zktest.OpGetData] + got[zktest.OpExists]
		}
		before := reads()
		require.NoError(t, term.Resign(t.Context()))
		next := got(t, won)
		synctest.Wait()
		require.LessOrEqual(t, reads()-before, int64(5*observers+10))
		before = reads()
		require.NoError(t, next.SetMetadata(t.Context(), map[string]string{"a": "b"}))
		synctest.Wait()
		require.LessOrEqual(t, reads()-before, int64(observers))
		for _, s := range all {
			require.Equal(t, []string{"a", "b", "b"}, s.seen())
		}
	})
}
