package locks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestALongLineIsListedOncePerJoin: all waiters together list as many names as the square of the
// line's length. So a waiter lists once when it joins, and not when it reconnects.
func TestALongLineIsListedOncePerJoin(t *testing.T) {
	const waiting = 40
	in(t, func(t *testing.T, w *world) {
		lists := func() int64 { return w.zk.Requests()[zktest.OpGetChildren2] }
		holder := held(t, t.Context(), locks.NewMutex(w.member("holder").Client, path))
		waiters := newAsker(t)
		before := lists()
		for i := range waiting {
			name := fmt.Sprint("waiter", i)
			waiters.ask(name, locks.NewMutex(w.member(name).Client, path).Lock)
		}
		require.EqualValues(t, waiting, lists()-before, "of the joins")

		before = lists()
		w.zk.Restart()
		time.Sleep(timeout)
		require.Empty(t, waiters.now())
		require.Equal(t, 1+1+2*(waiting-1), len(w.zk.Watches()),
			"the holder watches its own node, the next in line one, each of the others two")
		require.Zero(t, lists()-before, "of the reconnects")
		released(t, holder)
		require.Equal(t, []string{"waiter0"}, waiters.now())
		waiters.release("waiter0")
		require.Equal(t, []string{"waiter1"}, waiters.now())
		require.LessOrEqual(t, lists()-before, int64(2), "of the next in line, one for each release")
	})
}

// TestAWaiterSeesWhatLeftDuringItsReconnect: the contenders ahead leave while a waiter has no
// connection: the predecessor, the holder, or both.
func TestAWaiterSeesWhatLeftDuringItsReconnect(t *testing.T) {
	for _, leaves := range [][2]bool{{true, false}, {false, true}, {true, true}} {
		in(t, func(t *testing.T, w *world) {
			holder := held(t, t.Context(), locks.NewMutex(w.member("holder").Client, path))
			givesUp, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			between, waiters := newAsker(t), newAsker(t)
			between.ask("between", func(context.Context) (*locks.Lease, error) {
				return locks.NewMutex(w.member("between").Client, path).Lock(givesUp)
			})
			last := w.member("last")
			waiters.ask("last", locks.NewMutex(last.Client, path).Lock)
			last.Link.Cut()
			if leaves[0] {
				giveUp()
				synctest.Wait()
			}
			if leaves[1] {
				released(t, holder)
			}
			require.Empty(t, waiters.now())
			last.Link.Heal()
			time.Sleep(timeout / 4) // the pauses between attempts to connect
			if leaves[0] && leaves[1] {
				require.Equal(t, []string{"last"}, waiters.now())
				return
			}
			require.Empty(t, waiters.now(), "one of the two is there")
			if leaves[0] {
				released(t, holder)
			} else {
				require.Equal(t, []string{"between"}, between.now())
				between.release("between")
			}
			require.Equal(t, []string{"last"}, waiters.now())
		})
	}
}
