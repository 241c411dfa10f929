package configfx_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/config/configfx"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/internal/testkit/moduletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type limits struct{ Rate int }

func TestAValueIsKeptCurrentFromStartToStop(t *testing.T) {
	var v *config.Value[limits]
	zk, app := moduletest.NewApp(t, framework.Config{},
		configfx.Value("/limits", codec.JSON[limits](), config.WithDefault(limits{Rate: 1})),
		fx.Populate(&v))
	require.Equal(t, 1, v.Get().Rate)
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, v.Set(ctx, limits{Rate: 2}))
	for now, err := range v.Follow(ctx) {
		require.NoError(t, err)
		if now.Value.Rate == 2 {
			break
		}
	}
	require.Equal(t, 2, v.Get().Rate)
	app.RequireStop()
	require.Empty(t, zk.Sessions())
}

func TestAnApplicationDoesNotBuildWithAWrongPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v *config.Value[string]
		app := fx.New(fx.NopLogger, frameworkfx.Module, configfx.Value("limits", codec.Text()),
			fx.Supply(framework.Config{Servers: []string{"127.0.0.1:1"}}), fx.Populate(&v))
		require.ErrorIs(t, app.Err(), framework.ErrInvalid)
	})
}
