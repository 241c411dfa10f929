//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal asks for the window size, since only terminals have one.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
