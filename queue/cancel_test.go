package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/zktest"
)

// dedupOptions are those of a queue whose items have ids.
func dedupOptions(opts ...Option) []Option {
	return append(opts, WithDedup(time.Hour), WithCapacity(100))
}

func TestCancelledItemIsNotDelivered(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		p, a := w.member("p", dedupOptions(order)...),
			w.member("a", dedupOptions(order, WithMaxInFlight(1), WithIdleTimeout(time.Second))...)
		for id, opts := range map[string][]PutOption{"base": nil, "urgent": {WithPriority(3)},
			"delayed": {WithDelay(time.Minute)}} {
			require.NoError(t, p.Put(t.Context(), id, append(opts, WithID(id))...))
		}
		require.NoError(t, p.Put(t.Context(), "kept", WithID("kept")))
		for _, id := range []string{"base", "urgent", "delayed", "base"} {
			require.NoError(t, p.Cancel(t.Context(), id), id)
		}
		require.Equal(t, []string{"kept"}, a.drain(1))
		time.Sleep(2 * time.Minute)
		a.requireNone()
		n, err := p.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
		require.Empty(t, w.Children(testPath+"/cancels"))
		require.ErrorIs(t, p.Cancel(t.Context(), "base"), ErrDone)
		require.NoError(t, p.Put(t.Context(), "open", WithID("open")))
		require.NoError(t, p.Put(t.Context(), "next", WithID("next")))
		d := a.take()
		require.NoError(t, p.Cancel(t.Context(), "next"), "the consumer knows the marks of before")
		require.NoError(t, p.Put(t.Context(), "last", WithID("last")))
		a.ack(d)
		require.Equal(t, []string{"last"}, a.drain(1))
		require.NoError(t, p.PutBatch(t.Context(), names(0, 100), WithDelay(time.Hour)), "the places are free")
	})
}

// TestCancelReturnedItem: in a parallel queue it is cancelled, and in a strict one it is not.
func TestCancelReturnedItem(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		p, a, b := w.member("p", dedupOptions(order)...), w.member("a", dedupOptions(order)...),
			w.member("b", dedupOptions(order)...)
		require.NoError(t, p.Put(t.Context(), "x", WithID("x")))
		d := a.take()
		require.ErrorIs(t, p.Cancel(t.Context(), "x"), ErrTaken)
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		require.NoError(t, a.Close(t.Context()))
		err := p.Cancel(t.Context(), "x")
		if p.engine.store.record().IsStrict() {
			require.ErrorIs(t, err, ErrTaken)
			require.Equal(t, []string{"x"}, b.drain(1))
			return
		}
		require.NoError(t, err)
		b.requireNone()
	})
}

func TestCancelRefusals(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		p := w.member("p", dedupOptions(order)...)
		require.ErrorIs(t, p.Cancel(t.Context(), "x"), errUnknownID)
		_, there := w.Node(testPath)
		require.False(t, there)
		require.NoError(t, p.Put(t.Context(), "x", WithID("x")))
		require.ErrorIs(t, p.Cancel(t.Context(), "y"), errUnknownID)
		require.ErrorIs(t, p.Cancel(t.Context(), ""), errOption)
		d := p.take()
		require.ErrorIs(t, p.Cancel(t.Context(), "x"), ErrTaken)
		p.ack(d)
		require.ErrorIs(t, p.Cancel(t.Context(), "x"), ErrDone)
		require.Empty(t, w.Children(testPath+"/cancels"))
		plain := New(p.client, "/queues/plain", codec.Text())
		require.NoError(t, plain.Put(t.Context(), "x"))
		require.ErrorIs(t, plain.Cancel(t.Context(), "x"), errOption)
		require.NoError(t, plain.Close(t.Context()))
		require.ErrorIs(t, plain.Cancel(t.Context(), "x"), errClosed)
	})
}

// TestCancelRacesWithTake: exactly one of "cancelled" and "delivered" is true, at each moment of
// the claim. The consumer has seen an item with an id before, or has not.
func TestCancelRacesWithTake(t *testing.T) {
	const step = 5 * time.Millisecond
	outcomes := map[bool]int{}
	for _, before := range []bool{false, true} {
		for after := time.Duration(0); after < 40*step; after += step {
			inEachOrder(t, func(t *testing.T, w *world, order Option) {
				p, a := w.member("p", dedupOptions(order)...), w.member("a", dedupOptions(order)...)
				if before {
					require.NoError(t, p.Put(t.Context(), "first", WithID("first")))
					a.drain(1)
				}
				require.NoError(t, p.Put(t.Context(), "x", WithID("x")))
				_, err := a.Len(t.Context())
				require.NoError(t, err)
				a.link.Delay(10 * time.Millisecond)
				p.link.Delay(7 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := make(chan error, 1)
				go func() {
					d, err := a.Take(ctx)
					if err == nil {
						err = d.Ack(t.Context())
					}
					got <- err
				}()
				time.Sleep(after)
				err = p.Cancel(t.Context(), "x")
				delivered := <-got == nil
				outcomes[delivered]++
				if delivered {
					require.True(t, errors.Is(err, ErrTaken) || errors.Is(err, ErrDone), "%v", err)
				} else {
					require.NoError(t, err)
				}
				require.Empty(t, w.Children(testPath+"/cancels"))
			})
		}
	}
	require.NotZero(t, outcomes[true])
	require.NotZero(t, outcomes[false])
}

// TestCancelAfterLostReply: of each of its writes. What Cancel says is true, or it says that it
// does not know.
func TestCancelAfterLostReply(t *testing.T) {
	for n := range 3 {
		for _, taken := range []bool{false, true} {
			for _, expires := range []bool{false, true} {
				t.Run(fmt.Sprintf("write %d, taken %v, session expires %v", n, taken, expires), func(t *testing.T) {
					inEachOrder(t, func(t *testing.T, w *world, order Option) {
						p, a := w.member("p", dedupOptions(order)...), w.member("a", dedupOptions(order)...)
						require.NoError(t, p.Put(t.Context(), "x", WithID("x")))
						var d *Delivery[string]
						if taken {
							d = a.take()
						}
						s, err := p.client.Session(t.Context())
						require.NoError(t, err)
						lost := w.DropReply(n+1, zktest.Match{Session: s.ID(), Func: writesMark})
						go func() {
							select {
							case <-lost.Hit():
								if expires {
									_ = w.Expire(s.ID())
								}
							case <-time.After(time.Minute):
							}
						}()
						err = p.Cancel(t.Context(), "x")
						switch {
						case taken:
							require.ErrorIs(t, err, ErrTaken)
							a.ack(d)
						case err == nil:
							a.requireNone()
						default:
							require.ErrorIs(t, err, errUnknown)
						}
						lost.Cancel()
						time.Sleep(time.Minute)
					})
				})
			}
		}
	}
}

// writesMark reports whether a request creates or deletes a mark, or makes the directory of the
// marks.
func writesMark(r zktest.Request) bool {
	return r.Op == zktest.OpMulti &&
		slices.ContainsFunc(r.Parts, func(part zktest.Request) bool { return strings.Contains(part.Path, "/cancels") })
}

// TestRemovalOfCancelledItemAfterLostReply: the consumer goes on, and frees the item's place once.
// By chance it tries again before or after it hears that marks may have changed; then it does not
// find the one that it has removed.
func TestRemovalOfCancelledItemAfterLostReply(t *testing.T) {
	for range 30 {
		inEachOrder(t, func(t *testing.T, w *world, order Option) {
			p, a := w.member("p", dedupOptions(order)...), w.member("a", dedupOptions(order)...)
			require.NoError(t, p.Put(t.Context(), "x", WithID("x")))
			require.NoError(t, p.Put(t.Context(), "y", WithID("y")))
			require.NoError(t, p.Cancel(t.Context(), "x"))
			_, err := a.Len(t.Context())
			require.NoError(t, err)
			s, err := a.client.Session(t.Context())
			require.NoError(t, err)
			lost := w.DropReply(1, zktest.Match{Session: s.ID(), Func: writesMark})
			require.Equal(t, []string{"y"}, a.drain(1))
			<-lost.Hit()
			require.NoError(t, p.PutBatch(t.Context(), names(0, 100), WithDelay(time.Hour)))
			full, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, p.Put(full, "beyond"), context.DeadlineExceeded)
		})
	}
}

// TestWithdrawnCancelDelivers: the consumer has seen the mark, and Cancel has found that the item
// was claimed before it.
func TestWithdrawnCancelDelivers(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		p, a := w.member("p", dedupOptions(order)...), w.member("a", dedupOptions(order)...)
		require.NoError(t, p.Put(t.Context(), "x", WithID("x")))
		require.NoError(t, p.Cancel(t.Context(), "x"))
		_, err := a.Len(t.Context())
		require.NoError(t, err)
		a.link.Delay(slow)
		w.beforeRequest(a, zktest.OpGetChildren2, testPath+"/cancels", func() {
			for _, mark := range w.Children(testPath + "/cancels") {
				if err := p.client.Delete(t.Context(), testPath+"/cancels/"+mark, 0); err != nil {
					t.Error(err)
				}
			}
		})
		got := a.takeInBackground()
		d := <-got
		require.Equal(t, "x", d.Value)
		require.Equal(t, 1, d.Attempt)
		a.ack(d)
	})
}

// TestPurgeBesideRemovalOfCancelledItem: the consumer finds that the item has gone, and gives its
// claim up.
func TestPurgeBesideRemovalOfCancelledItem(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p, a := w.member("p", dedupOptions()...),
			w.member("a", dedupOptions(WithMaxInFlight(1), WithIdleTimeout(time.Hour))...)
		require.NoError(t, p.Put(t.Context(), "x", WithID("x")))
		require.NoError(t, p.Cancel(t.Context(), "x"))
		_, err := a.Len(t.Context())
		require.NoError(t, err)
		a.link.Delay(slow)
		w.beforeRequest(a, zktest.OpGetChildren2, testPath+"/cancels", func() {
			if n, err := p.Purge(t.Context()); n != 1 || err != nil {
				t.Error(n, err)
			}
		})
		got := a.takeInBackground()
		time.Sleep(time.Minute)
		p.put("next")
		d := <-got
		require.Equal(t, "next", d.Value)
		require.NotContains(t, w.drawn(testPath), "tickets/items/0000000000/t-")
		a.ack(d)
	})
}
