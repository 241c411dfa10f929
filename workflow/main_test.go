package workflow_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	path     = "/work/migration"
	lockPath = "/locks/migration"
)

// world is a server in memory, in virtual time.
type world struct {
	*zktest.Server
	t *testing.T
}

func in(t *testing.T, test func(t *testing.T, w *world), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{zktest.Start(t, opts...), t}) })
}

func (w *world) member(name string) *zktest.Member {
	return w.Member(w.t, name, framework.Config{SessionTimeout: 10 * time.Second})
}

// execution is a member that holds the lock and has opened the ledger.
type execution struct {
	*zktest.Member
	ledger *workflow.Ledger
	lease  *locks.Lease
	opened *workflow.OpenLedger
}

func (w *world) execute(m *zktest.Member) *execution {
	w.t.Helper()
	lease, err := locks.NewMutex(m.Client, lockPath).Lock(w.t.Context())
	require.NoError(w.t, err)
	e := &execution{m, workflow.NewLedger(m.Client, path), lease, nil}
	e.open(w.t)
	return e
}

func (e *execution) open(t *testing.T) {
	t.Helper()
	opened, err := e.ledger.Open(t.Context(), e.lease)
	require.NoError(t, err)
	e.opened = opened
}

func (e *execution) release(t *testing.T) {
	t.Helper()
	require.NoError(t, e.lease.Release(t.Context()))
}

// steps are the nodes of finished steps.
func (w *world) steps() []string { return w.Children(path) }
