package watchdog

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// resumeSession reports whether real servers still know a session. It resumes the session. If the
// session ends at that moment, a server closes the connection instead of answering; then
// resumeSession asks again.
func resumeSession(t *testing.T, a Access, s Session) (known bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := a.dialServer(context.Background(), a.Servers[0])
		if err != nil {
			return false
		}
		defer conn.Close()
		known, err = s.resume(conn)
		return err == nil
	}, time.Minute, 2*time.Millisecond)
	return known
}

// TestRealServersCloseNoOtherSession is TestOtherSessionsAreNotClosed on a real ensemble.
func TestRealServersCloseNoOtherSession(t *testing.T) {
	a := Access{Servers: ensemble.Shared(t), DialTimeout: 5 * time.Second}
	g := &testServer{access: a}
	one, other := g.openSession(t), g.openSession(t)
	wrong := one
	wrong.Password = other.Password
	require.NoError(t, wrong.closeOnServers(a))
	wrong = one
	wrong.Password = make([]byte, wire.PasswordSize)
	require.NoError(t, wrong.closeOnServers(a))
	wrong = one
	wrong.ID++
	require.NoError(t, wrong.closeOnServers(a))
	wrong.ID = 0
	require.ErrorIs(t, wrong.closeOnServers(a), errIncompleteSession)
	require.True(t, resumeSession(t, a, one))
	require.True(t, resumeSession(t, a, other))

	require.NoError(t, one.closeOnServers(a))
	require.False(t, resumeSession(t, a, one))
	require.True(t, resumeSession(t, a, other))
	for i := range a.Servers { // through any server
		s := g.openSession(t)
		s.Server = a.Servers[i]
		require.NoError(t, s.closeOnServers(Access{Servers: []string{s.Server}, DialTimeout: 5 * time.Second}))
		require.False(t, resumeSession(t, a, s))
	}
	require.NoError(t, other.closeOnServers(a))
}
