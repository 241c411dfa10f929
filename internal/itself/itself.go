// Package itself lets a test binary stand in for the program that it tests, so that tests run real processes with the
// same race detector and coverage as their own. It is for tests only.
package itself

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

const variable = "LOCKSTEP_TEST_ITSELF"

// Asked tells TestMain that this process is to be the program.
func Asked() bool { return os.Getenv(variable) != "" }

// Command is the program with arguments, in this process's environment.
func Command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), Environment()...)
	return cmd
}

// Environment is what makes a process of this binary the program.
func Environment() []string {
	return []string{variable + "=1", "GORACE=atexit_sleep_ms=0"} // the race detector's second at the end of each process
}

// Run runs the program to its end.
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
