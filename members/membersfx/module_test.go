package membersfx_test

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
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/members/membersfx"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModule(t *testing.T) {
	zk := zktest.Start(t)
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	var g *members.Group
	app := fxtest.New(t, frameworkfx.Module, membersfx.At("/groups/web"), membersfx.AsMember(members.Info{Version: "1.4"}), frameworkfx.WaitForSession,
		fx.Supply(framework.Config{Servers: []string{addr}, Identity: "web-1"}), fx.Populate(&g))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	view, err := g.List(ctx)
	require.NoError(t, err)
	require.Len(t, view.Members, 1)
	require.Equal(t, "web-1", view.Members[0].ID)
	require.Equal(t, "1.4", view.Members[0].Info.Version)
	app.RequireStop()
	require.Empty(t, zk.Children("/groups/web"))
}
