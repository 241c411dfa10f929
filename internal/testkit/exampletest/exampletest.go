// Package exampletest has what the tests of the example programs share.
package exampletest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
	"github.com/lockstep-go/lockstep/zktest"
)

// Main is the TestMain of an example whose tests run the program with testproc. In such a process,
// and in those that the program starts from the same binary, it calls the program's main.
func Main(m *testing.M, main func()) {
	if testproc.IsProgram() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// RequireCleanedUp checks that a program that has run on real servers has deleted its root node.
// The program names the node in its output.
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

// RequireLeavesNothing runs the program on a server of this test. It sends SIGTERM once the program
// has printed a text, which says that its processes hold something. When the program has ended, no
// session may have a node: the next holder waits for no session timeout then. Only those that the
// program has killed, or frozen, leave their sessions: it has printed the text killed for each.
func RequireLeavesNothing(t *testing.T, printed, killed string, args ...string) {
	t.Helper()
	zk, err := zktest.New()
	require.NoError(t, err)
	defer zk.Close()
	address, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	output := testproc.Terminate(t, testproc.Command(append([]string{"--zk", address}, args...)...), printed)
	killings := 0
	if killed != "" {
		killings = strings.Count(output, killed)
	}
	// a process that was still connecting may leave a session, which holds nothing
	owners := map[framework.SessionID]bool{}
	for _, n := range zk.Tree("/") {
		if n.Stat.EphemeralOwner != 0 {
			owners[n.Stat.EphemeralOwner] = true
		}
	}
	require.LessOrEqual(t, len(owners), killings, "sessions that were not closed: %v\n%s", zk.Sessions(), output)
}
