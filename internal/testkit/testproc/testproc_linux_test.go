package testproc

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain runs the program if the environment says so.
func TestMain(m *testing.M) {
	if IsProgram() {
		runProgram()
	}
	goleak.VerifyTestMain(m)
}

// runProgram ends at once, or starts a child and hangs. The child opens a named pipe and then
// hangs, too.
func runProgram() {
	if len(os.Args) < 2 {
		fmt.Println("done")
		os.Exit(7)
	}
	if len(os.Args) > 2 {
		childHangs(os.Args[1])
	}
	parentHangs(os.Args[1])
}

func parentHangs(pipe string) {
	child := Command(pipe, "child")
	child.Stderr = os.Stderr
	if err := child.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the child has ended")
		os.Exit(1)
	}
}

func childHangs(pipe string) {
	if err := os.WriteFile(pipe, nil, 0o600); err != nil {
		panic(err)
	}
	<-time.After(time.Hour)
}

func TestProgramThatEnds(t *testing.T) {
	out, errs, code, err := runUntil(nil)
	require.NoError(t, err)
	require.Equal(t, "done\n", out)
	require.Empty(t, errs)
	require.Equal(t, 7, code)
}

// TestHangingProgramPrintsGoroutines checks that both a program and its child print their
// goroutines, although each of them would end when the other one ends.
func TestHangingProgramPrintsGoroutines(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	late := make(chan time.Time)
	go func() {
		defer close(late)
		_, _ = os.ReadFile(pipe) // until the child has closed it
	}()
	_, errs, code, err := runUntil(late, pipe)
	require.ErrorIs(t, err, errHangs)
	require.Contains(t, errs, "testproc.childHangs(")
	require.Contains(t, errs, "testproc.parentHangs(")
	require.NotContains(t, errs, "the child has ended")
	require.Equal(t, 2, code)
}
