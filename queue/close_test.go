package queue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestPutOnItsWayAtCloseIsUnknown: a Queue whose Close was not waited for finishes it. When the
// client ends, it may have been done, and its error says so.
func TestPutOnItsWayAtCloseIsUnknown(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, end := range map[string]func(*member){
		"queue":  func(m *member) { _ = m.Close(ended) },
		"client": func(m *member) { _ = m.client.Close(ended) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				a.put("x")
				a.link.Delay(time.Second)
				outcome := make(chan error, 1)
				go func() { outcome <- a.Put(t.Context(), "y") }()
				time.Sleep(1500 * time.Millisecond) // done, and the reply is on its way
				end(a)
				err := <-outcome
				if name == "queue" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, errUnknown)
				}
				require.Equal(t, []string{"x", "y"}, b.drain(2))
			})
		})
	}
}

// TestCloseLeavesNoNodesOfItsSession: a session that was lost here may live on for the servers, and
// its node below the marker with it.
func TestCloseLeavesNoNodesOfItsSession(t *testing.T) {
	for name, former := range map[string]bool{"alone": false, "beside a former session": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				a.put("x")
				markers := w.Children(testPath + "/writers")
				require.Len(t, markers, 1)
				marker := testPath + "/writers/" + markers[0]
				if former {
					require.NoError(t, b.client.Create(t.Context(), marker+"/former", nil, framework.Ephemeral))
				}
				require.NoError(t, a.Close(t.Context()))
				if former {
					require.Equal(t, []string{"former"}, w.Children(marker))
					require.NoError(t, b.client.Close(t.Context()))
					time.Sleep(2 * time.Minute)
				}
				require.Empty(t, w.Children(testPath+"/writers"))
			})
		})
	}
}

func TestCloseFinishesAcksInProgress(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		a.put("x")
		d := a.take()
		a.link.Delay(slow)
		put := a.PutAsync(t.Context(), "y") // on its way
		time.Sleep(10 * time.Millisecond)
		ack := d.AckAsync() // in the next transaction
		a.closeSlowly()
		require.NoError(t, put.Wait(t.Context()))
		require.NoError(t, ack.Wait(t.Context()))
		next := b.take()
		require.Equal(t, "y", next.Value)
		b.ack(next)
	})
}

func TestPutsWaitingForRoomEndWithClose(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithCapacity(1)), w.member("b", WithCapacity(1))
		a.put("x")
		for _, m := range []*member{b, a} {
			go func() { _ = m.Put(within(t, 10*time.Minute), "y") }()
			time.Sleep(time.Second)
		}
		ended := make(chan error, 1)
		c := w.member("c", WithCapacity(1))
		go func() { ended <- c.Put(within(t, 10*time.Minute), "z") }()
		time.Sleep(time.Second)
		require.NoError(t, c.Close(within(t, time.Minute)))
		time.Sleep(time.Minute)
		select {
		case err := <-ended:
			require.ErrorIs(t, err, errClosed)
		default:
			t.Error("the put goes on waiting")
		}
		_ = a.Close(t.Context())
		_ = b.Close(t.Context())
		time.Sleep(11 * time.Minute)
	})
}

// TestCloseGivesItemsBackInTheBackground: its client, and so its session, live on.
func TestCloseGivesItemsBackInTheBackground(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		a.put("x")
		d := a.take()
		a.link.Cut()
		require.Error(t, a.Close(within(t, time.Second)))
		a.link.Heal()
		time.Sleep(time.Minute)
		s, err := a.client.Session(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(1), s.Epoch(), "the session has survived")
		require.Error(t, d.Context().Err())
		require.Empty(t, w.Children(testPath+"/writers"), "the marker has gone")
		require.Equal(t, []string{"x"}, b.drain(1))
	})
}

// TestADeliverysContextTellsItsOwnEndWhenItIsAskedForLate: the session, or the lock, has ended
// after the delivery.
func TestADeliverysContextTellsItsOwnEndWhenItIsAskedForLate(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithMaxInFlight(2), WithPrefetch(2))
		a.put("settled", "open")
		settled, err := a.Take(t.Context())
		require.NoError(t, err)
		a.ack(settled)
		open, err := a.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, a.client.Close(t.Context()))
		require.ErrorIs(t, context.Cause(settled.Context()), ErrSettled)
		require.ErrorIs(t, context.Cause(open.Context()), errClosed)
	})
}
