package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/cleanuptest"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestLeaveIsACleanup: the only member ends its round, too. After a lost reply it does not know
// that it was the last, and waits for the others until its context ends.
func TestLeaveIsACleanup(t *testing.T) {
	cleanuptest.Cleanup{Lost: []error{framework.ErrSessionLost}, LostReply: context.Canceled,
		Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
			r, err := barrier.NewDoubleBarrier(m.Client, path, 1).Enter(t.Context())
			require.NoError(t, err)
			return r.Leave
		}}.Check(t)
}

// TestLeaveWhileCutOffIsFinishedInTheBackground, so that the others need not wait for the end of
// the session.
func TestLeaveWhileCutOffIsFinishedInTheBackground(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		rs := enterAll(t, doubles(2, ms...)...)
		ms[0].Link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, rs[0].Leave(ctx), framework.ErrUnconfirmed)
		s := w.session(ms[0])
		ms[0].Link.Heal()
		require.NoError(t, rs[1].Leave(t.Context()))
		require.NoError(t, s.Err(), "it was not the end of the session that has let the other leave")
		w.nobody()
	})
}

// TestLeaveEndsTheRoundAfterAnOutage: the last member has left, and the servers get the end of the
// round only after the time of a cleanup. Its context stands, so it goes on.
func TestLeaveEndsTheRoundAfterAnOutage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		round, err := barrier.NewDoubleBarrier(m.Client, path, 1).Enter(t.Context())
		require.NoError(t, err)
		m.Link.Delay(100 * time.Millisecond)
		_, left := async(func() error { return round.Leave(context.Background()) })
		time.Sleep(150 * time.Millisecond) // the answer to the deletion of its node is on its way
		m.Link.BlackHole(true, false)
		time.Sleep(timeout / 3)
		m.Link.Heal()
		require.NoError(t, left())
		n, _ := w.Node(path)
		require.EqualValues(t, 2, n.Stat.Version, "the round has ended")
	})
}
