//go:build unix

package procguard

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain runs this test binary as a program when asked to: a program of its own is needed to see what
// becomes of a command when its parent is killed, or has a terminal.
func TestMain(m *testing.M) {
	if os.Getenv("CHILD_TEST_PROGRAM") != "" {
		os.Exit(runProgram(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// runProgram runs a command under a hold that lasts.
func runProgram(args []string) int {
	code, err := Command{Args: args, KillAfter: time.Second}.Run(endlessHold())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}
