package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/itself"
)

func TestFrozenHoldersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	itself.RequireChildrenEnd(t, []string{"--session-timeout", "1h"}, "bob waits", func(holders map[int]itself.State) {
		require.Len(t, holders, 2)
		require.Contains(t, slices.Collect(maps.Values(holders)), itself.Stopped, "ann is frozen")
	})
}
