package framework_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAnOutageIsToldOnce cuts the link for a minute: one warning with the cause, and one line when it is over.
func TestAnOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config, framework.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
		require.Equal(t, framework.Connected, m.Status().State)
		require.NotZero(t, m.Status().SessionID)
		m.Link.Cut()
		time.Sleep(time.Minute)
		require.ErrorIs(t, m.Status().Servers[0].Err, zktest.ErrRefused)
		require.NotEqual(t, framework.Connected, m.Status().State)
		m.Link.Heal()
		time.Sleep(time.Minute)
		require.Equal(t, framework.Connected, m.Status().State)
		require.NoError(t, m.Status().Servers[0].Err)
		require.NoError(t, m.Close(t.Context()))
		require.Equal(t, 1, strings.Count(out.String(), "no server can be used"), out.String())
		require.Contains(t, out.String(), "refused")
		require.Equal(t, 1, strings.Count(out.String(), "a server can be used again"), out.String())
	})
}
