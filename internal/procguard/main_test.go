//go:build unix

package procguard

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain runs this test binary as a program if CHILD_TEST_PROGRAM is set. The tests need such a
// program to kill the parent of a command, and to give it a terminal.
func TestMain(m *testing.M) {
	if os.Getenv("CHILD_TEST_PROGRAM") != "" {
		os.Exit(runProgram(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// runProgram runs a command under an endless hold.
func runProgram(args []string) int {
	code, err := Command{Args: args, KillAfter: time.Second}.Run(endlessHold())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}
