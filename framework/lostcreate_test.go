package framework_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestOneOfTwoCreatesOfASessionSucceeds, although the reply to the one is lost while the other is
// under way, with other data or the same.
func TestOneOfTwoCreatesOfASessionSucceeds(t *testing.T) {
	for _, second := range []string{"second", "first"} {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", sleepy)
			s := session(t, m)
			m.Link.Delay(10 * time.Millisecond)
			zk.DropReply(1, zktest.Match{Op: zktest.OpCreate, Path: "/one"})
			errs := make(chan error, 2)
			for _, data := range []string{"first", second} {
				go func() { errs <- s.Create(t.Context(), "/one", []byte(data), framework.Ephemeral) }()
				synctest.Wait()
			}
			require.NoError(t, <-errs)
			require.ErrorIs(t, <-errs, framework.ErrNodeExists)
			data, _, err := s.Get(t.Context(), "/one")
			require.NoError(t, err)
			require.Equal(t, "first", string(data))
		})
	}
}

// TestACreateWaitsNoLongerThanItsContext for another create of its session.
func TestACreateWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := zktest.Start(t).Member(t, "a", sleepy)
		s := session(t, m)
		m.Link.Delay(time.Second)
		first := make(chan error, 1)
		go func() { first <- s.Create(t.Context(), "/one", nil, framework.Ephemeral) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, s.Create(ctx, "/one", nil, framework.Ephemeral), context.DeadlineExceeded)
		require.NoError(t, <-first)
		require.ErrorIs(t, s.Create(t.Context(), "/one", nil, framework.Ephemeral), framework.ErrNodeExists)
	})
}

// TestACreateIsSettledByItsData: the session's node at the path is another call's, which was a
// transaction.
func TestACreateIsSettledByItsData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		s := session(t, m)
		m.Link.Delay(10 * time.Millisecond)
		zk.DropReply(1, zktest.Match{Op: zktest.OpCreate, Path: "/one"})
		created := make(chan error, 1)
		go func() {
			_, err := s.Multi(t.Context(), framework.CreateOp("/one", []byte("transaction"), framework.Ephemeral))
			created <- err
		}()
		synctest.Wait()
		require.ErrorIs(t, s.Create(t.Context(), "/one", []byte("call"), framework.Ephemeral), framework.ErrNodeExists)
		require.NoError(t, <-created)
	})
}

// TestABoundIsNotEnforcedByAFailedQuestion: the session's nodes have been deleted by another
// client. The create that asks the servers which nodes there are gives up; the one that waits for
// its answer asks again.
func TestABoundIsNotEnforcedByAFailedQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		small := sleepy
		small.MaxEphemeralBytes = 36
		m, operator := zk.Member(t, "a", small), zk.Member(t, "operator", sleepy)
		for i := range 3 {
			path := fmt.Sprintf("/e-%04d", i)
			require.NoError(t, m.Create(t.Context(), path, nil, framework.Ephemeral))
			require.NoError(t, operator.Delete(t.Context(), path, framework.AnyVersion))
		}
		m.Link.Delay(100 * time.Millisecond)
		hasty, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- m.Create(hasty, "/x", nil, framework.Ephemeral) }()
		synctest.Wait()
		require.NoError(t, m.Create(t.Context(), "/y", nil, framework.Ephemeral))
		require.ErrorIs(t, <-gaveUp, context.DeadlineExceeded)
	})
}
