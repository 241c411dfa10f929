package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

func TestTheExecutorsEndWithTheirParent(t *testing.T) {
	t.Parallel()
	testproc.RequireChildrenEnd(t, []string{"--kills", "40", "--no-watchdog", "--session-timeout", "10s"}, "kill -9  1",
		func(executors map[int]testproc.State) {
			require.NotEmpty(t, executors)
		})
}

// TestLeavesNothingAtSIGTERM without the help of a watchdog.
func TestLeavesNothingAtSIGTERM(t *testing.T) {
	t.Parallel()
	exampletest.RequireLeavesNothing(t, "kill -9", "kill -9", "--no-watchdog", "--session-timeout", "30s")
}
