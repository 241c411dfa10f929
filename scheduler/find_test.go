package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func TestFindYieldsSchedulersAtAnyDepth(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		client := w.Member(t, "look", w.config).Client
		session, err := client.Session(t.Context())
		require.NoError(t, err)
		paths := []string{"/a/cron", "/a/cron/team", "/a/cron/team/x", "/b"}
		for _, path := range paths {
			s := New(client, path)
			require.NoError(t, s.Add(one(Job{Spec: "0 0 1 1 *", Run: quick})[0]))
			require.NoError(t, s.registrar.registerAll(t.Context()))
		}
		require.NoError(t, session.MakeDirs(t.Context(), "/c/jobs/j"))
		var found []string
		for path, err := range Find(t.Context(), client, "/") {
			require.NoError(t, err)
			found = append(found, path)
		}
		require.Equal(t, paths, found, "/c has jobs alone: they may be another program's")

		found = nil
		var last error
		for path, err := range findUpTo(t.Context(), client, "/a", 3) {
			found, last = append(found, path), err
		}
		require.Equal(t, []string{"/a/cron", "/a/cron/team", ""}, found)
		require.ErrorIs(t, last, framework.ErrTooLarge)
		require.ErrorContains(t, last, "ended before /a/cron/team/x")
		for range Find(t.Context(), client, "/missing") {
			require.Fail(t, "nothing is there")
		}
		time.Sleep(time.Second)
	})
}
