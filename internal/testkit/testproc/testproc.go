// Package testproc re-executes the test binary as the program under test, so that tests run real
// processes with the race detector and the coverage of the test itself. It is for tests only.
package testproc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const programVariable = "LOCKSTEP_TEST_PROGRAM"

// IsProgram reports whether this process must run the program. Call it in TestMain.
func IsProgram() bool { return os.Getenv(programVariable) != "" }

// Command returns a command that runs the program with arguments, in this process's environment.
func Command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), Environment()...)
	return cmd
}

// Environment returns the variables that make a process of this binary run the program.
func Environment() []string {
	// without it, the race detector adds a second to the end of each process
	return []string{programVariable + "=1", "GORACE=atexit_sleep_ms=0"}
}

// patience is how long Run waits for the end of a program: far longer than a program takes, and far
// shorter than the limits of "go test". lastOutput is how long Run waits after the end until no
// process has the program's output open.
const patience, lastOutput = 5 * time.Minute, time.Minute

// Run runs the program and returns its output and its exit code. If the test fails, it logs both. A
// program that does not end fails the test; then its standard error has the goroutines of the
// program and of its children.
func Run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	late := time.NewTimer(patienceOf(t))
	defer late.Stop()
	stdout, stderr, code, err := runUntil(late.C, args...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%q\nstdout: %s\nstderr: %s", args, stdout, stderr)
		}
	})
	if err != nil {
		t.Error(err)
	}
	return stdout, stderr, code
}

// patienceOf returns patience, or half of the time that the test binary has left, if that is
// shorter.
func patienceOf(t *testing.T) time.Duration {
	if deadline, limited := t.Deadline(); limited {
		return min(patience, time.Until(deadline)/2)
	}
	return patience
}

var errHangs = errors.New("the program did not end; its standard error has its goroutines")

// runUntil runs the program. When late receives a value, it makes the program print its goroutines
// and end.
func runUntil(late <-chan time.Time, args ...string) (stdout, stderr string, code int, err error) {
	cmd := Command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, lastOutput
	if err := cmd.Start(); err != nil {
		return "", "", -1, err
	}
	ended := make(chan struct{})
	hung := make(chan bool, 1)
	go func() {
		select {
		case <-late:
			QuitAll(cmd.Process)
			hung <- true
		case <-ended:
			hung <- false
		}
	}()
	err = cmd.Wait()
	close(ended)
	switch {
	case <-hung:
		err = errHangs
	case errors.Is(err, exec.ErrWaitDelay):
		err = errors.New("the program has ended, and a process that it has started keeps its output open")
	default: // the state says how it ended
		err = nil
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode(), err
}

// Terminate runs a program, sends SIGTERM once it has printed a text, on standard output or
// standard error, and returns all that it has printed by its end.
func Terminate(t *testing.T, cmd *exec.Cmd, printed string) string {
	t.Helper()
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = write, write, lastOutput
	require.NoError(t, cmd.Start())
	late := time.AfterFunc(patienceOf(t), func() { QuitAll(cmd.Process) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // a program that a signal ends may fail
		_ = write.Close()
	}()
	var output strings.Builder
	found := false
	for lines := bufio.NewScanner(read); lines.Scan(); {
		fmt.Fprintln(&output, lines.Text())
		if !found && strings.Contains(lines.Text(), printed) {
			found = true
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	<-ended
	require.True(t, late.Stop(), "it hangs: %s", &output)
	require.True(t, found, "it has ended without %q: %s", printed, &output)
	return output.String()
}
