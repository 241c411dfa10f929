package monitorfx_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/internal/testkit/moduletest"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/monitor/monitorfx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModuleReportsEvents(t *testing.T) {
	events := make(chan monitor.Event, 10)
	var client *framework.Client
	zk, app := moduletest.NewApp(t, framework.Config{}, frameworkfx.WaitForSession,
		monitorfx.At("/monitors/app", "/app", monitor.WithInterval(time.Second), monitor.WithHysteresis(1, 1)),
		fx.Populate(&client),
		fx.Supply(monitorfx.OnEvent(func(_ context.Context, e monitor.Event) error { events <- e; return nil })))
	app.RequireStart()
	node := "/app/lock/_c_00000000-0000-4000-8000-000000000000-lock-0000000000"
	require.NoError(t, client.MakeDirs(t.Context(), "/app/lock"))
	require.NoError(t, client.Create(t.Context(), node, nil, framework.Persistent))
	select {
	case e := <-events:
		require.Equal(t, monitor.ProblemOrphan, e.Problem)
	case <-time.After(time.Minute):
		require.Fail(t, "no event was reported")
	}
	app.RequireStop()
	require.Empty(t, zk.Children("/monitors/app/election"))
}

func TestModuleRefusesBadArguments(t *testing.T) {
	app := fx.New(fx.NopLogger, frameworkfx.Module, monitorfx.At("x", "/"),
		fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}))
	require.ErrorContains(t, app.Err(), "invalid path")
}
