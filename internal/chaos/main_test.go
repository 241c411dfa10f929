//go:build linux

package chaos

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
)

// What is run; see the Makefile's target chaos.
var (
	seedFlag = flag.Uint64("seed", 1, "what faults and operations are drawn from")
	duration = flag.Duration("duration", 0, "how long; 0 is two bursts with every kind of fault, for CI")
	asJSON   = flag.Bool("json", false, "end with a summary in JSON")
	evidence = flag.String("evidence", "", "the directory for the history of a violation; a new temporary one if empty")
)

// TestMain lets the test binary stand in for a client process, and for its watchdog.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}
