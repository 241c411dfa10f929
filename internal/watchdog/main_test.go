//go:build unix

package watchdog

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is the watchdog itself when it is asked to be one.
func TestMain(m *testing.M) {
	if IsWatchdog() {
		os.Exit(Main())
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // for watchdogs: they are to end at once
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
