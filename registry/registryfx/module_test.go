package registryfx_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/registry/registryfx"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModule(t *testing.T) {
	zk := zktest.Start(t)
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	var r *registry.Registry
	var p *registry.Pool
	app := fxtest.New(t, frameworkfx.Module, registryfx.At("/services"), registryfx.AsPool("/services", "billing"), frameworkfx.WaitForSession,
		fx.Supply(framework.Config{Servers: []string{addr}}), fx.Populate(&r, &p))
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
