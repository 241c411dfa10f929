package watchdog

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// stands reports whether real servers still know a session, by taking it up. A server that hears of its end right
// then cuts the connection instead of answering, and is asked again.
func stands(t *testing.T, a Access, s Session) (known bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := a.dial(context.Background(), a.Servers[0])
		if err != nil {
			return false
		}
		defer conn.Close()
		known, err = s.takeUp(conn)
		return err == nil
	}, 20*time.Second, 2*time.Millisecond)
	return known
}

// TestRealServersCloseNothingElse does on an ensemble what TestNothingElseIsClosed does in memory.
func TestRealServersCloseNothingElse(t *testing.T) {
	a := Access{Servers: ensemble.Shared(t), DialTimeout: 5 * time.Second}
	g := &ground{access: a}
	one, other := g.open(t), g.open(t)
	wrong := one
	wrong.Password = other.Password
	require.NoError(t, wrong.end(a))
	wrong = one
	wrong.Password = make([]byte, wire.PasswordSize)
	require.NoError(t, wrong.end(a))
	wrong = one
	wrong.ID++
	require.NoError(t, wrong.end(a))
	wrong.ID = 0
	require.ErrorIs(t, wrong.end(a), errNobody)
	require.True(t, stands(t, a, one))
	require.True(t, stands(t, a, other))

	require.NoError(t, one.end(a))
	require.False(t, stands(t, a, one))
	require.True(t, stands(t, a, other))
	for i := range a.Servers { // through any server
		s := g.open(t)
		s.Server = a.Servers[i]
		require.NoError(t, s.end(Access{Servers: []string{s.Server}, DialTimeout: 5 * time.Second}))
		require.False(t, stands(t, a, s))
	}
	require.NoError(t, other.end(a))
}
