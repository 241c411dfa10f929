package framework_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
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

// createProtected creates one protected node.
func createProtected(ctx context.Context, s *framework.Session, dir, name string, data []byte) (framework.Created, error) {
	nodes, err := createTogether(ctx, s, framework.ProtectedCreate{Dir: dir, Name: name, Data: data})
	if err != nil {
		return framework.Created{}, err
	}
	return nodes[0], nil
}

// createTogether creates protected nodes.
func createTogether(ctx context.Context, s *framework.Session, c framework.ProtectedCreate) ([]framework.Created, error) {
	made, err := s.Primitives().CreateProtected(ctx, c)
	return made.Nodes, err
}

// createAndList creates one protected node and lists its directory behind that.
func createAndList(ctx context.Context, s *framework.Session, dir, name string, data []byte) (framework.Created, []string, error) {
	made, err := s.Primitives().CreateProtected(ctx, framework.ProtectedCreate{Dir: dir, Name: name, Data: data, List: true})
	if err != nil {
		return framework.Created{}, nil, err
	}
	return made.Nodes[0], made.Names, nil
}
