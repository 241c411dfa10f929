package election_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// sightings are what one observer has been told: ids, and "" for nobody.
type sightings struct {
	mu   sync.Mutex
	ids  []string
	all  []*election.Candidate
	err  error
	done chan struct{}
}

func watch(ctx context.Context, e *election.Election) *sightings {
	s := &sightings{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for leader, err := range e.Follow(ctx) {
			s.add(leader, err)
		}
	}()
	return s
}

func (s *sightings) add(leader *election.Candidate, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if err != nil {
		return
	}
	id := ""
	if leader != nil {
		id = leader.ID
	}
	s.ids, s.all = append(s.ids, id), append(s.all, leader)
}

func (s *sightings) last() election.Candidate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.all[len(s.all)-1]
}

func (s *sightings) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

func TestObserveFollowsTheLeaders(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		ctx, cancel := context.WithCancel(t.Context())
		s := watch(ctx, c.Election)
		synctest.Wait()
		require.Equal(t, []string{""}, s.seen(), "there is no directory yet")

		ta := a.lead(t)
		synctest.Wait()
		require.Equal(t, []string{"", "a"}, s.seen())
		next := make(chan *election.Term)
		go func() {
			tb, _ := b.Campaign(context.Background())
			next <- tb
		}()
		synctest.Wait()
		require.Equal(t, []string{"", "a"}, s.seen(), "a candidate is no news")
		require.NoError(t, ta.Resign(t.Context()))
		tb := <-next
		synctest.Wait()
		require.Equal(t, []string{"", "a", "b"}, s.seen())
		require.NoError(t, tb.Resign(t.Context()))
		synctest.Wait()
		require.Equal(t, []string{"", "a", "b", ""}, s.seen())
		time.Sleep(3 * time.Minute) // the empty directory is removed
		require.Empty(t, w.Tree(path))
		a.lead(t)
		synctest.Wait()
		require.Equal(t, []string{"", "a", "b", "", "a"}, s.seen())
		cancel()
		<-s.done
		require.NoError(t, s.err, "the end of its context is no error")
	})
}

func TestObserveSurvivesLostSessionsWithoutRepeating(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		a.lead(t)
		s := watch(t.Context(), b.Election)
		synctest.Wait()
		sb, err := b.client.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Expire(sb.ID()))
		time.Sleep(timeout)
		b.link.Reset()
		time.Sleep(timeout)
		require.Equal(t, []string{"a"}, s.seen())
		b.link.Cut()
		require.NoError(t, a.client.Close(t.Context()))
		time.Sleep(timeout / 4)
		require.Equal(t, []string{"a"}, s.seen())
		b.link.Heal()
		time.Sleep(2 * timeout)
		require.Equal(t, []string{"a", ""}, s.seen())
		require.NoError(t, b.client.Close(t.Context()))
		<-s.done
		require.ErrorIs(t, s.err, framework.ErrClosed)
	})
}

func TestObserveCanBeLeft(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.lead(t)
		for leader, err := range a.Follow(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, "a", leader.ID)
			break
		}
	})
}

func TestObserversDoNotStampede(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const observers = 20
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all []*sightings
		for i := range observers {
			all = append(all, watch(ctx, w.member(fmt.Sprint("o", i)).Election))
		}
		synctest.Wait()
		reads := func() (n int64) {
			got := w.Requests()
			return got[zktest.OpGetChildren] + got[zktest.OpGetChildren2] + got[zktest.OpGetData] + got[zktest.OpExists]
		}
		before := reads()
		for range 10 { // candidates come and go
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := b.Campaign(ctx)
			require.Error(t, err)
			cancel()
			synctest.Wait()
		}
		require.Less(t, reads()-before, int64(60), "observers look at nothing but the leader")
		before = reads()
		require.NoError(t, term.Resign(t.Context()))
		synctest.Wait()
		require.LessOrEqual(t, reads()-before, int64(3*observers))
		for _, s := range all {
			require.Equal(t, []string{"a", ""}, s.seen())
		}
	})
}

// TestObserveAgainstTheHistory compares what observers on bad links are told with what has happened
// on the server: it must be a part of that, in order, and end with the latest. With -short it has
// fewer seeds.
func TestObserveAgainstTheHistory(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { againstHistory(t, w, rand.New(rand.NewPCG(seed, 99))) })
		})
	}
}

func againstHistory(t *testing.T, w *world, r *rand.Rand) {
	h := &history{}
	defer w.Observe(h.see)()
	ctx, cancel := context.WithCancel(t.Context())
	var candidates sync.WaitGroup
	for i := range 4 {
		m := w.member(fmt.Sprint("m", i))
		candidates.Go(func() {
			_ = m.Lead(ctx, func(ctx context.Context, _ *election.Term) error {
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(i+1) * 700 * time.Millisecond):
				}
				return nil
			})
		})
	}
	observing, stop := context.WithCancel(t.Context())
	var seen []*sightings
	var links []*zktest.Link
	for i := range 5 {
		o := w.member(fmt.Sprint("o", i))
		links = append(links, o.link)
		seen = append(seen, watch(observing, o.Election))
	}
	for range 150 {
		time.Sleep(time.Duration(r.Int64N(int64(4 * time.Second))))
		hurtObserver(w, r, links[r.IntN(len(links))])
	}
	cancel()
	candidates.Wait()
	for _, l := range links {
		l.Heal()
	}
	time.Sleep(3 * timeout)
	synctest.Wait()
	stop()
	want := h.leaders()
	require.Greater(t, len(want), 100)
	for i, s := range seen {
		<-s.done
		require.NoError(t, s.err)
		got := s.tokens()
		require.NotEmpty(t, got)
		requirePartInOrder(t, want, got, "observer %d", i)
		require.Zero(t, got[len(got)-1], "nobody leads in the end")
	}
}

func hurtObserver(w *world, r *rand.Rand, l *zktest.Link) {
	switch r.IntN(6) {
	case 0:
		l.Cut()
	case 1:
		l.BlackHole(true, true)
	case 2:
		l.Reset()
	case 3:
		for _, s := range w.Sessions() {
			if strings.HasPrefix(s.Remote, l.Name()+"#") {
				_ = w.Expire(s.ID)
			}
		}
	default:
		l.Heal()
	}
}

// history is what has happened on the server.
type history struct {
	mu    sync.Mutex
	alive []string         // in order of their numbers
	token map[string]int64 // of a node
	led   []int64          // the leader after each change, 0: nobody
}

func (h *history) see(r zktest.Request) {
	if r.Err != 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.Op == zktest.OpCreate && strings.HasPrefix(r.Result, path+"/"):
		if h.token == nil {
			h.token = map[string]int64{}
		}
		h.token[r.Result] = r.Zxid
		h.alive = append(h.alive, r.Result)
	case r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, path+"/"):
		h.alive = slices.DeleteFunc(h.alive, func(n string) bool { return n == r.Path })
	default:
		return
	}
	now := int64(0)
	if len(h.alive) > 0 {
		now = h.token[h.alive[0]]
	}
	if n := len(h.led); n == 0 || h.led[n-1] != now {
		h.led = append(h.led, now)
	}
}

func (h *history) leaders() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]int64{0}, h.led...)
}

func (s *sightings) tokens() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int64, len(s.all))
	for i, c := range s.all {
		if c != nil {
			out[i] = c.Token
		}
	}
	return out
}

// requirePartInOrder checks that got can be had by leaving out parts of want, without repetition.
func requirePartInOrder(t *testing.T, want, got []int64, msg string, args ...any) {
	t.Helper()
	i := 0
	for n, token := range got {
		if n > 0 {
			require.NotEqual(t, got[n-1], token, "repeated: "+fmt.Sprintf(msg, args...))
		}
		for i < len(want) && want[i] != token {
			i++
		}
		require.Less(t, i, len(want), "%s: %d is not in order: %v of %v", fmt.Sprintf(msg, args...), token, got, want)
	}
}
