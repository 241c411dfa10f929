package architecture

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestCommandsHaveStreamsOfTheirOwn(t *testing.T) {
	files, err := loadModule()
	require.NoError(t, err)
	wrong, err := Streams(thisModule, files)
	require.NoError(t, err)
	if len(wrong) > 0 {
		t.Errorf("\n%s", strings.Join(wrong, "\n"))
	}
}

func TestTheProcessesStreamsAreFound(t *testing.T) {
	for path, body := range map[string]string{
		"internal/cli/lock/lock.go":      "var out = os.Stdout",
		"internal/cli/exit.go":           "func f() { os.Exit(1) }",
		"internal/cli/dev/dev.go":        "func f() { fmt.Println() }",
		"internal/cli/streams.go":        "",
		"internal/cli/lock/lock_test.go": "",
		"cmd/lockstep/main.go":           "",
	} {
		source := "package p\n" + body
		if body == "" {
			source += "var out = os.Stdout"
		}
		module := fstest.MapFS{path: {Data: []byte(source)}}
		files, err := Load(module)
		require.NoError(t, err)
		wrong, err := Streams(module, files)
		require.NoError(t, err)
		if body == "" {
			require.Empty(t, wrong, path)
			continue
		}
		require.Len(t, wrong, 1, path)
		require.Contains(t, wrong[0], path+":2:")
	}
}
