// Package moduletest creates applications on an in-memory server, for the tests of the fx modules.
package moduletest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/zktest"
)

// NewApp returns a server and an application with a client of that server and with opts. The
// application is not started. NewApp sets the servers of cfg.
func NewApp(t testing.TB, cfg framework.Config, opts ...fx.Option) (*zktest.Server, *fxtest.App) {
	zk := zktest.Start(t)
	address, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	cfg.Servers = []string{address}
	return zk, fxtest.New(t, frameworkfx.Module, fx.Supply(cfg), fx.Options(opts...))
}
