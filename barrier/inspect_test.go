package barrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
)

func inspect(t *testing.T, c *framework.Client, path string) barrier.Report {
	t.Helper()
	r, err := barrier.Inspect(t.Context(), c, path)
	require.NoError(t, err)
	require.Equal(t, path, r.Path)
	return r
}

func owners(members []barrier.Member) (names []string) {
	for _, m := range members {
		names = append(names, m.Owner)
	}
	return names
}

func TestInspectTellsWhoIsInsideAndWhoWaits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := w.members(4)
		looker := w.member("looker").Client
		_, err := barrier.Inspect(t.Context(), looker, path)
		require.ErrorIs(t, err, framework.ErrNoNode)
		b := make([]*barrier.DoubleBarrier, len(all))
		for i, m := range all {
			b[i] = barrier.NewDoubleBarrier(m.Client, path, 3)
		}
		entering := []*entrance{enter(t, t.Context(), b[0])}
		synctest.Wait()
		entering = append(entering, enter(t, t.Context(), b[1]))
		synctest.Wait()
		r := inspect(t, looker, path)
		require.Equal(t, barrier.KindDoubleBarrier, r.Kind)
		require.Equal(t, []string{"a", "b"}, owners(r.Waiting))
		require.Equal(t, [4]int{3, 1, 0, 0}, [4]int{r.Needed, r.Missing, len(r.Inside), int(r.Rounds)})
		require.NotZero(t, r.Waiting[0].Session)
		require.False(t, r.Waiting[0].Since.IsZero())

		entering = append(entering, enter(t, t.Context(), b[2]))
		synctest.Wait()
		late, cancel := context.WithCancel(t.Context())
		next := enter(t, late, b[3])
		synctest.Wait()
		r = inspect(t, looker, path)
		require.Equal(t, []string{"a", "b", "c"}, owners(r.Inside))
		require.Equal(t, []string{"d"}, owners(r.Waiting))
		require.Equal(t, [3]int{0, 0, 1}, [3]int{r.Missing, r.Left, int(r.Rounds)})

		left := make(chan error, 3)
		for i, e := range entering {
			<-e.done
			require.NoError(t, e.err)
			if i == 0 {
				require.NoError(t, w.Expire(w.session(all[0]).ID()))
				continue
			}
			if i == 1 {
				go func() { left <- e.r.Leave(context.Background()) }()
			}
		}
		time.Sleep(3 * timeout)
		synctest.Wait()
		r = inspect(t, looker, path)
		require.Equal(t, []string{"c"}, owners(r.Inside))
		require.Equal(t, 2, r.Left, "one has died, one has left")
		go func() { left <- entering[2].r.Leave(context.Background()) }()
		require.NoError(t, <-left)
		require.NoError(t, <-left)
		r = inspect(t, looker, path)
		require.Equal(t, [3]int{2, 0, 1}, [3]int{r.Missing, len(r.Inside), int(r.Rounds)})
		cancel()
		<-next.done
	})
}

func TestInspectTellsOfGatesAndLatches(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		g := barrier.NewGate(c, "/gates/held")
		lease, err := g.Hold(t.Context())
		require.NoError(t, err)
		r := inspect(t, c, "/gates/held")
		require.Equal(t, barrier.KindGate, r.Kind)
		require.Equal(t, "a", r.RaisedBy.Owner)
		require.Equal(t, w.session(w.member("b")).ID() != 0, r.RaisedBy.Session != 0)
		require.NoError(t, lease.Release(t.Context()))
		_, err = barrier.Inspect(t.Context(), c, "/gates/held")
		require.ErrorIs(t, err, framework.ErrNoNode, "it is down")
		require.NoError(t, g.Raise(t.Context()))
		require.Zero(t, inspect(t, c, "/gates/held").RaisedBy.Session)
		require.NoError(t, c.Create(t.Context(), "/gates/curators", []byte("10.0.0.7"), framework.Persistent))
		require.Equal(t, "10.0.0.7", inspect(t, c, "/gates/curators").RaisedBy.Host)

		l := barrier.NewLatch(c, "/latches/l", 2)
		require.NoError(t, l.CountDown(t.Context(), "x"))
		r = inspect(t, c, "/latches/l")
		require.Equal(t, barrier.Report{Path: "/latches/l", Kind: barrier.KindLatch, Needed: 2, Missing: 1,
			Counted: []string{"x"}}, r)
		require.NoError(t, l.CountDown(t.Context(), "y"))
		r = inspect(t, c, "/latches/l")
		require.True(t, r.Open)
		require.Zero(t, r.Missing)
	})
}

func TestInspectRefusesWhatIsNoBarrier(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		require.NoError(t, c.MakeDirs(t.Context(), "/x/below"))
		for data, want := range map[string]error{
			"":                                framework.ErrForeign,
			"text":                            framework.ErrForeign,
			`{"v":1,"kind":"member"}`:         framework.ErrForeign,
			`{"v":1,"kind":"gate"}`:           framework.ErrForeign, // it has children
			`{"v":1,"kind":"latch"}`:          framework.ErrForeign, // without a number
			`{"v":9,"kind":"gate"}`:           framework.ErrNewer,
			`{"v":1,"kind":"latch","size":2}`: framework.ErrForeign, // without its other nodes
			`{"v":1,"kind":"double barrier","size":2}`: framework.ErrForeign,
		} {
			_, err := c.Set(t.Context(), "/x", []byte(data), framework.AnyVersion)
			require.NoError(t, err)
			_, err = barrier.Inspect(t.Context(), c, "/x")
			require.ErrorIs(t, err, want, data)
		}
		_, err := barrier.Inspect(t.Context(), c, "x")
		require.ErrorIs(t, err, framework.ErrInvalid)
	})
}

func TestListFindsBarriers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		require.NoError(t, barrier.NewGate(c, "/apps/shop/gate").Raise(t.Context()))
		require.NoError(t, barrier.NewLatch(c, "/apps/latch", 2).CountDown(t.Context(), "x"))
		ctx, cancel := context.WithCancel(t.Context())
		e := enter(t, ctx, barrier.NewDoubleBarrier(c, "/apps/in", 2)) // a name of its own nodes
		synctest.Wait()
		require.NoError(t, c.Create(t.Context(), "/apps/broken", []byte(`{"v":1,"kind":"latch","size":2}`),
			framework.Persistent))
		require.NoError(t, c.Create(t.Context(), "/apps/other", make([]byte, 900_000), framework.Persistent))
		found := map[string]barrier.Kind{}
		broken := 0
		for r, err := range barrier.List(t.Context(), c, "/") {
			if err != nil {
				require.ErrorIs(t, err, framework.ErrForeign)
				require.ErrorContains(t, err, "/apps/broken")
				broken++
				continue
			}
			found[r.Path] = r.Kind
		}
		require.Equal(t, 1, broken)
		require.Equal(t, map[string]barrier.Kind{"/apps/shop/gate": barrier.KindGate,
			"/apps/latch": barrier.KindLatch, "/apps/in": barrier.KindDoubleBarrier}, found)
		cancel()
		<-e.done
	})
}

// TestInspectSeesOneMoment looks while rounds begin and end: a member is never inside a round that
// has not begun.
func TestInspectSeesOneMoment(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		looker := w.member("looker").Client
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{}, 3)
		for i, m := range w.members(3) {
			go func() {
				defer func() { done <- struct{}{} }()
				b := barrier.NewDoubleBarrier(m.Client, path, 3)
				for ctx.Err() == nil {
					time.Sleep(time.Duration(i) * time.Millisecond)
					r, err := b.Enter(ctx)
					if err != nil {
						return
					}
					time.Sleep(time.Millisecond)
					_ = r.Leave(ctx)
				}
			}()
		}
		seen := map[int]bool{}
		for range 300 {
			time.Sleep(time.Millisecond / 4)
			r, err := barrier.Inspect(t.Context(), looker, path)
			if err != nil {
				require.ErrorIs(t, err, framework.ErrNoNode)
				continue
			}
			seen[len(r.Inside)] = true
			require.LessOrEqual(t, len(r.Inside)+r.Left, 3)
			require.Equal(t, len(r.Inside) > 0 || r.Left > 0, len(r.Inside)+r.Left == 3, "%+v", r)
		}
		require.Greater(t, len(seen), 1)
		cancel()
		for range 3 {
			<-done
		}
	})
}

// An error of the search is the last, also when no node was found before.
func TestListEndsWithTheErrorOfItsSearch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		list := func(ctx context.Context) (errs []error) {
			for r, err := range barrier.List(ctx, c, "/") {
				require.Zero(t, r)
				errs = append(errs, err)
			}
			return errs
		}
		errs := list(ended)
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], context.Canceled)
		require.NoError(t, c.Close(t.Context()))
		errs = list(t.Context())
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], framework.ErrClosed)
	})
}
