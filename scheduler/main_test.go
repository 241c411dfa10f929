package scheduler

import (
	"os"
	"os/signal"
	"testing"

	_ "time/tzdata" // the tests' zones, wherever they run

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// fx listens to signals; their machinery must not be started within a bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}
