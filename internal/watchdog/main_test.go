//go:build unix

package watchdog

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the watchdog if this test binary was started as one.
func TestMain(m *testing.M) {
	if IsWatchdog() {
		os.Exit(Main())
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // so that watchdogs end at once
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
