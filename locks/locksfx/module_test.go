package locksfx_test

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
	"github.com/lockstep-go/lockstep/zktest"
)

func TestModule(t *testing.T) {
	zk := zktest.Start(t)
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	var f *locks.Factory
	app := fxtest.New(t, frameworkfx.Module, locksfx.Module, frameworkfx.WaitForSession,
		fx.Supply(framework.Config{Servers: []string{addr}}), fx.Populate(&f))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := f.Mutex("/locks/fx").Lock(ctx)
	require.NoError(t, err)
	app.RequireStop()
	require.ErrorIs(t, l.Err(), framework.ErrClosed)
	require.Empty(t, zk.Children("/locks/fx"), "the session was closed, not left to expire")
}
