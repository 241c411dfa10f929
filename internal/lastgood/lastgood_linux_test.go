package lastgood

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnlyRegularFilesAreUsed: a named pipe would not open, and a device must not be replaced.
func TestOnlyRegularFilesAreUsed(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, name := range []string{pipe, os.DevNull, t.TempDir()} {
		_, err := kind.Read(name, "/a")
		require.ErrorIs(t, err, ErrBadFile)
		require.ErrorContains(t, err, name)
		require.ErrorIs(t, kind.Write(name, Content{Path: "/a"}), ErrBadFile)
	}
}
