package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// The rules of docs/adr/0022-one-writer-and-its-marker.md, at the writer itself. It is idle
// meanwhile.

// written is a member that has put something, its writer and its session.
func (w *world) written() (*member, *writer, *framework.Session) {
	w.t.Helper()
	m := w.member("a", segmentSize(100))
	m.put("x")
	s, err := m.client.Session(w.t.Context())
	require.NoError(w.t, err)
	return m, m.engine.writer, s
}

// putRequest is the request of a put of an item that is stored so.
func (m *member) putRequest(stored ...byte) *writeRequest {
	item, ops := putTarget(m.engine.store.nodes, 0, 0)
	item.data = stored
	return &writeRequest{ops: ops, items: []newItem{item}, adds: 1}
}

// TestFenceIsDistinctFromTransaction: the reply of a fence may be lost too.
func TestFenceIsDistinctFromTransaction(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		_, wr, s := w.written()
		for range 3 {
			applied, err := wr.marker.setMarker(t.Context(), s)
			require.NoError(t, err)
			require.False(t, applied)
			wr.marker.version-- // as it was before its reply
		}
		_, err := s.Multi(t.Context(), framework.SetOp(wr.marker.node, []byte("4"), wr.marker.version+1))
		require.NoError(t, err)
		applied, err := wr.marker.setMarker(t.Context(), s)
		require.NoError(t, err)
		require.True(t, applied)
	})
}

func TestTransactionBeforeFenceIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, wr, s := w.written()
		late := wr.assembleTransaction([]*writeRequest{m.putRequest(1, 0)})
		_, err := wr.marker.setMarker(t.Context(), s)
		require.NoError(t, err)
		_, err = s.Multi(t.Context(), late.ops...)
		require.ErrorIs(t, err, framework.ErrBadVersion)
	})
}

// removeMarker does what the servers do some time after the writer's session.
func (m *member) removeMarker(s *framework.Session) {
	m.t.Helper()
	wr := m.engine.writer
	require.NoError(m.t, m.client.Delete(m.t.Context(), wr.marker.childPath(s), framework.AnyVersion))
	require.NoError(m.t, m.client.Delete(m.t.Context(), wr.marker.node, framework.AnyVersion))
}

func TestOutcomeIsUnknownWithoutMarker(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, wr, s := w.written()
		m.removeMarker(s)
		outcome := make(chan error, 1)
		again := wr.resolveLost(t.Context(),
			[]*writeRequest{{then: func(_ []framework.OpResult, err error) { outcome <- err }}}, framework.ErrSuspended)
		require.Empty(t, again)
		require.ErrorIs(t, <-outcome, errUnknown)
		m.put("y")
		m.put("z")
		require.Equal(t, []string{"x", "y", "z"}, m.drain(3))
	})
}

func TestMissingMarkerIsRecreated(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, _, s := w.written()
		m.removeMarker(s)
		m.put("y")
		require.Equal(t, []string{"x", "y"}, m.drain(2))
	})
}

// TestRefusedRequestDoesNotFailOthers: of the parts of one transaction.
func TestRefusedRequestDoesNotFailOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, wr, _ := w.written()
		other, err := w.member("other").client.Session(t.Context())
		require.NoError(t, err)
		lease, err := locks.NewMutex(m.client, "/lock").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, m.client.Delete(t.Context(), lease.Node(), framework.AnyVersion))
		y := m.putRequest(1, 0, 'y')
		missing := framework.DeleteOp(testPath+"/missing", framework.AnyVersion)
		parts := []*writeRequest{{ops: []framework.Op{missing}}, {requires: []precondition{leaseHeld{lease}}},
			{session: other}, y}
		outcomes := make([]chan error, len(parts))
		for i, p := range parts {
			outcomes[i] = make(chan error, 1)
			p.then = func(_ []framework.OpResult, err error) { outcomes[i] <- err }
		}
		wr.addRequests(parts...)
		require.ErrorIs(t, <-outcomes[0], framework.ErrNoNode)
		require.Error(t, <-outcomes[1])
		require.ErrorIs(t, <-outcomes[2], framework.ErrSessionLost)
		require.NoError(t, <-outcomes[3])
		require.Equal(t, []string{"x", "y"}, m.drain(2))
	})
}

func TestTransactionSizeIsBounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, _, _ := w.written()
		most := 0
		stop := w.Observe(func(r zktest.Request) {
			n := 0
			for _, p := range r.Parts {
				if p.Op == zktest.OpCreate || p.Op == zktest.OpCreate2 {
					n++
				}
			}
			most = max(most, n)
		})
		m.link.Delay(100 * time.Millisecond)
		var puts []*Pending
		for range 9 {
			puts = append(puts, m.PutAsync(t.Context(), strings.Repeat("x", 200_000)))
		}
		for _, p := range puts {
			require.NoError(t, p.Wait(t.Context()))
		}
		stop()
		require.Equal(t, 2, most, "of 200 kB each")
	})
}

// TestFullSecondOverflowsToNext, so that no list is long.
func TestFullSecondOverflowsToNext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a", segmentSize(2))
		for i := range 6 {
			require.NoError(t, m.Put(t.Context(), fmt.Sprint("item ", i), WithDelay(time.Hour)))
		}
		hours := w.Children(testPath + "/later")
		require.Len(t, hours, 1)
		seconds := w.Children(testPath + "/later/" + hours[0])
		require.Len(t, seconds, 3)
		for _, s := range seconds {
			require.Len(t, w.Children(testPath+"/later/"+hours[0]+"/"+s), 2)
		}
		time.Sleep(2 * time.Hour)
		require.Equal(t, names(0, 6), m.drain(6))
	})
}

// TestDelayedNackIsFirstWhenDue, in a parallel queue: before what was put meanwhile.
func TestDelayedNackIsFirstWhenDue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, a := w.member("recoverer", WithMaxInFlight(1)), w.member("a")
		recoverer.put("w", "x", "y")
		busy := recoverer.take()
		require.NoError(t, a.take().Nack(t.Context(), 10*time.Second, nil))
		time.Sleep(20 * time.Second)
		d := a.take()
		require.Equal(t, "x", d.Value)
		require.Equal(t, 2, d.Attempt)
		a.ack(d)
		recoverer.ack(busy)
	})
}

func TestDeadLetterMakesRoom(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithCapacity(1), WithMaxAttempts(1))
		a.put("x")
		require.NoError(t, a.take().Nack(t.Context(), 0, errors.New("why")))
		a.put("y")
		require.Equal(t, []string{"y"}, a.drain(1))
	})
}

// TestOneProducerWaitsForRoomAtATime: the others wait behind it.
func TestOneProducerWaitsForRoomAtATime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithCapacity(1))
		a.put("x")
		done := make(chan error, 3)
		for i := range 3 {
			p := w.member(fmt.Sprint("p", i))
			go func() { done <- p.Put(within(t, time.Hour), "y") }()
		}
		time.Sleep(time.Minute)
		watches := 0
		for _, watch := range w.Watches() {
			if watch.Path == testPath+"/out" {
				watches++
			}
		}
		require.Equal(t, 1, watches)
		a.drain(4)
		for range 3 {
			require.NoError(t, <-done)
		}
	})
}

// TestDedupUsesOpenBucket: a producer that has not heard of its successor must not use the former
// one.
func TestDedupUsesOpenBucket(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithDedup(time.Minute)), w.member("b")
		require.NoError(t, a.Put(t.Context(), "x", WithID("1")))
		require.NoError(t, b.Put(t.Context(), "x", WithID("2")))
		time.Sleep(2 * time.Minute)
		require.NoError(t, a.Put(t.Context(), "x", WithID("3")))
		b.engine.writer.ids.opened = time.Now().Add(time.Hour) // its clock is wrong
		require.NoError(t, b.Put(t.Context(), "x", WithID("4")))
		require.ErrorIs(t, a.Put(t.Context(), "x", WithID("4")), ErrDuplicate)
		_, there := w.Node(b.engine.store.nodes.IDNode(1, "4"))
		require.True(t, there)
	})
}

// TestAckDrawsNextTicket: one transaction an item.
func TestAckDrawsNextTicket(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put(names(0, 52)...)
		a.drain(2)
		before := w.Requests()[zktest.OpMulti]
		for range 40 {
			a.ack(a.take())
		}
		heartbeats := int64(5) // of the sessions, meanwhile
		require.LessOrEqual(t, w.Requests()[zktest.OpMulti]-before, 40+heartbeats)
	})
}

// TestStrictClaimsOnlyOnDemand, unless it is told to: a claim counts an attempt.
func TestStrictClaimsOnlyOnDemand(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		strict := WithOrder(Strict)
		a, b := w.member("a", strict), w.member("b", strict)
		a.put(names(0, 2)...)
		a.drain(1)
		time.Sleep(time.Second)
		a.kill()
		d, err := b.Take(within(t, time.Minute))
		require.NoError(t, err)
		require.Equal(t, 1, d.Attempt)
		require.NoError(t, d.Ack(context.WithoutCancel(t.Context())))
	})
}

// TestRequestOfABatchKeepsItsOperations: the context of a call may end while the writer reads the
// operations of the batch that has its request.
func TestRequestOfABatchKeepsItsOperations(t *testing.T) {
	w := newWriter(writerConfig{})
	inBatch := &writeRequest{ops: []framework.Op{framework.CheckOp("/x", 1)}, size: 10}
	waits := &writeRequest{ops: []framework.Op{framework.CheckOp("/x", 1)}, size: 5}
	w.queue, w.bytes = []*writeRequest{inBatch}, 15
	require.Equal(t, []*writeRequest{inBatch}, w.nextBatch())
	w.queue = []*writeRequest{waits}

	require.True(t, w.withdrawRequest(inBatch))
	require.Len(t, inBatch.ops, 1)
	require.True(t, w.withdrawRequest(waits))
	require.Nil(t, waits.ops, "nobody reads them any more")
	require.Empty(t, w.queue)
	require.Zero(t, w.bytes)
	require.False(t, w.withdrawRequest(waits))
	require.Empty(t, w.setState([]*writeRequest{inBatch}, requestSent), "it is not sent")
}
