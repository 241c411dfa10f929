//go:build linux

package chaos

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
)

// Flags; see the Makefile's target chaos.
var (
	seedFlag = flag.Uint64("seed", 1, "the seed of faults and operations")
	duration = flag.Duration("duration", 0,
		"how long bursts are run; 0 runs two bursts, and more until every kind of fault was injected")
	asJSON   = flag.Bool("json", false, "print the summary as JSON")
	evidence = flag.String("evidence", "",
		"the directory for the evidence of a violation; a new temporary one if empty")
)

// TestMain runs the test binary as a client process or a watchdog if the environment says so.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if role := os.Getenv(roleVariable); role != "" {
		runClientProcess(role)
		return
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}
