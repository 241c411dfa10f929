package ids_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/testkit/cleanuptest"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestCloseOfAWorkerIsACleanup(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
		w := ids.NewWorker(m.Client, path, 4)
		_, err := w.Next(t.Context())
		require.NoError(t, err)
		return w.Close
	}}.Check(t)
}

// TestCloseOfACounterDeletesItsMarker though the context has ended.
func TestCloseOfACounterDeletesItsMarker(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		c := counter(t, m)
		add(t, c, 1)
		require.NotEmpty(t, w.Children(markers))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, c.Close(ended))
		require.Empty(t, w.Children(markers))
	})
}
