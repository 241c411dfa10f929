package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestUndeliveredItemCountsNoAttempt: a strict queue's consumer that leaves in order takes back
// what it had claimed ahead, however it leaves.
func TestUndeliveredItemCountsNoAttempt(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, m *member, d *Delivery[string]){
		"closes": func(t *testing.T, m *member, d *Delivery[string]) {
			m.ack(d)
			time.Sleep(time.Second)
			require.NoError(t, m.Close(t.Context()))
		},
		"closes at once": func(t *testing.T, m *member, d *Delivery[string]) {
			m.link.Delay(slow)
			d.AckAsync() // the next claims are on their way
			require.NoError(t, m.Close(t.Context()))
		},
		"lingers": func(_ *testing.T, m *member, d *Delivery[string]) {
			m.ack(d)
			time.Sleep(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				opts := []Option{WithOrder(Strict), WithMaxAttempts(2), WithMaxInFlight(8), WithPrefetch(7),
					segmentSize(3)}
				p := w.member("p", WithOrder(Strict), segmentSize(3))
				p.put(names(0, 10)...)
				require.NoError(t, p.Put(t.Context(), "urgent", WithPriority(2)))
				for i := range 4 { // as in four deploys
					m := w.member(fmt.Sprint("m", i), opts...)
					d := m.take()
					require.Equal(t, 1, d.Attempt, d.Value)
					leave(t, m, d)
				}
				last := w.member("last", WithOrder(Strict))
				require.Empty(t, last.dead())
				counts, err := last.Counts(t.Context())
				require.NoError(t, err)
				for range counts.Items {
					d := last.take()
					require.Equal(t, 1, d.Attempt, d.Value)
					last.ack(d)
				}
			})
		})
	}
}

// TestStrictPrefetchBehindNackCountsNoAttempt: it waits behind that one, as if it were claimed no
// more.
func TestStrictPrefetchBehindNackCountsNoAttempt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithOrder(Strict), WithMaxInFlight(8), WithPrefetch(7)), w.member("b", WithOrder(Strict))
		a.put(names(0, 5)...)
		first, second := a.take(), a.take()
		time.Sleep(time.Second)
		require.NoError(t, second.Nack(t.Context(), time.Hour, nil))
		a.ack(first)
		require.NoError(t, a.Close(t.Context()))
		for i, want := range []int{2, 1, 1, 1} {
			d := b.take()
			require.Equal(t, names(1, 5)[i], d.Value)
			require.Equal(t, want, d.Attempt, d.Value)
			b.ack(d)
		}
	})
}

// TestClaimAfterTakeEndedCountsNoAttempt: the Take was given up while its claim was on its way, be
// it the first claim of its item or a later one.
func TestClaimAfterTakeEndedCountsNoAttempt(t *testing.T) {
	for _, before := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(before, " attempts before"), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				strict := WithOrder(Strict)
				p := w.member("p", strict)
				p.put("x")
				for i := range before {
					m := w.member(fmt.Sprint("m", i), strict)
					require.Equal(t, i+1, m.take().Attempt)
					m.kill()
				}
				for i := range 2 {
					a := w.member(fmt.Sprint("a", i), strict)
					_, err := a.Len(t.Context())
					require.NoError(t, err)
					a.link.Delay(slow)
					s, err := a.client.Session(t.Context())
					require.NoError(t, err)
					ctx, giveUp := context.WithCancel(t.Context())
					stop := w.Observe(func(r zktest.Request) {
						if r.Session == s.ID() && (sets("/claimed")(r) || sets("/i-")(r)) {
							giveUp()
						}
					})
					_, err = a.Take(ctx)
					stop()
					require.Error(t, err)
					time.Sleep(time.Minute) // it lingers, and leaves
				}
				last := w.member("last", strict, WithMaxAttempts(before+1))
				d := last.take()
				require.Equal(t, before+1, d.Attempt)
				last.ack(d)
			})
		})
	}
}

func sets(below string) func(zktest.Request) bool {
	return func(r zktest.Request) bool {
		return slices.ContainsFunc(r.Parts, func(p zktest.Request) bool {
			return p.Op == zktest.OpSetData && strings.Contains(p.Path, below)
		})
	}
}

// TestClaimRefusedAfterPurgeCountsNoAttempt: the item was put after the purge, and nobody was
// handed it. Its consumer has also claimed an item of another chain ahead, which it gives back.
func TestClaimRefusedAfterPurgeCountsNoAttempt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithOrder(Strict), WithMaxInFlight(3), WithPrefetch(2), WithIdleTimeout(time.Hour)),
			w.member("p", WithOrder(Strict))
		a.put("1", "2")
		a.take()
		time.Sleep(time.Second)
		n, err := p.Purge(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.NoError(t, p.Put(t.Context(), "urgent", WithPriority(5)))
		time.Sleep(time.Second)
		d := a.take()
		require.Equal(t, "urgent", d.Value)
		require.Equal(t, 1, d.Attempt)
		a.ack(d)
	})
}
