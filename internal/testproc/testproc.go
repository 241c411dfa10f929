// Package testproc re-executes the test binary as the program under test, so that tests run real processes with the race detector and the
// coverage of the test itself. It is for tests only.
package testproc

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

const programVariable = "LOCKSTEP_TEST_PROGRAM"

// IsProgram reports whether this process is to run the program. Call it in TestMain.
func IsProgram() bool { return os.Getenv(programVariable) != "" }

// Command returns a command that runs the program with arguments, in this process's environment.
func Command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), Environment()...)
	return cmd
}

// Environment returns the variables that make a process of this binary run the program.
func Environment() []string {
	return []string{programVariable + "=1", "GORACE=atexit_sleep_ms=0"} // without it, the race detector adds a second to the end of each process
}

// Run runs the program and returns its output and its exit code. If the test fails, it logs both.
func Run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := Command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the state says how it ended
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%q\nstdout: %s\nstderr: %s", args, out.String(), errs.String())
		}
	})
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
