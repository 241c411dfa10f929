package framework_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
)

// TestMain is also the watchdog of a process, and the process that a test kills.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if os.Getenv(victimVariable) != "" {
		victim()
		return
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // for watchdogs: they are to end at once
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
