package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestModule(t *testing.T) {
	zk := zktest.Start(t)
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	var f *election.Factory
	app := fxtest.New(t, framework.Module, election.Module, framework.WaitForSession,
		fx.Supply(framework.Config{Servers: []string{addr}}), fx.Populate(&f))
	app.RequireStart()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	term, err := f.Election(path, election.WithID("x")).Campaign(ctx)
	require.NoError(t, err)
	require.Equal(t, "x", term.ID())
	app.RequireStop()
	require.ErrorIs(t, term.Err(), framework.ErrClosed)
	require.Empty(t, zk.Children(path))
}

func TestCampaignsAreTraced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		m := w.Member(t, "a", config, framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
		e := election.New(m.Client, path)
		term, err := e.Campaign(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Campaign(ctx)
		require.Error(t, err)

		var got []sdktrace.ReadOnlySpan
		for _, s := range spans.Ended() {
			if s.Name() == "lockstep.election.campaign" {
				got = append(got, s)
			}
		}
		require.Len(t, got, 2)
		require.Contains(t, got[0].Attributes(), attribute.String("lockstep.outcome", "elected"))
		require.Contains(t, got[0].Attributes(), attribute.Int64("lockstep.token", term.Token()))
		require.Contains(t, got[1].Attributes(), attribute.String("lockstep.outcome", "given up"))
		require.Equal(t, codes.Unset, got[1].Status().Code)
	})
}
