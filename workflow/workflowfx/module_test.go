package workflowfx_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/locks/locksfx"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/workflow/workflowfx"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestModule(t *testing.T) {
	zk := zktest.Start(t)
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	var f *workflow.Factory
	var l *locks.Factory
	app := fxtest.New(t, frameworkfx.Module, locksfx.Module, workflowfx.Module, frameworkfx.WaitForSession,
		fx.Supply(framework.Config{Servers: []string{addr}}), fx.Populate(&f, &l))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := l.Mutex("/locks/a").Lock(ctx)
	require.NoError(t, err)
	run, err := f.Ledger("/work/a").Open(ctx, lease)
	require.NoError(t, err)
	require.NoError(t, run.Do(ctx, "a", func(context.Context, workflow.Key) error { return nil }))
	require.NoError(t, lease.Release(ctx))
	app.RequireStop()
}
