package appmodule_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
)

func TestMain(m *testing.M) {
	signals := make(chan os.Signal, 1) // fx listens for them: the runtime's part of that must be begun outside bubbles
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}

// app returns an application that makes no client.
func app(opts ...fx.Option) *fx.App {
	return fx.New(fx.NopLogger, frameworkfx.Module, fx.Options(opts...),
		fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}))
}

// TestStagesStopInOrder whatever the order of the modules, each once, also when some fail.
func TestStagesStopInOrder(t *testing.T) {
	late := errors.New("late")
	for _, stages := range [][]drain.Stage{
		{drain.Pool, drain.Work, drain.Leadership, drain.Background, drain.Membership},
		{drain.Membership, drain.Background, drain.Leadership, drain.Work, drain.Pool},
		{drain.Work, drain.Membership, drain.Pool, drain.Background, drain.Leadership},
	} {
		var started, stopped []drain.Stage
		var opts []fx.Option
		for _, stage := range stages {
			opts = append(opts, fx.Invoke(func(a appmodule.App) {
				a.Append(stage, func(context.Context) error { started = append(started, stage); return nil },
					func(context.Context) error { stopped = append(stopped, stage); return late })
			}))
		}
		a := app(opts...)
		require.NoError(t, a.Start(t.Context()))
		require.Equal(t, stages, started)
		require.ErrorIs(t, a.Stop(t.Context()), late)
		require.Equal(t, []drain.Stage{drain.Pool, drain.Work, drain.Leadership, drain.Background, drain.Membership},
			stopped)
	}
}

// TestWhatFailsAfterTheStop is an error of the stop, and does not shut the application down.
func TestWhatFailsAfterTheStop(t *testing.T) {
	own := errors.New("disk full")
	for _, c := range []struct {
		f    func(context.Context) error
		want error
	}{
		{func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil},
		{func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, nil},
		{func(ctx context.Context) error { <-ctx.Done(); return own }, own},
	} {
		a := app(fx.Invoke(func(a appmodule.App) {
			a.Run(drain.Work, "work", "/w", slog.New(slog.DiscardHandler), c.f)
		}))
		require.NoError(t, a.Start(t.Context()))
		err := a.Stop(t.Context())
		if c.want == nil {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, c.want)
	}
}

// TestWhatDoesNotEndIsNamed after its part of the stop.
func TestWhatDoesNotEndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a := app(fx.Invoke(func(a appmodule.App) {
			a.Run(drain.Work, "work", "/w", slog.New(slog.DiscardHandler),
				func(context.Context) error { <-release; return nil })
		}))
		require.NoError(t, a.Start(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), fx.DefaultTimeout)
		defer cancel()
		require.ErrorContains(t, a.Stop(ctx), "work /w: it has not ended within 13.125s of the stop")
		close(release)
	})
}
