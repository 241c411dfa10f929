package barrierfx_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/barrier/barrierfx"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/internal/testkit/moduletest"
)

func TestModule(t *testing.T) {
	var f *barrier.Factory
	zk, app := moduletest.NewApp(t, framework.Config{}, barrierfx.Module, frameworkfx.WaitForSession, fx.Populate(&f))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := f.DoubleBarrier("/phase", 1).Enter(ctx)
	require.NoError(t, err)
	require.NoError(t, f.Gate("/gate").Wait(ctx))
	require.NoError(t, f.Latch("/latch", 1).CountDown(ctx, "x"))
	app.RequireStop()
	require.ErrorIs(t, r.Err(), framework.ErrClosed)
	require.NotContains(t, fmt.Sprint(zk.Tree("/phase")), "/m-", "the session was closed, not left to expire")
}
