package locksfx_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/internal/testkit/moduletest"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/locks/locksfx"
)

func TestModule(t *testing.T) {
	var f *locks.Factory
	zk, app := moduletest.NewApp(t, framework.Config{}, locksfx.Module, frameworkfx.WaitForSession, fx.Populate(&f))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := f.Mutex("/locks/fx").Lock(ctx)
	require.NoError(t, err)
	app.RequireStop()
	require.ErrorIs(t, l.Err(), framework.ErrClosed)
	require.Empty(t, zk.Children("/locks/fx"), "the session was closed, not left to expire")
}
