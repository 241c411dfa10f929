package terminal

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPlainOutputWithoutTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "text", For(f).Red("text"))

	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.Equal(t, "text", For(null).Bold("text"))
}

func TestColoursAreSwitchedOffAgain(t *testing.T) {
	s := Style{colour: true}
	require.Equal(t, "\x1b[32mtext\x1b[0m", s.Green("text"))
	require.Empty(t, s.Dim(""))
}
