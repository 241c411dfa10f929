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

func TestModuleProvidesRegistryAndPool(t *testing.T) {
	var r *registry.Registry
	var p *registry.Pool
	_, app := moduletest.NewApp(t, framework.Config{}, registryfx.At("/services"),
		registryfx.AsPool("/services", "billing"), frameworkfx.WaitForSession, fx.Populate(&r, &p))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := r.Register(ctx, registry.Instance{Service: "billing", Address: "a", Port: 1})
	require.NoError(t, err)
	one, err := p.Pick(ctx)
	require.NoError(t, err)
	one.Done(nil)
	require.NoError(t, g.Close(ctx))
	app.RequireStop()
	_, err = p.Pick(ctx)
	require.ErrorIs(t, err, registry.ErrClosed)
}
