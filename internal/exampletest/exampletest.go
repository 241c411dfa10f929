// Package exampletest has what the tests of the example programs share.
package exampletest

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testproc"
)

// Main is the TestMain of an example whose tests run the program with testproc. In such a process, and in those that the program starts from the same
// binary, it calls the program's main.
func Main(m *testing.M, main func()) {
	if testproc.IsProgram() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// RequireCleanedUp checks that a program that has run on real servers has deleted its root node. The program names the node in its
// output.
func RequireCleanedUp(t *testing.T, servers []string, output string) {
	t.Helper()
	root := regexp.MustCompile(`/lockstep-example-\w+`).FindString(output)
	require.NotEmpty(t, root)
	client, err := framework.Connect(t.Context(), framework.Config{Servers: servers})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close(t.Context())) }()
	session, err := client.Session(t.Context())
	require.NoError(t, err)
	require.NoError(t, session.Sync(t.Context(), "/"))
	_, err = client.Exists(t.Context(), root)
	require.ErrorIs(t, err, framework.ErrNoNode, "the root node still exists")
}
