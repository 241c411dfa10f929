package framework_test

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestOutageIsLoggedOnce cuts the link for a minute: one warning with the cause and the time for
// which holds stand, and one line when it is over.
func TestOutageIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Buffer
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config, framework.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
		require.Equal(t, framework.Connected, m.Status().State)
		require.NotZero(t, m.Status().SessionID)
		require.NoError(t, m.Status().Cause)
		require.Equal(t, session(t, m).LeaseRemaining(), m.Status().LeaseRemaining)
		m.Link.Cut()
		time.Sleep(time.Second)
		require.ErrorContains(t, m.Status().Cause, m.Config().Servers[0]+": connection lost")
		require.Equal(t, session(t, m).LeaseRemaining(), m.Status().LeaseRemaining)
		require.Regexp(t, `level=WARN msg="no server can be used" servers=.*refused.* holds_stand_for=\d+\.\d*s\n`,
			out.String())
		time.Sleep(time.Minute)
		require.Zero(t, m.Status().LeaseRemaining)
		require.ErrorIs(t, m.Status().Cause, framework.ErrSessionLost)
		require.ErrorIs(t, m.Status().Servers[0].Err, syscall.ECONNREFUSED)
		require.NotEqual(t, framework.Connected, m.Status().State)
		m.Link.Heal()
		time.Sleep(time.Minute)
		require.Equal(t, framework.Connected, m.Status().State)
		require.NoError(t, m.Status().Servers[0].Err)
		require.ErrorIs(t, m.Status().Cause, framework.ErrSessionLost, "it stays")
		require.NoError(t, m.Close(t.Context()))
		require.Equal(t, 1, strings.Count(out.String(), "no server can be used"), out.String())
		require.Contains(t, out.String(), "refused")
		require.Equal(t, 1, strings.Count(out.String(), "a server can be used again"), out.String())
	})
}
