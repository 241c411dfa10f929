package frameworkfx_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
)

func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // for watchdogs: they are to end at once
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
