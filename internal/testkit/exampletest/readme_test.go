package exampletest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// firstProgram builds the first program of a page, for a server at an address.
func firstProgram(t *testing.T, page, address string) (program string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", page))
	require.NoError(t, err)
	_, source, found := strings.Cut(string(text), "```go\npackage main\n")
	require.True(t, found)
	source, _, found = strings.Cut(source, "```\n")
	require.True(t, found)
	const published = `"127.0.0.1:2181"`
	require.Contains(t, source, published)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file,
		[]byte("package main\n"+strings.ReplaceAll(source, published, `"`+address+`"`)), 0o600))
	program = strings.TrimSuffix(file, ".go")
	out, err := exec.Command("go", "build", "-o", program, file).CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// TestFirstProgramsLeaveNothingAtSIGTERM: the next holder needs no session timeout.
func TestFirstProgramsLeaveNothingAtSIGTERM(t *testing.T) {
	for _, page := range []string{"README.md", "docs/start/five-minutes.md"} {
		t.Run(page, func(t *testing.T) {
			zk, err := zktest.New()
			require.NoError(t, err)
			defer zk.Close()
			address, err := zk.ListenTCP("127.0.0.1:0")
			require.NoError(t, err)
			output := testproc.Terminate(t, exec.Command(firstProgram(t, page, address)), "holding with token")
			require.Empty(t, zk.Sessions(), "its session was closed: %s", output)

			next, err := framework.Connect(t.Context(), framework.Config{Servers: []string{address}})
			require.NoError(t, err)
			defer func() { require.NoError(t, next.Close(t.Context())) }()
			lease, err := locks.NewMutex(next, "/lockstep/locks/orders/42").TryLock(t.Context())
			require.NoError(t, err)
			require.NoError(t, lease.Release(t.Context()))
		})
	}
}
