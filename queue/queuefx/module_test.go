package queuefx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/queue/queuefx"
	"github.com/lockstep-go/lockstep/zktest"
)

const path = "/queues/q"

func TestModuleClosesItsQueues(t *testing.T) {
	zk := zktest.Start(t)
	var q *queue.Queue[string]
	app := fxtest.New(t, frameworkfx.Module, queuefx.Module, fx.Supply(framework.Config{Servers: zk.Servers()}),
		frameworkfx.AsOption(framework.WithDialer(zk.Link("app").DialContext)),
		fx.Invoke(func(f *queue.Factory) { q = queue.Make(f, path, codec.Text()) }))
	app.RequireStart()
	require.NoError(t, q.Put(context.Background(), "x"))
	d, err := q.Take(context.Background())
	require.NoError(t, err)
	require.NoError(t, d.Ack(context.Background()))
	app.RequireStop()
	require.ErrorIs(t, q.Put(context.Background(), "y"), framework.ErrClosed)
	require.Empty(t, zk.Children(path+"/lock"))
	require.NoError(t, fx.ValidateApp(frameworkfx.Module, queuefx.Module,
		fx.Supply(framework.Config{Servers: zk.Servers()})))
}
