package frameworkfx_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/internal/testkit/moduletest"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAnAppStartsWhileZooKeeperIsDown builds and starts it against nobody, and connects when
// somebody is there.
func TestAnAppStartsWhileZooKeeperIsDown(t *testing.T) {
	leavesNoSession(t, func() (*zktest.Server, *fxtest.App) {
		zk := zktest.Start(t)
		link := zk.Link("app")
		link.Cut()
		var c *framework.Client
		app := fxtest.New(t, frameworkfx.Module, fx.Supply(framework.Config{Servers: zk.Servers()}), fx.Populate(&c),
			frameworkfx.AsOption(framework.WithDialer(link.DialContext)),
			frameworkfx.AsOption(framework.WithLogger(slog.New(slog.DiscardHandler))))
		app.RequireStart()
		link.Heal()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Session(ctx)
		require.NoError(t, err)
		return zk, app
	})
}

// leavesNoSession stops an application that start has started: the servers must know no session
// then. The client's Close promises that if a server gets the close within a second, so a stop that
// took longer on a slow machine is repeated with another application.
func leavesNoSession(t *testing.T, start func() (*zktest.Server, *fxtest.App)) {
	t.Helper()
	for took := time.Second; took >= time.Second; {
		zk, app := start()
		began := time.Now()
		app.RequireStop()
		if took = time.Since(began); took < time.Second {
			require.Empty(t, zk.Sessions())
		}
	}
}

func TestAnAppWithABadConfigDoesNotBuild(t *testing.T) {
	err := fx.New(frameworkfx.Module, fx.NopLogger, fx.Supply(framework.Config{}),
		fx.Invoke(func(*framework.Client) {})).Err()
	require.ErrorIs(t, err, framework.ErrInvalid)
	require.ErrorContains(t, err, "no servers given")
}

func TestAnAppsClientLogsToTheAppsLogger(t *testing.T) {
	apps, options := slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler)
	for want, opts := range map[*slog.Logger][]fx.Option{
		apps:    {fx.Supply(apps)},
		options: {fx.Supply(apps), frameworkfx.AsOption(framework.WithLogger(options))},
	} {
		var c *framework.Client
		app := fx.New(append(opts, fx.NopLogger, frameworkfx.Module,
			fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}), fx.Populate(&c))...)
		require.NoError(t, app.Err())
		require.Same(t, want, c.Logger())
	}
}

func TestAnAppWithAWatchdog(t *testing.T) {
	leavesNoSession(t, func() (*zktest.Server, *fxtest.App) {
		zk, app := moduletest.NewApp(t, framework.Config{}, frameworkfx.Watchdog(), frameworkfx.WaitForSession,
			frameworkfx.AsOption(framework.WithLogger(slog.New(slog.DiscardHandler))))
		return zk, app.RequireStart()
	})
}

func TestGraceSetsTheStopTimeout(t *testing.T) {
	require.Equal(t, 40*time.Second, fx.New(fx.NopLogger, frameworkfx.Grace(30*time.Second)).StopTimeout())
	require.ErrorContains(t, fx.New(fx.NopLogger, frameworkfx.Grace(0)).Err(),
		"frameworkfx.Grace: 0s: it must be positive")
}

func TestAnAppDoesNotBuildWithAnotherOption(t *testing.T) {
	require.ErrorContains(t, fx.New(fx.NopLogger, frameworkfx.Module, frameworkfx.AsOption("debug")).Err(),
		"frameworkfx.AsOption: want framework.Option")
}
