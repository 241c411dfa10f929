package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// lists counts how often the line was listed.
func (w *world) lists() int64 { return w.zk.Requests()[zktest.OpGetChildren2] }

func TestALoneContenderNeedsNoList(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path)
		round := func() {
			l, err := m.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Release(t.Context()))
		}
		round()
		round()
		before := w.lists()
		for range 10 {
			round()
		}
		require.Equal(t, before, w.lists())
	})
}

// TestAnythingInBetweenMakesItLook lets others write, queue and leave between release and ask, each
// of which must be noticed.
func TestAnythingInBetweenMakesItLook(t *testing.T) {
	for name, between := range map[string]func(t *testing.T, w *world, other *zktest.Member) (held bool){
		"another holder": func(t *testing.T, _ *world, other *zktest.Member) bool {
			lock(t, other.Client)
			return true
		},
		"another write": func(t *testing.T, _ *world, other *zktest.Member) bool {
			require.NoError(t, other.Create(t.Context(), "/x", nil, framework.Persistent))
			return false
		},
		"a reaped directory, and another holder": func(t *testing.T, w *world, other *zktest.Member) bool {
			time.Sleep(time.Hour)
			lock(t, other.Client)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				other := w.member("other")
				m := locks.NewMutex(w.member("a").Client, path)
				for range 3 {
					l, err := m.Lock(t.Context())
					require.NoError(t, err)
					require.NoError(t, l.Release(t.Context()))
				}
				held := between(t, w, other)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := m.Lock(ctx)
				if held {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// TestWaiterBetweenLocksOfOneClientIsNotOvertaken has a waiter join while the lock is held, between
// two rounds of a client that would need no list.
func TestWaiterBetweenLocksOfOneClientIsNotOvertaken(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		m := locks.NewMutex(a.Client, path)
		var l *locks.Lease
		var err error
		for range 3 {
			l, err = m.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Release(t.Context()))
		}
		l, err = m.Lock(t.Context())
		require.NoError(t, err)
		got := make(chan *locks.Lease)
		go func() { got <- lock(t, b.Client) }()
		synctest.Wait()
		require.NoError(t, l.Release(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, (<-got).Err())
	})
}
