package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/workflow"
)

func newDatabase(t *testing.T) *database {
	t.Helper()
	l, err := openDatabase(filepath.Join(t.TempDir(), "50% of #1, really?.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.close()) })
	require.NoError(t, l.create(t.Context()))
	return l
}

func (l *database) require(t *testing.T, want orderRecord) {
	t.Helper()
	got, err := l.read(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestOneKeyPaysOnce(t *testing.T) {
	l := newDatabase(t)
	require.NoError(t, l.charge(t.Context(), "x", 100, workflow.Key{ID: "k", Token: 5}))
	require.NoError(t, l.charge(t.Context(), "x", 100, workflow.Key{ID: "k", Token: 5}), "the same executor again")
	require.NoError(t, l.charge(t.Context(), "x", 100, workflow.Key{ID: "k", Token: 7}), "the next executor")
	l.require(t, orderRecord{"charged", 7, 1, 100})
	require.NoError(t, l.charge(t.Context(), "x", 1, workflow.Key{ID: "other", Token: 7}))
	l.require(t, orderRecord{"charged", 7, 2, 101})
}

// TestOlderTokensAreRefused checks that a late write of an executor that was paused changes neither
// the order nor the payments, with a known key and with a new one.
func TestOlderTokensAreRefused(t *testing.T) {
	l := newDatabase(t)
	require.NoError(t, l.setState(t.Context(), "x", "reserve", workflow.Key{Token: 5}))
	require.NoError(t, l.charge(t.Context(), "x", 100, workflow.Key{ID: "k", Token: 7}))
	require.ErrorIs(t, l.setState(t.Context(), "x", "reserve", workflow.Key{Token: 6}), errRefused)
	require.ErrorIs(t, l.charge(t.Context(), "x", 100, workflow.Key{ID: "k", Token: 5}), errRefused)
	require.ErrorIs(t, l.charge(t.Context(), "x", 100, workflow.Key{ID: "new", Token: 6}), errRefused)
	l.require(t, orderRecord{"charged", 7, 1, 100})
}
