package queue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestModuleClosesItsQueues(t *testing.T) {
	zk := zktest.Start(t)
	var q *Queue[string]
	app := fxtest.New(t, framework.Module, Module, fx.Supply(framework.Config{Servers: zk.Servers(), SessionTimeout: timeout}),
		framework.AsOption(framework.WithDialer(zk.Link("app").DialContext)),
		fx.Invoke(func(f *Factory) { q = Make(f, testPath, Text()) }))
	app.RequireStart()
	require.NoError(t, q.Put(context.Background(), "x"))
	d, err := q.Take(context.Background())
	require.NoError(t, err)
	require.NoError(t, d.Ack(context.Background()))
	app.RequireStop()
	require.ErrorIs(t, q.Put(context.Background(), "y"), ErrClosed)
	require.Empty(t, zk.Children(testPath+"/lock"))
	require.NoError(t, fx.ValidateApp(framework.Module, Module, fx.Supply(framework.Config{Servers: zk.Servers()})))
}

func TestAFactoryWithoutFx(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		q := Make(NewFactory(a.client), testPath, Text())
		require.NoError(t, q.Put(t.Context(), "x"))
		require.NoError(t, q.Close(t.Context()))
		require.Equal(t, []string{"x"}, a.drain(1))
	})
}
