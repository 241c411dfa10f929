package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

func TestMemberStartsAfterEmptyDirectoryIsRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		b := w.member("b", nil)
		require.NoError(t, b.Remove(t.Context(), "j"))
		s, err := a.client.Session(t.Context())
		require.NoError(t, err)
		a.link.Delay(100 * time.Millisecond)
		made := w.DelayReplies(time.Millisecond, zktest.Match{Op: zktest.OpCreateContainer, Path: testPath + "/jobs"})
		require.NoError(t, w.Expire(s.ID()))
		<-made.Hit()
		w.Reap()
		time.Sleep(time.Minute)
		require.Empty(t, a.done, "it runs")
	})
}
