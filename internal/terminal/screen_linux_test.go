package terminal

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal opens a new terminal. What is written to it can be read from its other side, the
// master.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return master, terminal
}

// modes returns the modes of a terminal.
func modes(t *testing.T, terminal *os.File) *unix.Termios {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return modes
}

// readUntil reads from the master up to a text.
func readUntil(t *testing.T, master *bufio.Reader, text string) {
	t.Helper()
	seen := make(chan error, 1)
	go func() {
		var all strings.Builder
		for !strings.HasSuffix(all.String(), text) {
			b, err := master.ReadByte()
			if err != nil {
				seen <- err
				return
			}
			all.WriteByte(b)
		}
		seen <- nil
	}()
	select {
	case err := <-seen:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "not seen in time", "%q", text)
	}
}

func TestAScreenThatCannotBeOpenedLeavesTheTerminalAsItWas(t *testing.T) {
	_, terminal := openTerminal(t)
	before := modes(t, terminal)
	closed, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	_, err = OpenScreen(terminal, closed)
	require.ErrorIs(t, err, os.ErrClosed)
	require.Equal(t, before, modes(t, terminal))
}

// TestAScreenIsEnteredAgainAfterAStop from outside, after which a shell has reset the modes of the
// terminal.
func TestAScreenIsEnteredAgainAfterAStop(t *testing.T) {
	master, terminal := openTerminal(t)
	shown := bufio.NewReader(master)
	before := modes(t, terminal)
	screen, err := OpenScreen(terminal, terminal)
	require.NoError(t, err)
	raw := modes(t, terminal)
	require.NotEqual(t, before, raw)
	ended := make(chan error, 1)
	go func() {
		ended <- screen.Run(context.Background(), nil, func(key Key) bool { return key != "q" },
			func() error { return screen.Draw([]string{"frame"}) })
	}()
	readUntil(t, shown, enterScreen)
	readUntil(t, shown, "frame\x1b[K\x1b[J")
	require.NoError(t, unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, before))
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGCONT))
	readUntil(t, shown, enterScreen)
	readUntil(t, shown, "frame\x1b[K\x1b[J")
	require.Equal(t, raw, modes(t, terminal))
	_, err = master.WriteString("q")
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.NoError(t, screen.Close())
	require.Equal(t, before, modes(t, terminal), "as before the Screen")
	require.NoError(t, master.Close()) // ends the goroutine that reads keys
	for range screen.read {
		require.Fail(t, "no key was pressed")
	}
}
