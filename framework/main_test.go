package framework_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// TestMain is also the watchdog of a process, and the process that a test kills.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if os.Getenv(victimVariable) != "" {
		victim()
		return
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // for watchdogs: they are to end at once
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// createOwn creates an ephemeral node.
func createOwn(t *testing.T, s *framework.Session, path string) primitives.Created {
	t.Helper()
	rs, err := s.Multi(t.Context(), framework.CreateOp(path, nil, framework.Ephemeral))
	require.NoError(t, err)
	return primitives.Created{Path: path, Zxid: rs[0].Zxid}
}

// createProtected creates one protected node.
func createProtected(ctx context.Context, s *framework.Session, dir, name string,
	data []byte) (primitives.Created, error) {
	nodes, err := createTogether(ctx, s, primitives.ProtectedCreate{Dir: dir, Name: name, Data: data})
	if err != nil {
		return primitives.Created{}, err
	}
	return nodes[0], nil
}

// createTogether creates protected nodes.
func createTogether(ctx context.Context, s *framework.Session,
	c primitives.ProtectedCreate) ([]primitives.Created, error) {
	made, err := primitives.Of(s).CreateProtected(ctx, c)
	return made.Nodes, err
}

// createAndList creates one protected node and lists its directory behind that.
func createAndList(ctx context.Context, s *framework.Session, dir, name string,
	data []byte) (primitives.Created, []string, error) {
	made, err := primitives.Of(s).CreateProtected(ctx,
		primitives.ProtectedCreate{Dir: dir, Name: name, Data: data, List: true})
	if err != nil {
		return primitives.Created{}, nil, err
	}
	return made.Nodes[0], made.Names, nil
}
