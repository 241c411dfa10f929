package registryfx_test

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
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/registry/registryfx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pools are those of two services.
type pools struct {
	fx.In

	Billing *registry.Pool `name:"billing"`
	Mail    *registry.Pool `name:"mail"`
}

func TestModuleRegistersAndProvidesPools(t *testing.T) {
	var p pools
	zk, app := moduletest.NewApp(t, framework.Config{}, registryfx.At("/services"),
		registryfx.Pool("/services", "billing"), registryfx.Pool("/services", "mail"),
		registryfx.AsInstance(registryfx.Instance{
			Instance: registry.Instance{Service: "billing", ID: "1", Address: "a", Port: 1},
			Options:  []registry.RegisterOption{registry.WithLinger(time.Millisecond)},
		}),
		fx.Invoke(func(given pools) { p = given }))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for now, err := range p.Billing.Follow(ctx) {
		require.NoError(t, err)
		if len(now) == 1 {
			break
		}
	}
	one, err := p.Billing.Pick(ctx)
	require.NoError(t, err)
	one.Done(nil)
	_, err = p.Mail.Pick(ctx)
	require.ErrorIs(t, err, registry.ErrNoInstance)
	app.RequireStop()
	require.Empty(t, zk.Children("/services/billing"))
	_, err = p.Billing.Pick(ctx)
	require.ErrorIs(t, err, framework.ErrClosed)
}

func TestModuleRefusesBadArguments(t *testing.T) {
	base := fx.Options(fx.NopLogger, frameworkfx.Module, fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}))
	require.ErrorIs(t, fx.New(base, registryfx.At("x")).Err(), framework.ErrInvalid)
	require.ErrorContains(t, fx.New(base, registryfx.At("/services"), registryfx.AsInstance("one")).Err(),
		"registryfx.AsInstance: want registryfx.Instance")
	take := fx.Invoke(fx.Annotate(func(*registry.Pool) {}, fx.ParamTags(`name:"a b"`)))
	require.ErrorIs(t, fx.New(base, registryfx.Pool("/services", "a b", registry.WithRefresh(-1)), take).Err(),
		framework.ErrInvalid)
}

func TestModuleShutsTheApplicationDownWhenAnInstanceCannotBeRegistered(t *testing.T) {
	_, app := moduletest.NewApp(t, framework.Config{}, registryfx.At("/services"),
		registryfx.AsInstance(func() registryfx.Instance {
			return registryfx.Instance{Instance: registry.Instance{Service: "billing"}}
		}))
	app.RequireStart()
	require.Equal(t, 1, (<-app.Wait()).ExitCode)
	app.RequireStop()
}
