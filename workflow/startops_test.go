package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// ownNode is an operation of a program's own.
func ownNode(name string) workflow.StartOption {
	return workflow.WithOps(framework.CreateOp("/own-"+name, nil, framework.Persistent))
}

func (w *world) requireOwnNode(name string, there bool) {
	w.t.Helper()
	_, ok := w.Node("/own-" + name)
	require.Equal(w.t, there, ok, name)
}

func TestStartWithOpsIsAtomic(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(fiveSteps(&done))
		require.NoError(t, m.Start(t.Context(), "five", "x", 1, ownNode("a"), ownNode("b")))
		w.requireOwnNode("a", true)
		w.requireOwnNode("b", true)
		m.await("x", workflow.Done)
		require.Len(t, done.all(), 5)

		for _, id := range []string{"y", "x2"} { // in a directory that exists, or not
			err := m.Start(t.Context(), "five", id, 1, ownNode("c"), ownNode("b"))
			require.ErrorIs(t, err, framework.ErrRefused)
			require.ErrorIs(t, err, framework.ErrNodeExists)
			var refused *framework.TxError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, 1, refused.Index)
			require.Equal(t, "/own-b", refused.Path)
			w.requireOwnNode("c", false)
			_, err = m.Inspect(t.Context(), id)
			require.ErrorIs(t, err, framework.ErrNotFound)
		}
		err := m.Start(t.Context(), "five", "y", 1,
			workflow.WithOps(framework.CreateOp("/none/node", nil, framework.Persistent)))
		require.ErrorIs(t, err, framework.ErrRefused)
		require.ErrorIs(t, err, framework.ErrNoNode)
		_, ok := w.Node("/none")
		require.False(t, ok, "the caller's directories are its own")
		require.ErrorIs(t, m.Start(t.Context(), "five", "y", 1, ownNode("d"), workflow.WithOps(framework.Op{})),
			framework.ErrInvalid)
		w.requireOwnNode("d", false)
		settled()
		require.Len(t, done.all(), 5, "nothing else was executed")
		runs, err := failure.Collect(m.List(t.Context()))
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.NoError(t, m.Start(t.Context(), "five", "y", 1, ownNode("c")), "without the conflict")
		m.await("y", workflow.Done)
	})
}

// TestStartWithOpsOfAnIDInUse: nil would say that the operations were done.
func TestStartWithOpsOfAnIDInUse(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(approval(0))
		m.start("approval", "x", 1)
		for range 2 {
			require.ErrorIs(t, m.Start(t.Context(), "approval", "x", 1, ownNode("a")), workflow.ErrIDInUse)
			require.ErrorIs(t, m.Start(t.Context(), "approval", "x", 2, ownNode("a")), workflow.ErrIDInUse)
			require.NoError(t, m.Signal(t.Context(), "x", "approved", "eve"))
			m.await("x", workflow.Done)
		}
		w.requireOwnNode("a", false)
	})
}

// TestStartWithTheGuardOfALostLock does not wait for another session: the lock is over for good.
func TestStartWithTheGuardOfALostLock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(approval(0))
		lease, err := locks.NewMutex(m.Client, "/lock").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, m.Start(t.Context(), "approval", "x", 1, workflow.WithOps(lease.Guard())))
		require.NoError(t, w.Expire(lease.Session()))
		<-lease.Context().Done()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, id := range []string{"x", "y"} {
			err = m.Start(ctx, "approval", id, 1, workflow.WithOps(lease.Guard()))
			require.ErrorIs(t, err, framework.ErrRefused)
			require.ErrorIs(t, err, framework.ErrSessionLost)
		}
		_, err = m.Inspect(t.Context(), "y")
		require.ErrorIs(t, err, framework.ErrNotFound)
	})
}

// TestStartWithOpsAfterLostReplies loses the answer of each transaction in turn, with the
// connection, and each transaction itself.
func TestStartWithOpsAfterLostReplies(t *testing.T) {
	for nth := 1; nth <= 4; nth++ {
		in(t, func(t *testing.T, w *world) {
			var done doneLog
			m := w.flows("a").work(fiveSteps(&done))
			settled()
			w.DropReply(nth, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
			require.NoError(t, m.Start(t.Context(), "five", "x", 1, ownNode("a")), "%d", nth)
			w.requireOwnNode("a", true)
			m.await("x", workflow.Done)
			require.Len(t, done.all(), 5)
		})
	}
}

// TestStartWithOpsOnTheNextSession: the session expires before the transaction reaches the servers.
func TestStartWithOpsOnTheNextSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		other := w.flows("b").work(fiveSteps(&done))
		m := w.flows("a")
		require.NoError(t, m.Register(fiveSteps(&done)))
		m.Link.BlackHole(true, true)
		time.AfterFunc(time.Minute, func() { m.Link.BlackHole(false, false) })
		require.NoError(t, m.Start(t.Context(), "five", "x", 1, ownNode("a")))
		w.requireOwnNode("a", true)
		other.await("x", workflow.Done)
		require.Len(t, done.all(), 5)
	})
}

// TestStartWithOpsWhoseContextEnds: both are done, or none of them, and the next call tells which.
func TestStartWithOpsWhoseContextEnds(t *testing.T) {
	for wait := range 12 {
		in(t, func(t *testing.T, w *world) {
			var done doneLog
			m := w.flows("a").work(fiveSteps(&done))
			m.Link.Delay(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(wait)*time.Second)
			defer cancel()
			first := m.Start(ctx, "five", "x", 1, ownNode("a"))
			m.Link.Delay(0)
			settled()
			_, made := w.Node("/own-a")
			if err := m.Start(t.Context(), "five", "x", 1, ownNode("a")); made {
				require.ErrorIs(t, err, workflow.ErrIDInUse, fmt.Sprint(wait))
			} else {
				require.Error(t, first)
				require.NoError(t, err)
			}
			if first != nil {
				require.True(t, errors.Is(first, context.DeadlineExceeded), first)
			}
			m.await("x", workflow.Done)
			require.Len(t, done.all(), 5)
		})
	}
}
