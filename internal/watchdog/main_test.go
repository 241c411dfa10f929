//go:build unix

package watchdog

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// traceableVariable is set by tests that look into a watchdog.
const traceableVariable = "LOCKSTEP_TEST_TRACEABLE"

// TestMain runs the watchdog if this test binary was started as one.
func TestMain(m *testing.M) {
	canBeTraced = os.Getenv(traceableVariable) != ""
	if IsWatchdog() {
		os.Exit(Main())
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // so that watchdogs end at once
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
