package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

func TestFrozenHoldersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	testproc.RequireChildrenEnd(t, []string{"--session-timeout", "1h"}, "bob waits",
		func(holders map[int]testproc.State) {
			require.Len(t, holders, 2)
			require.Contains(t, slices.Collect(maps.Values(holders)), testproc.Stopped, "ann is frozen")
		})
}

// TestLeavesNothingAtSIGTERM without the help of a watchdog.
func TestLeavesNothingAtSIGTERM(t *testing.T) {
	t.Parallel()
	exampletest.RequireLeavesNothing(t, "holds the lock with token", "is frozen", "--session-timeout", "30s")
}
