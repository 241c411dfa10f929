package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

func TestTheWorkersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	testproc.RequireChildrenEnd(t, []string{"--effort", "1m"}, "plans", func(workers map[int]testproc.State) {
		require.Len(t, workers, 4)
	})
}

// TestLeavesNothingAtSIGTERM without the help of a watchdog.
func TestLeavesNothingAtSIGTERM(t *testing.T) {
	t.Parallel()
	exampletest.RequireLeavesNothing(t, "leads with token", "is killed", "--no-watchdog", "--session-timeout", "30s")
}
