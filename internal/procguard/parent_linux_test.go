package procguard

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// selfCommand returns this test binary as a program that runs a command; see TestMain.
func selfCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "CHILD_TEST_PROGRAM=1")
	return cmd
}

func TestCommandDiesWithItsParent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	parent := selfCommand("sh", "-c", "echo $$ >"+file+"; exec sleep 1000")
	require.NoError(t, parent.Start())
	pid := waitForLine(t, file)
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait() // its error says that it was killed
	waitForProcessEnd(t, pid)
}

// TestZombiesOfTheGroupAreNotWaitedFor by a process that inherits orphans, as process 1 of a
// container without an init does.
func TestZombiesOfTheGroupAreNotWaitedFor(t *testing.T) {
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	t.Cleanup(func() { require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)) })
	hold, lose := newLosableHold(t)
	cmd, file := shellCommand(t, `sleep 1000 & echo $! >$F; wait`)
	cmd.KillAfter = 30 * time.Minute
	wait := startCommand(cmd, hold)
	orphan := waitForLine(t, file)
	lose()
	ended := make(chan error, 1)
	go func() {
		_, err := wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, ErrHoldLost)
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for a zombie")
	}
	require.NoFileExists(t, "/proc/"+orphan+"/stat")
}

// startOnTerminal starts a program in a session of its own with a terminal of its own.
func startOnTerminal(t *testing.T, cmd *exec.Cmd) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	var unlock, number int32
	ioctl(t, master, unix.TIOCSPTLCK, &unlock)
	ioctl(t, master, unix.TIOCGPTN, &number)
	slave, err := os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(int(number))), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return master
}

func ioctl(t *testing.T, f *os.File, request uintptr, value *int32) {
	t.Helper()
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(value)))
	require.Zero(t, errno)
}

// readUntil reads from the terminal up to a word.
func readUntil(t *testing.T, r *bufio.Reader, word string) {
	t.Helper()
	read := make(chan bool, 1)
	var seen strings.Builder
	go func() {
		for !strings.Contains(seen.String(), word) {
			b, err := r.ReadByte()
			if err != nil {
				read <- false
				return
			}
			seen.WriteByte(b)
		}
		read <- true
	}()
	select {
	case ok := <-read:
		require.True(t, ok, "%q in %q", word, seen.String())
	case <-time.After(time.Minute):
		require.Fail(t, "not seen in time", word)
	}
}

func TestCommandGetsTheTerminal(t *testing.T) {
	cmd := selfCommand("sh", "-c",
		`read x; echo "got <$x>"; trap 'echo interrupted; exit 5' INT; echo "armed"; while :; do sleep 0.01; done`)
	tty := startOnTerminal(t, cmd)
	r := bufio.NewReader(tty)
	_, err := tty.WriteString("hello\n")
	require.NoError(t, err)
	readUntil(t, r, "got <hello>")
	readUntil(t, r, "armed")
	_, err = tty.WriteString("\x03") // the terminal sends Ctrl-C to the command's group only, so its parent goes on
	require.NoError(t, err)
	readUntil(t, r, "interrupted")
	require.Error(t, cmd.Wait())
	require.Equal(t, 5, cmd.ProcessState.ExitCode())
}

func TestTerminalIsTakenBack(t *testing.T) {
	cmd := exec.Command("sh", "-c", `CHILD_TEST_PROGRAM=1 "$0" true; read x; echo "after <$x>"`, os.Args[0])
	tty := startOnTerminal(t, cmd)
	_, err := tty.WriteString("hello\n")
	require.NoError(t, err)
	readUntil(t, bufio.NewReader(tty), "after <hello>")
	require.NoError(t, cmd.Wait())
}

func TestCtrlZContinuesTheCommand(t *testing.T) {
	cmd := selfCommand("sh", "-c", `echo ready; read x; echo "got <$x>"`)
	tty := startOnTerminal(t, cmd)
	r := bufio.NewReader(tty)
	readUntil(t, r, "ready")
	_, err := tty.WriteString("\x1a")
	require.NoError(t, err)
	readUntil(t, r, "^Z")
	_, err = tty.WriteString("hello\n")
	require.NoError(t, err)
	readUntil(t, r, "got <hello>")
	require.NoError(t, cmd.Wait())
}

func TestCommandBesideAPagerGetsTheTerminalWhenItReads(t *testing.T) {
	cmd := exec.Command("sh", "-c", `CHILD_TEST_PROGRAM=1 "$0" sh -c 'read x; echo "got <$x>"' | cat`, os.Args[0])
	tty := startOnTerminal(t, cmd)
	_, err := tty.WriteString("hello\n")
	require.NoError(t, err)
	readUntil(t, bufio.NewReader(tty), "got <hello>")
	require.NoError(t, cmd.Wait())
}
