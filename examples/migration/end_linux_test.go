package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

func TestTheMembersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	testproc.RequireChildrenEnd(t, []string{"--step", "1h"}, "begins copy-1", func(members map[int]testproc.State) {
		require.Len(t, members, 3)
	})
}

// TestLeavesNothingAtSIGTERM without the help of a watchdog.
func TestLeavesNothingAtSIGTERM(t *testing.T) {
	t.Parallel()
	exampletest.RequireLeavesNothing(t, "leads", "", "--step", "1h", "--no-watchdog", "--session-timeout", "30s")
}
