package conformance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/conformance"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startMemory(t *testing.T) *zktest.Server {
	t.Helper()
	return zktest.Start(t, zktest.WithTick(500*time.Millisecond), zktest.WithContainerInterval(200*time.Millisecond))
}

func TestMemoryConformsOverTCP(t *testing.T) {
	srv := startMemory(t)
	addr, err := srv.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	conformance.Run(t, conformance.Target{Servers: []string{addr}})
}

func TestMemoryConformsOverLinks(t *testing.T) {
	srv := startMemory(t)
	conformance.Run(t, conformance.Target{Servers: srv.Servers(), Dial: srv.Link("suite").Dial})
}
