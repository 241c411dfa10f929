package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// node is an operation of a program's own.
func node(name string) framework.Op {
	return framework.CreateOp("/own-"+name, nil, framework.Persistent)
}

func (w *world) requireNode(name string, there bool) {
	w.t.Helper()
	_, ok := w.Node("/own-" + name)
	require.Equal(w.t, there, ok, name)
}

// requireRefused checks that an error names the own operation.
func requireRefused(t *testing.T, err error, index int, path string, why error) {
	t.Helper()
	require.ErrorIs(t, err, errRefused)
	require.ErrorIs(t, err, why)
	require.NotErrorIs(t, err, ErrLost)
	var tx *framework.TxError
	require.ErrorAs(t, err, &tx)
	require.Equal(t, index, tx.Index)
	require.Equal(t, path, tx.Path)
}

func TestPutWithOpsIsAtomic(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithDedup(time.Minute), WithCapacity(3), WithFailWhenFull())
		require.NoError(t, a.Put(t.Context(), "first", WithOps(node("a"), node("b")), WithID("1")))
		w.requireNode("a", true)
		w.requireNode("b", true)
		err := a.Put(t.Context(), "second", WithOps(node("c"), node("b")), WithID("2"))
		requireRefused(t, err, 1, "/own-b", framework.ErrNodeExists)
		w.requireNode("c", false)
		require.ErrorIs(t, a.Put(t.Context(), "again", WithOps(node("b")), WithID("1")), ErrDuplicate,
			"whatever the operation says")
		require.NoError(t, a.Put(t.Context(), "urgent", WithOps(node("c")), WithID("2"), WithPriority(3)),
			"the id was not remembered")
		require.NoError(t, a.PutBatch(t.Context(), []string{"third"}, WithOps(node("d")), WithDelay(time.Second)))
		require.ErrorIs(t, a.Put(t.Context(), "too many", WithOps(node("e"))), ErrFull)
		w.requireNode("e", false)
		require.ErrorIs(t, a.Put(t.Context(), "bad", WithOps(node("f"), framework.Op{})), errOption)
		require.Equal(t, []string{"urgent", "first", "third"}, a.drain(3))
		a.requireNone()
	})
}

// TestRefusedOpDoesNotFailOtherPuts that shares its transaction.
func TestRefusedOpDoesNotFailOtherPuts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put("first")
		a.link.Delay(slow)
		var pending []*Pending
		for i := range 10 {
			pending = append(pending, a.PutAsync(t.Context(), fmt.Sprint(i), WithOps(node(fmt.Sprint(i/2)))))
		}
		var want []string
		for i, p := range pending {
			err := p.Wait(t.Context())
			if i%2 == 0 {
				require.NoError(t, err)
				want = append(want, fmt.Sprint(i))
				continue
			}
			requireRefused(t, err, 0, fmt.Sprint("/own-", i/2), framework.ErrNodeExists)
		}
		require.Equal(t, append([]string{"first"}, want...), a.drain(6))
	})
}

func TestAckWithIsAtomic(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithCapacity(2), WithMaxInFlight(1))
		a.put(names(0, 2)...)
		d := a.take()
		require.NoError(t, d.AckWith(t.Context(), node("a")))
		w.requireNode("a", true)
		require.ErrorIs(t, context.Cause(d.Context()), ErrSettled)
		require.ErrorIs(t, d.AckWith(t.Context(), node("b")), ErrSettled)
		w.requireNode("b", false)

		d = a.take()
		requireRefused(t, d.AckWith(t.Context(), node("b"), node("a")), 1, "/own-a", framework.ErrNodeExists)
		w.requireNode("b", false)
		require.NoError(t, d.Context().Err(), "it is open as before")
		a.put("last")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := a.Take(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, "it has its place in the window")
		require.ErrorIs(t, d.AckWith(t.Context(), framework.Op{}), errOption)
		a.ack(d)
		d = a.take()
		require.Equal(t, "last", d.Value)
		requireRefused(t, d.AckWith(t.Context(), node("a")), 0, "/own-a", framework.ErrNodeExists)
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		d = a.take()
		require.Equal(t, 2, d.Attempt)
		a.ack(d)
		a.put(names(2, 4)...)
		require.Equal(t, names(2, 4), a.drain(2), "there is room again")
	})
}

// TestAckWithAfterLostReply, or says that the delivery is lost; it is never half done.
func TestAckWithAfterLostReply(t *testing.T) {
	for _, applied := range []bool{true, false} {
		inEachOrder(t, func(t *testing.T, w *world, order Option) {
			a := w.member("a", order)
			a.put("x")
			d := a.take()
			if applied {
				w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: creates("/own-a")})
			} else {
				a.link.BlackHole(true, false)
				time.AfterFunc(4*time.Second, func() { a.link.BlackHole(false, false) })
			}
			require.NoError(t, d.AckWith(t.Context(), node("a")))
			w.requireNode("a", true)
			a.requireNone()
		})
	}
}

func TestAckWithAfterSessionLossIsRefused(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		a.put("x")
		d := a.take()
		a.link.BlackHole(true, true)
		got := b.take()
		require.Equal(t, 2, got.Attempt)
		require.ErrorIs(t, d.AckWith(within(t, time.Second), node("a")), ErrLost)
		a.link.BlackHole(false, false)
		synctest.Wait()
		w.requireNode("a", false)
		require.NoError(t, got.AckWith(t.Context(), node("a")))
	})
}

// TestReopenedDeliveryMakesRoomWhenLost: its handler does not settle it.
func TestReopenedDeliveryMakesRoomWhenLost(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithMaxInFlight(1)), w.member("p")
		p.put("x")
		d := a.take()
		requireRefused(t, d.AckWith(t.Context(), framework.CheckOp("/none", framework.AnyVersion)), 0, "/none",
			framework.ErrNoNode)
		_, err := p.Purge(t.Context())
		require.NoError(t, err)
		require.NoError(t, p.client.Delete(t.Context(), d.item.ticket, framework.AnyVersion)) // its ticket
		<-d.Context().Done()
		p.put("next")
		require.Equal(t, "next", a.take().Value)
		require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
	})
}

// TestAckWithRefusedAtCloseGivesItemBack: its consumer session has ended.
func TestAckWithRefusedAtCloseGivesItemBack(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		a.put("x")
		require.NoError(t, a.client.Create(t.Context(), "/own-a", nil, framework.Persistent))
		d := a.take()
		a.link.Delay(slow)
		refused := make(chan error, 1)
		go func() { refused <- d.AckWith(t.Context(), node("a")) }()
		synctest.Wait()
		a.closeSlowly()
		require.ErrorIs(t, <-refused, errRefused)
		require.ErrorIs(t, context.Cause(d.Context()), errClosed)
		require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
		got := b.take() // a's session lives on
		require.Equal(t, 2, got.Attempt)
		b.ack(got)
	})
}

// TestGuardIsRefusedAfterRedelivery by the servers, however late it is sent.
func TestGuardIsRefusedAfterRedelivery(t *testing.T) {
	ends := map[string]func(m *member, d *Delivery[string]){
		"nack": func(m *member, d *Delivery[string]) { require.NoError(m.t, d.Nack(m.t.Context(), 0, nil)) },
		"later": func(m *member,
			d *Delivery[string]) {
			require.NoError(m.t, d.Nack(m.t.Context(), time.Second, nil))
		},
		"close":   func(m *member, d *Delivery[string]) { require.NoError(m.t, m.Close(m.t.Context())) },
		"session": func(m *member, d *Delivery[string]) { m.link.BlackHole(true, true) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inEachOrder(t, func(t *testing.T, w *world, order Option) {
				a, b := w.member("a", order), w.member("b", order)
				a.put("x")
				d := a.take()
				guard, token := d.Guard(), d.Token()
				// as one that was asked before and is on its way
				late := primitives.When(guard, func() error { return nil })
				_, err := b.client.Multi(t.Context(), guard, node("a"))
				require.NoError(t, err)
				end(a, d)
				taker := b
				if name == "nack" || name == "later" {
					taker = a // a strict queue's lock stays with a
				}
				got := taker.take()
				require.Equal(t, 2, got.Attempt)
				require.Greater(t, got.Token(), token)
				_, err = b.client.Multi(t.Context(), late, node("b"))
				var tx *framework.TxError
				require.ErrorAs(t, err, &tx)
				require.Equal(t, 0, tx.Index)
				_, err = b.client.Multi(t.Context(), guard, node("b"))
				require.ErrorAs(t, err, &tx)
				require.Equal(t, 0, tx.Index)
				require.NotErrorIs(t, err, framework.ErrNoNode, "not sent at all")
				require.NotErrorIs(t, err, framework.ErrBadVersion, "not sent at all")
				late = primitives.When(got.Guard(), func() error { return nil })
				_, err = b.client.Multi(t.Context(), late, node("b"))
				require.NoError(t, err)
				taker.ack(got)
				_, err = b.client.Multi(t.Context(), late, node("c"))
				require.ErrorIs(t, err, framework.ErrNoNode)
			})
		})
	}
}

// TestTokensRiseWithEachDeliveryOfAnItem through every move.
func TestTokensRiseWithEachDeliveryOfAnItem(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithMaxAttempts(3))
		require.NoError(t, a.Put(t.Context(), "x", WithDelay(time.Second), WithPriority(2)))
		last := int64(0)
		for i := range 12 {
			d := a.take()
			require.Greater(t, d.Token(), last)
			last = d.Token()
			require.NoError(t, d.Nack(t.Context(), time.Duration(i%2)*time.Second, errors.New("again")))
			if _, err := a.Requeue(t.Context()); i%3 == 2 {
				require.NoError(t, err)
			}
		}
	})
}
