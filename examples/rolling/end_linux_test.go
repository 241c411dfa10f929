package main

import (
	"testing"

	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
)

// TestLeavesNothingAtSIGTERM without the help of a watchdog.
func TestLeavesNothingAtSIGTERM(t *testing.T) {
	t.Parallel()
	exampletest.RequireLeavesNothing(t, "drains, ends", "is killed")
}
