package workflowfx_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/internal/testkit/moduletest"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/workflow/workflowfx"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestModuleExecutesRuns(t *testing.T) {
	var w *workflow.Workflows
	double := workflow.NewKind[int, int]("double")
	doubled := double.Function(func(_ context.Context, _ *workflow.Run, n int) (int, error) { return 2 * n, nil })
	_, app := moduletest.NewApp(t, framework.Config{}, workflowfx.At("/flows"),
		workflowfx.AsOption(workflow.WithGrace(time.Second)),
		workflowfx.AsWorkflow(doubled), fx.Populate(&w))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	run, err := double.Start(ctx, w, "x", 21)
	require.NoError(t, err)
	result, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 42, result)
	require.Equal(t, "/flows", w.Path())
	app.RequireStop()
	_, err = double.Start(ctx, w, "y", 21)
	require.Error(t, err)
}

func TestModuleRefusesBadKinds(t *testing.T) {
	client := fx.Options(frameworkfx.Module, fx.NopLogger,
		fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}))
	base := fx.Options(client, workflowfx.At("/flows"))
	function := func() workflow.Function {
		return workflow.NewKind[int, int]("a").Function(
			func(context.Context, *workflow.Run, int) (int, error) { return 0, nil })
	}
	require.NoError(t, fx.New(base).Err(), "no kinds, nothing to do")
	twice := fx.Options(workflowfx.AsWorkflow(function), workflowfx.AsWorkflow(function))
	require.ErrorIs(t, fx.New(base, twice).Err(), framework.ErrInvalid)
	require.ErrorContains(t, fx.New(base, workflowfx.AsWorkflow(func() int { return 0 })).Err(),
		"workflowfx.AsWorkflow: want workflow.Function")
	require.ErrorIs(t, fx.New(client, workflowfx.At("x")).Err(), framework.ErrInvalid)
	require.ErrorContains(t, fx.New(base, workflowfx.AsWorkflow(function)).Err(), "workflow.WithGrace: functions may "+
		"take 30s to end, and the application's stop allows 11.25s: give fx.New frameworkfx.Grace(30s) in place of "+
		"fx.StopTimeout")
	app := fx.New(base, workflowfx.AsWorkflow(function), frameworkfx.Grace(30*time.Second))
	require.NoError(t, app.Err())
	require.Equal(t, 40*time.Second, app.StopTimeout())
}

// TestStopBeforeTheEndOfTheGrace: a stop that lasts for less than the stop timeout ends the grace,
// and the client is closed within it.
func TestStopBeforeTheEndOfTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		var w *workflow.Workflows
		begun, ended := make(chan struct{}), make(chan error, 1)
		long := workflow.NewKind[int, int]("long")
		function := long.Function(func(ctx context.Context, _ *workflow.Run, _ int) (int, error) {
			close(begun)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return 0, ctx.Err()
		})
		app := fxtest.New(t, frameworkfx.Module, fx.Supply(framework.Config{Servers: zk.Servers()}),
			frameworkfx.AsOption(framework.WithDialer(zk.Link("a").DialContext)),
			frameworkfx.AsOption(framework.WithTimeClock()), workflowfx.At("/flows"),
			frameworkfx.Grace(30*time.Second), workflowfx.AsWorkflow(function), fx.Populate(&w))
		app.RequireStart()
		_, err := long.Start(t.Context(), w, "x", 21)
		require.NoError(t, err)
		<-begun
		stopping, cancel := context.WithTimeout(t.Context(), fx.DefaultTimeout)
		defer cancel()
		began := time.Now()
		err = app.Stop(stopping)
		require.ErrorIs(t, err, framework.ErrDraining)
		require.Equal(t, 11250*time.Millisecond, time.Since(began))
		require.ErrorIs(t, <-ended, framework.ErrDraining)
		require.Empty(t, zk.Sessions(), "the client is closed")
	})
}
