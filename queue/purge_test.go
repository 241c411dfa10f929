package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestPurgedClaimFreesWindow: its delivery can be settled no more, and made no room once.
func TestPurgedClaimFreesWindow(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithMaxInFlight(1)), w.member("p")
		require.NoError(t, p.Put(t.Context(), "urgent", WithPriority(3)))
		d := a.take()
		require.Contains(t, d.Node(), "/lanes/3/")
		n, err := p.Purge(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
		p.put("next")
		require.Equal(t, "next", a.take().Value)
	})
}

// TestItemsLeftByPurgeAreDelivered: a consumer went on to the next segment at the first item that
// was gone.
func TestItemsLeftByPurgeAreDelivered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithMaxInFlight(1)), w.member("p")
		require.NoError(t, p.PutBatch(t.Context(), names(0, 410)))
		purger := w.member("purger")
		_, err := purger.Len(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		multis := 0
		purger.link.Delay(50 * time.Millisecond)
		s, _ := purger.client.Session(t.Context())
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == s.ID() && r.Op == zktest.OpMulti && r.Writes() {
				if multis++; multis == 2 { // the roll, and the first 400
					cancel()
				}
			}
		})
		_, err = purger.Purge(ctx)
		stop()
		require.ErrorIs(t, err, context.Canceled)
		left, err := p.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 10, left)
		require.Equal(t, names(400, 410), a.drain(10))
	})
}

// TestPurgeEndsOnlyRemovedDeliveries: items for later are read by nobody, so that their removal is
// no reason to read again.
func TestPurgeEndsOnlyRemovedDeliveries(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		strict := []Option{WithOrder(Strict), WithMaxInFlight(2)}
		a, p, purger := w.member("a", strict...), w.member("p", strict...), w.member("purger", strict...)
		require.NoError(t, p.Put(t.Context(), "later", WithDelay(time.Hour)))
		p.put("old")
		_, err := purger.Len(t.Context())
		require.NoError(t, err)
		a.drain(1)
		purger.link.Delay(slow)
		purged := make(chan error, 1)
		var d *Delivery[string]
		w.beforeRequest(purger, zktest.OpGetChildren2, testPath+"/later", func() {
			if err := p.Put(t.Context(), "new"); err != nil {
				t.Error(err)
			}
			d, _ = a.Take(t.Context())
		})
		go func() {
			_, err := purger.Purge(t.Context())
			purged <- err
		}()
		require.NoError(t, <-purged)
		require.NotNil(t, d)
		require.NoError(t, d.Context().Err())
		p.put("next")
		next := a.waiting()
		time.Sleep(time.Second)
		require.NoError(t, d.Context().Err(), "%v", context.Cause(d.Context()))
		require.NoError(t, d.Ack(t.Context()))
		<-next
	})
}

// TestItemsOfDeadConsumerComeBackBehindEmptyClosedSegment: no consumer ever draws a ticket in the
// segment that a purge leaves when it dies, between its two transactions or after the second one.
func TestItemsOfDeadConsumerComeBackBehindEmptyClosedSegment(t *testing.T) {
	for name, purge := range map[string]func(*testing.T, *member){
		"that never had items": func(t *testing.T, a *member) {
			require.NoError(t, a.Resume(t.Context())) // makes the queue
			_, err := a.client.Multi(t.Context(), a.engine.store.nodes.Base.Segment(0).CloseOps()...)
			require.NoError(t, err)
		},
		"whose items were purged": func(t *testing.T, a *member) {
			a.put("x", "y")
			segment := a.engine.store.nodes.Base.Segment(0)
			_, err := a.client.Multi(t.Context(), segment.CloseOps()...)
			require.NoError(t, err)
			for k := range int64(2) {
				require.NoError(t, a.client.Delete(t.Context(), segment.ItemNode(k), framework.AnyVersion))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b, recoverer := w.member("a"), w.member("b"), w.member("recoverer")
				purge(t, a)
				a.put(names(0, 2)...)
				first := recoverer.take()
				lost := b.take()
				b.kill()
				again := recoverer.take()
				require.Equal(t, lost.Value, again.Value)
				require.Equal(t, 2, again.Attempt)
				recoverer.ack(first)
				recoverer.ack(again)
				require.Equal(t, []string{"0000000001"}, w.Children(testPath+"/items"), "the empty segment is removed")
			})
		})
	}
}

// TestPurgeRemovesItemsGivenBackMeanwhile: a consumer gives an item back, into the lane redo, while
// the purge is at the chain that the item came from.
func TestPurgeRemovesItemsGivenBackMeanwhile(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 0, "for later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, p, purger := w.member("a", WithMaxInFlight(1)), w.member("p"), w.member("purger")
				p.put("old")
				d := a.take()
				_, err := purger.Len(t.Context())
				require.NoError(t, err)
				s, err := purger.client.Session(t.Context())
				require.NoError(t, err)
				listed := w.DelayReplies(time.Second, zktest.Match{Session: s.ID(),
					Func: func(r zktest.Request) bool {
						return r.Op == zktest.OpGetChildren2 && strings.HasSuffix(r.Path, "/items")
					}})
				done := make(chan error, 1)
				go func() { _, err := purger.Purge(t.Context()); done <- err }()
				<-listed.Hit()
				require.NoError(t, d.Nack(t.Context(), after, errors.New("not now")))
				require.NoError(t, <-done)
				listed.Cancel()
				left, err := p.Counts(t.Context())
				require.NoError(t, err)
				require.Equal(t, Counts{}, left)
			})
		})
	}
}

// TestPurgeRemovesItemsGivenBackAgain: a consumer gives an item back while the purge is at its
// chain, takes it again, and gives it back while the purge is at the lane redo: from the segment
// that the purge has closed into the one behind it.
func TestPurgeRemovesItemsGivenBackAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p, purger := w.member("a", WithMaxInFlight(1)), w.member("p"), w.member("purger")
		p.put("old")
		d := a.take()
		_, err := purger.Len(t.Context())
		require.NoError(t, err)
		s, err := purger.client.Session(t.Context())
		require.NoError(t, err)
		listed := func(dir string) *zktest.Fault {
			return w.DelayReplies(time.Second, zktest.Match{Session: s.ID(), Func: func(r zktest.Request) bool {
				return r.Op == zktest.OpGetChildren2 && strings.HasSuffix(r.Path, dir)
			}})
		}
		first, second := listed("/items/0000000000"), listed("/lanes/redo/0000000000")
		done := make(chan error, 1)
		go func() { _, err := purger.Purge(t.Context()); done <- err }()
		<-first.Hit()
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("not now")))
		d = a.take()
		<-second.Hit()
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("not now")))
		require.NoError(t, <-done)
		first.Cancel()
		second.Cancel()
		left, err := p.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, Counts{}, left)
	})
}

// TestPurgeThatDoesNotFinishSaysSo: items are given back as fast as the purge removes them.
func TestPurgeThatDoesNotFinishSaysSo(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p, purger := w.member("p"), w.member("purger")
		p.put("x")
		d := p.take()
		data, _, err := p.client.Get(t.Context(), d.Node())
		require.NoError(t, err)
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		require.NoError(t, p.Close(t.Context()))
		purger.link.Delay(50 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		busy.Go(func() {
			for redo := testPath + "/lanes/redo"; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
				segments := w.Children(redo)
				last := redo + "/" + slices.Max(segments) + "/i-"
				_, _ = p.client.Multi(ctx, framework.CreateOp(last, data, framework.PersistentSequential))
			}
		})
		n, err := purger.Purge(t.Context())
		require.ErrorContains(t, err, "pause the queue and purge it again")
		require.GreaterOrEqual(t, n, maxPurgeRounds)
		cancel()
		busy.Wait()
		_, err = purger.Purge(t.Context())
		require.NoError(t, err)
		left, err := purger.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, Counts{}, left)
	})
}

// TestPurgeDeadAfterLostReply: the letter is gone, and so is the doubt.
func TestPurgeDeadAfterLostReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithMaxAttempts(1))
		a.put("x", "y")
		for range 2 {
			require.NoError(t, a.take().Nack(t.Context(), 0, nil))
		}
		fault := w.DropReply(1, zktest.Match{Op: zktest.OpDelete, Path: testPath + "/dead/"})
		n, err := a.PurgeDead(t.Context())
		<-fault.Hit()
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Empty(t, a.dead())
	})
}
