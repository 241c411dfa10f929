package queue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// claimOf is the claim of the only item that a consumer has.
func (m *member) claimOf() InFlightItem {
	m.t.Helper()
	claims, err := m.InFlight(m.t.Context())
	require.NoError(m.t, err)
	require.Len(m.t, claims, 1)
	return claims[0]
}

// TestItemIsTakenBack from a consumer that lives, and whose handler hangs: another one gets it, and
// the servers refuse what the first one does.
func TestItemIsTakenBack(t *testing.T) {
	for name, bounded := range map[string][]Option{"unbounded": nil, "bounded": {WithCapacity(1), WithFailWhenFull()}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b, operator := w.member("a", append(bounded, WithMaxInFlight(1))...), w.member("b"),
					w.member("operator")
				a.put("one")
				lost := a.take()
				guard := lost.Guard()
				require.NoError(t, operator.TakeBack(t.Context(), operator.claimOf()))
				again := b.take()
				require.Equal(t, "one", again.Value)
				require.Equal(t, 2, again.Attempt)
				require.Greater(t, again.Token(), lost.Token())
				<-lost.Context().Done()
				require.ErrorIs(t, context.Cause(lost.Context()), framework.ErrNodeGone)
				require.ErrorIs(t, lost.Ack(t.Context()), ErrLost)
				_, err := a.client.Multi(t.Context(), guard, node("a"))
				require.Error(t, err)
				w.requireNode("a", false)
				b.ack(again)
				a.put("two") // there is room
				b.drain(1)
			})
		})
	}
}

// TestServersRefuseWhatIsTakenBack, also while the former consumer does not know: it has no
// connection.
func TestServersRefuseWhatIsTakenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b, operator := w.member("b", WithMaxInFlight(1)), w.member("operator")
		b.put("zero", "one")
		zero := b.take() // the first in line recovers
		a := w.member("a", WithMaxInFlight(1))
		lost := a.take()
		require.Equal(t, "one", lost.Value)
		claims, err := operator.InFlight(t.Context())
		require.NoError(t, err)
		a.link.Cut()
		cut := time.Now()
		require.NoError(t, operator.TakeBack(t.Context(), claims[1]))
		acked := lost.AckAsync()
		b.ack(zero)
		again := b.take()
		require.Equal(t, "one", again.Value)
		require.Less(t, time.Since(cut), timeout/2, "before the session has ended")
		a.link.Heal()
		require.ErrorIs(t, acked.Wait(within(t, time.Minute)), ErrLost)
		b.ack(again)
	})
}

// TestTakeBackOfAClaimThatHasEnded leaves the item and its next claim alone.
func TestTakeBackOfAClaimThatHasEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, operator := w.member("a", WithMaxInFlight(1)), w.member("operator")
		a.put("one")
		first := a.take()
		claim := operator.claimOf()
		require.NoError(t, first.Nack(t.Context(), 0, nil))
		again := a.take()
		require.ErrorIs(t, operator.TakeBack(t.Context(), claim), errNotClaimed)
		require.NoError(t, again.Context().Err())
		claim = operator.claimOf()
		a.ack(again)
		require.ErrorIs(t, operator.TakeBack(t.Context(), claim), errNotClaimed)
		other := New(operator.client, "/queues/other", codec.Text())
		defer other.Close(t.Context())
		require.ErrorIs(t, other.TakeBack(t.Context(), claim), errOption)
		require.ErrorIs(t, other.TakeBack(t.Context(), InFlightItem{}), errOption)
	})
}

// TestTakeBackAfterLostReply says that it cannot know, unless the first try was not applied.
func TestTakeBackAfterLostReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, operator := w.member("a", WithMaxInFlight(1)), w.member("operator")
		a.put("one")
		a.take()
		claim := operator.claimOf()
		w.DropReply(1, zktest.Match{Session: operator.client.Status().SessionID, Op: zktest.OpMulti})
		require.ErrorIs(t, operator.TakeBack(t.Context(), claim), errUnknown)
		again := a.take()
		require.Equal(t, 2, again.Attempt)
		claim = operator.claimOf()
		w.Throttle(1, zktest.Match{Session: operator.client.Status().SessionID, Op: zktest.OpMulti})
		require.NoError(t, operator.TakeBack(t.Context(), claim))
		require.Equal(t, 3, a.take().Attempt)
	})
}

// TestTakeBackOfAStrictQueue is refused: its consumer has all items by the lock.
func TestTakeBackOfAStrictQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithOrder(Strict))
		a.put("one")
		d := a.take()
		operator := w.member("operator", WithOrder(Strict))
		require.ErrorIs(t, operator.TakeBack(t.Context(), operator.claimOf()), errOption)
		require.NoError(t, d.Context().Err())
	})
}
