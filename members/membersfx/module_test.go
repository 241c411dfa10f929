package membersfx_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/internal/testkit/moduletest"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/members/membersfx"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAsMemberJoinsAndLeaves(t *testing.T) {
	var g *members.Group
	zk, app := moduletest.NewApp(t, framework.Config{Identity: "web-1"}, membersfx.At("/groups/web"),
		membersfx.AsMember(membersfx.Member{Info: members.Info{Version: "1.4"}}), frameworkfx.WaitForSession,
		fx.Populate(&g))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	view, err := g.Inspect(ctx)
	require.NoError(t, err)
	require.Len(t, view.Members, 1)
	require.Equal(t, "web-1", view.Members[0].ID)
	require.Equal(t, "1.4", view.Members[0].Info.Version)
	app.RequireStop()
	require.Empty(t, zk.Children("/groups/web"))
}

// TestADrainLeavesTimeToStop: the drain function does not end, and the client is closed before the
// application's time to stop is over.
func TestADrainLeavesTimeToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{})
		drain := members.WithDrain(func(ctx context.Context, _ members.Cordon) error {
			close(began)
			<-ctx.Done()
			return ctx.Err()
		})
		zk := zktest.Start(t)
		var client *framework.Client
		app := fxtest.New(t, frameworkfx.Module,
			fx.Supply(framework.Config{Servers: zk.Servers(), Identity: "web-1"}),
			frameworkfx.AsOption(framework.WithDialer(zk.Link("web-1").DialContext)),
			frameworkfx.AsOption(framework.WithTimeClock()), membersfx.At("/groups/web"),
			membersfx.AsMember(func() membersfx.Member {
				return membersfx.Member{Options: []members.JoinOption{drain}}
			}), frameworkfx.WaitForSession, fx.Populate(&client))
		app.RequireStart()
		operator := zk.Member(t, "operator", framework.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		drained := make(chan error, 1)
		go func() { drained <- members.New(operator.Client, "/groups/web").Drain(ctx, "web-1") }()
		<-began
		stop, cancelStop := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancelStop()
		require.NoError(t, app.Stop(stop))
		_, err := client.Session(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		cancel()
		<-drained
	})
}

func TestModuleRefusesBadArguments(t *testing.T) {
	base := fx.Options(fx.NopLogger, frameworkfx.Module, fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}))
	require.ErrorIs(t, fx.New(base, membersfx.At("x")).Err(), framework.ErrInvalid)
	require.ErrorContains(t, fx.New(base, membersfx.At("/groups/web"),
		membersfx.AsMember([]membersfx.Member{{}, {}})).Err(), "the application has two members")
}
