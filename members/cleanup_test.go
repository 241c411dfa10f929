package members_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/cleanuptest"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestLeaveIsACleanup(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
		joined, err := members.New(m.Client, path).Join(t.Context(), "a", members.Info{})
		require.NoError(t, err)
		return joined.Leave
	}}.Check(t)
}

// TestUpdateEndsWithLeave, which begins while there is no connection: the deletion of the node
// lasts longer.
func TestUpdateEndsWithLeave(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		m := a.join("a")
		a.Link.Cut()
		updated := make(chan error, 1)
		go func() { updated <- m.Update(context.Background(), func(i *members.Info) { i.Load = 1 }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.Leave(ctx), framework.ErrUnconfirmed)
		synctest.Wait()
		require.Len(t, updated, 1, "it has ended")
		require.ErrorIs(t, <-updated, members.ErrLeft)
		a.Link.Heal()
	})
}
