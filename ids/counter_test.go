package ids_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/zktest"
)

const markers = path + "~writers"

// counter returns a counter that is closed at the end of the test.
func counter(t *testing.T, m *zktest.Member, opts ...ids.CounterOption) *ids.Counter {
	c := ids.NewCounter(m.Client, path, opts...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

func value(t *testing.T, c *ids.Counter) int64 {
	t.Helper()
	n, err := c.Get(t.Context())
	require.NoError(t, err)
	return n
}

func add(t *testing.T, c *ids.Counter, delta int64) int64 {
	t.Helper()
	n, err := c.Add(t.Context(), delta)
	require.NoError(t, err)
	return n
}

func TestACounterHasCuratorsBytes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		c := counter(t, m)
		require.Zero(t, value(t, c))
		require.EqualValues(t, 258, add(t, c, 258))
		require.Equal(t, "\x00\x00\x00\x00\x00\x00\x01\x02", w.data(path))
		require.EqualValues(t, -1, add(t, c, -259))
		require.Equal(t, "\xff\xff\xff\xff\xff\xff\xff\xff", w.data(path))
		require.NoError(t, m.Delete(t.Context(), path, framework.AnyVersion))
		c = counter(t, m, ids.WithSharedCount())
		require.EqualValues(t, 258, add(t, c, 258))
		require.Equal(t, "\x00\x00\x01\x02", w.data(path))
		require.EqualValues(t, -2, add(t, c, -260))
		require.EqualValues(t, -2, value(t, c))
		require.Equal(t, "\xff\xff\xff\xfe", w.data(path))
	})
}

// TestAnAddCountsOnce: its reply, its request or the session is lost, and another client adds the
// same number.
func TestAnAddCountsOnce(t *testing.T) {
	for _, lost := range []string{"reply", "request", "session", "reply and session"} {
		for nth := 1; nth <= 3; nth++ {
			t.Run(fmt.Sprint(lost, nth), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					m := w.member("a")
					a, b := counter(t, m), counter(t, w.member("b"))
					add(t, b, 1)
					sums := map[int64]bool{1: true}
					left, own := nth, w.session(m).ID()
					m.Link.Delay(10 * time.Millisecond)
					if lost == "reply" || lost == "reply and session" {
						f := w.DropReply(nth, zktest.Match{Op: zktest.OpMulti, Session: own,
							Func: zktest.Request.Writes})
						defer f.Cancel()
						go func() {
							<-f.Hit()
							if lost != "reply" {
								m.Link.Cut()
								time.Sleep(2 * timeout)
								m.Link.Heal()
							}
						}()
					} else {
						stop := w.Observe(func(r zktest.Request) {
							if r.Session == own && r.Op == zktest.OpGetData && r.Path == path {
								if left--; left == 0 {
									go func() { // the transaction that follows is sent, and does not arrive
										m.Link.BlackHole(true, false)
										time.Sleep(time.Second)
										m.Link.Cut()
										if lost == "session" {
											time.Sleep(2 * timeout)
										}
										m.Link.Heal()
									}()
								}
							}
						})
						defer stop()
					}
					var all sync.WaitGroup
					all.Go(func() {
						for range 5 {
							sums[add(t, a, 1)] = true
							time.Sleep(time.Millisecond)
						}
					})
					time.Sleep(500 * time.Millisecond)
					add(t, b, 1)
					all.Wait()
					require.EqualValues(t, 7, value(t, b))
					require.Len(t, sums, 6, "each add has a sum of its own: %v", sums)
				})
			})
		}
	}
}

func TestAddsOfOneClientAreOneTransaction(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		c := counter(t, m)
		add(t, c, 1)
		m.Link.Delay(10 * time.Millisecond)
		before := w.Requests()[zktest.OpMulti]
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				last := int64(0)
				for range 10 {
					n := add(t, c, 1)
					require.Greater(t, n, last)
					last = n
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 321, value(t, c))
		require.LessOrEqual(t, w.Requests()[zktest.OpMulti]-before, int64(12))
	})
}

func TestAnAddEndsWithItsContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		c := counter(t, m)
		add(t, c, 1)
		m.Link.Cut()
		synctest.Wait() // until the session is suspended: it sends nothing from then on
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Add(ctx, 10)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, framework.ErrOutcomeUnknown, "it was not sent")
		m.Link.Heal()
		require.EqualValues(t, 1, value(t, c))
		_, err = c.Add(ctx, 10)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		f := w.DelayReplies(time.Second, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		short, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer end()
		_, err = c.Add(short, 100)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
		f.Cancel()
		require.EqualValues(t, 1101, add(t, c, 1000), "it was made")
	})
}

func TestACounterIsCompared(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		a, b := counter(t, m), counter(t, w.member("b"))
		require.NoError(t, a.CompareAndSet(t.Context(), 0, 5))
		require.ErrorIs(t, b.CompareAndSet(t.Context(), 0, 6), framework.ErrConflict)
		require.NoError(t, b.Set(t.Context(), 7))
		_, err := w.LagAsLeader(w.session(m).ID())
		require.NoError(t, err)
		require.NoError(t, b.Set(t.Context(), 8))
		require.NoError(t, a.CompareAndSet(t.Context(), 8, 9), "its server shows 7")
		require.EqualValues(t, 9, value(t, b))
		var won sync.Map
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if err := []*ids.Counter{a, b}[i%2].CompareAndSet(t.Context(), 9, int64(100+i)); err == nil {
					won.Store(int64(100+i), true)
				} else {
					require.ErrorIs(t, err, framework.ErrConflict)
				}
			})
		}
		all.Wait()
		n := 0
		won.Range(func(v, _ any) bool {
			n++
			require.Equal(t, value(t, a), v)
			return true
		})
		require.Equal(t, 1, n)
	})
}

func TestACounterDoesNotOverflow(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		c := counter(t, m)
		require.NoError(t, c.Set(t.Context(), math.MaxInt64-1))
		_, err := c.Add(t.Context(), 2)
		require.ErrorIs(t, err, ids.ErrExhausted)
		require.EqualValues(t, math.MaxInt64, add(t, c, 1))
		_, err = c.Add(t.Context(), 1)
		require.ErrorIs(t, err, ids.ErrExhausted)
		require.NoError(t, c.Set(t.Context(), math.MinInt64))
		_, err = c.Add(t.Context(), -1)
		require.ErrorIs(t, err, ids.ErrExhausted)
		require.EqualValues(t, math.MinInt64, value(t, c))
		require.NoError(t, m.Delete(t.Context(), path, framework.AnyVersion))
		s := counter(t, m, ids.WithSharedCount())
		require.ErrorIs(t, s.Set(t.Context(), math.MaxInt32+1), ids.ErrExhausted)
		require.NoError(t, s.Set(t.Context(), math.MaxInt32))
		_, err = s.Add(t.Context(), 1)
		require.ErrorIs(t, err, ids.ErrExhausted)
		require.EqualValues(t, math.MaxInt32, value(t, s))
	})
}

func TestACounterOfTextHasKazoosBytes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		w.put(m, path, "") // kazoo creates it so
		c := counter(t, m, ids.WithText())
		require.Zero(t, value(t, c))
		require.EqualValues(t, -7, add(t, c, -7))
		require.Equal(t, "-7", w.data(path))
		w.put(m, path, "9223372036854775806")
		require.EqualValues(t, math.MaxInt64, add(t, c, 1))
		_, err := c.Add(t.Context(), 1)
		require.ErrorIs(t, err, ids.ErrExhausted)
		for _, data := range []string{"7.5", "9223372036854775808", "\x00\x00\x00\x07", " 7"} {
			w.put(m, path, data)
			_, err := c.Add(t.Context(), 1)
			require.ErrorIs(t, err, framework.ErrForeign, data)
			require.Equal(t, data, w.data(path))
		}
	})
}

func TestForeignCountersStayAsTheyAre(t *testing.T) {
	for _, data := range []string{"", "7", "\x00\x00\x00\x07", "\x00\x00\x00\x00\x00\x00\x00\x00\x07",
		`{"v":1,"kind":"sequence","next":3}`} {
		in(t, func(t *testing.T, w *world) {
			m := w.member("a")
			w.put(m, path, data)
			c := counter(t, m)
			_, err := c.Add(t.Context(), 1)
			require.ErrorIs(t, err, framework.ErrForeign)
			require.ErrorIs(t, c.Set(t.Context(), 1), framework.ErrForeign)
			_, err = c.Get(t.Context())
			require.ErrorIs(t, err, framework.ErrForeign)
			require.Equal(t, data, w.data(path))
			w.put(m, path, "\x00\x00\x00\x00\x00\x00\x00\x07")
			require.EqualValues(t, 8, add(t, c, 1), "a person has written a number")
		})
	}
}

// TestADeletedMarkerMakesAnUnknownOutcome if a transaction has no answer. Otherwise the counter
// creates another marker.
func TestADeletedMarkerMakesAnUnknownOutcome(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, other := w.member("a"), w.member("b")
		c := counter(t, m)
		add(t, c, 1)
		deleteMarker := func() {
			names := w.Children(markers)
			require.Len(t, names, 1)
			require.NoError(t, other.Delete(t.Context(), markers+"/"+names[0], framework.AnyVersion))
		}
		deleteMarker()
		require.EqualValues(t, 2, add(t, c, 1))
		f := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		go func() {
			<-f.Hit()
			m.Link.Cut()
		}()
		failed := make(chan error, 1)
		go func() {
			_, err := c.Add(context.Background(), 1)
			failed <- err
		}()
		time.Sleep(time.Second)
		deleteMarker()
		m.Link.Heal()
		require.ErrorIs(t, <-failed, framework.ErrOutcomeUnknown)
		require.EqualValues(t, 4, add(t, c, 1))
	})
}

func TestOldMarkersAreDeleted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		add(t, ids.NewCounter(m.Client, path), 1) // it is not closed
		w.Skew(23 * time.Hour)
		b := counter(t, m)
		add(t, b, 1)
		require.Len(t, w.Children(markers), 2)
		w.Skew(25 * time.Hour)
		c := counter(t, m)
		add(t, c, 1)
		require.Len(t, w.Children(markers), 2, "the oldest is gone")
		require.NoError(t, b.Close(t.Context()))
		require.NoError(t, c.Close(t.Context()))
		require.Empty(t, w.Children(markers))
		_, err := c.Add(t.Context(), 1)
		require.ErrorIs(t, err, framework.ErrClosed)
		require.EqualValues(t, 3, value(t, c))
	})
}

// TestMarkersOfManyWritersCostFewRequests: thousands of short-lived processes have ended without
// Close, some of them days ago. One of their markers cannot be deleted.
func TestMarkersOfManyWritersCostFewRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		add(t, counter(t, m), 1)
		leave := func(n int) (first string) {
			for range n / 500 {
				var ops []framework.Op
				for range 500 {
					ops = append(ops, framework.CreateOp(markers+"/"+rand.Text(), []byte("1"), framework.Persistent))
				}
				results, err := m.Multi(t.Context(), ops...)
				require.NoError(t, err)
				first = results[0].Path
			}
			return first
		}
		require.NoError(t, m.Create(t.Context(), leave(2000)+"/x", nil, framework.Persistent))
		w.Skew(25 * time.Hour)
		leave(2000)
		sum := func() (n int64) {
			for _, k := range w.Requests() {
				n += k
			}
			return n
		}
		before := sum()
		add(t, counter(t, m), 1)
		require.Less(t, sum()-before, int64(200))
		require.Len(t, w.Children(markers), 2002, "with its own, and the one that cannot be deleted")
	})
}

func TestCloseEndsAnAdd(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		c := counter(t, m)
		add(t, c, 1)
		m.Link.BlackHole(true, true)
		failed := make(chan error, 1)
		go func() {
			_, err := c.Add(context.Background(), 1)
			failed <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Close(ctx), context.DeadlineExceeded, "the marker cannot be deleted")
		require.ErrorIs(t, <-failed, framework.ErrClosed)
		m.Link.Heal()
		require.NoError(t, c.Close(t.Context()))
		require.Empty(t, w.Children(markers))
	})
}

// TestCloseDeletesTheMarkerOfAnAddWithoutAnAnswer: the add may have been made, and no marker stays.
func TestCloseDeletesTheMarkerOfAnAddWithoutAnAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := counter(t, w.member("a"))
		add(t, c, 1)
		slow := w.DelayReplies(time.Second, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		failed := make(chan error, 1)
		go func() {
			_, err := c.Add(context.Background(), 1)
			failed <- err
		}()
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, c.Close(t.Context()))
		slow.Cancel()
		require.ErrorIs(t, <-failed, framework.ErrOutcomeUnknown)
		require.Empty(t, w.Children(markers))
	})
}

// TestAWriterHasOneMarker: also after another program has written its marker, while a transaction
// had no answer.
func TestAWriterHasOneMarker(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, other := w.member("a"), w.member("b")
		c := counter(t, m)
		add(t, c, 1)
		writeMarker := func() {
			node := markers + "/" + w.Children(markers)[0]
			_, err := other.Set(t.Context(), node, []byte("by hand"), framework.AnyVersion)
			require.NoError(t, err)
		}
		writeMarker()
		require.EqualValues(t, 2, add(t, c, 1))
		require.Len(t, w.Children(markers), 1)
		f := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		defer f.Cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := c.Add(context.Background(), 1)
			failed <- err
		}()
		<-f.Hit()
		m.Link.Cut()
		writeMarker()
		m.Link.Heal()
		require.ErrorIs(t, <-failed, framework.ErrOutcomeUnknown)
		require.EqualValues(t, 4, add(t, c, 1))
		require.Len(t, w.Children(markers), 1)
		require.NoError(t, c.Close(t.Context()))
		require.Empty(t, w.Children(markers))
	})
}

func TestBadArgumentsOfACounter(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		_, err := ids.NewCounter(m.Client, "/").Add(t.Context(), 1)
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = ids.NewCounter(nil, path).Get(t.Context())
		require.ErrorContains(t, err, "client is nil")
	})
}

// TestTwoCloseAtOnce delete one marker.
func TestTwoCloseAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := counter(t, w.member("a"))
		add(t, c, 1)
		require.Len(t, w.Children(markers), 1)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { require.NoError(t, c.Close(t.Context())) })
		}
		all.Wait()
		require.Empty(t, w.Children(markers))
	})
}
