package idsfx_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/ids/idsfx"
	"github.com/lockstep-go/lockstep/internal/testkit/moduletest"
)

func TestModuleProvidesAFactory(t *testing.T) {
	var f *ids.Factory
	_, app := moduletest.NewApp(t, framework.Config{}, idsfx.Module, frameworkfx.WaitForSession, fx.Populate(&f))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n, err := f.Sequence("/ids/orders").Next(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	w := f.Worker("/ids/events", 4)
	require.NoError(t, w.Fill(ctx, make([]int64, 3)))
	require.NoError(t, w.Close(ctx))
	name, err := f.Name(ctx, "/names", "host-", nil)
	require.NoError(t, err)
	require.Equal(t, "host-0000000000", name.Name)
	app.RequireStop()
	_, err = f.Sequence("/ids/orders").Next(ctx)
	require.ErrorIs(t, err, framework.ErrClosed)
}
