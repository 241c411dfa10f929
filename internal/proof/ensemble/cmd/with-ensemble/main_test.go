package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

// TestMain runs the program itself if the environment says so.
func TestMain(m *testing.M) {
	if testproc.IsProgram() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// program returns a command that runs this program with the given arguments, and with its temporary
// files in dir.
func program(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	if err := ensemble.Installed(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	cmd := testproc.Command(args...)
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	return cmd
}

func wantNothingLeft(t *testing.T, dir, servers string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "ensemble-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	for addr := range strings.SplitSeq(strings.TrimSpace(servers), ",") {
		_, err := net.Dial("tcp", addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
}

func TestCommandFindsServersAndItsExitCodeIsPassedOn(t *testing.T) {
	dir := t.TempDir()
	out, err := program(t, dir, "-servers", "1", "-nofsync", "--", "sh", "-c",
		"echo $"+ensemble.ServersVariable+"; exit 7").Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.ExitCode())
	require.NotEmpty(t, out)
	wantNothingLeft(t, dir, string(out))
}

func TestSignalIsPassedOn(t *testing.T) {
	dir := t.TempDir()
	cmd := program(t, dir, "-servers", "1", "-nofsync", "--", "sh", "-c",
		"trap 'exit 9' TERM; echo $"+ensemble.ServersVariable+"; while :; do sleep 0.1; done")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	servers, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, 9, cmd.ProcessState.ExitCode())
	wantNothingLeft(t, dir, servers)
}

func TestCommandEndedBySignal(t *testing.T) {
	err := program(t, t.TempDir(), "-servers", "1", "-nofsync", "--", "sh", "-c", "kill -9 $$").Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 137, exit.ExitCode())
}

func TestUnrunnableCommand(t *testing.T) {
	dir := t.TempDir()
	out, err := program(t, dir, "-servers", "1", "-nofsync", "--", "./no-such-command").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, notRun, exit.ExitCode())
	require.Contains(t, string(out), "no-such-command")

	out, err = program(t, dir).CombinedOutput()
	require.ErrorAs(t, err, &exit)
	require.Equal(t, notRun, exit.ExitCode())
	require.Contains(t, string(out), "usage: with-ensemble")
}
