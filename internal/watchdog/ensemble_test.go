package watchdog

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// stands tells whether real servers still know a session, by taking it up.
func stands(t *testing.T, a Access, s Session) bool {
	t.Helper()
	conn, err := a.dial(context.Background(), a.Servers[0])
	require.NoError(t, err)
	defer conn.Close()
	known, err := s.takeUp(conn)
	require.NoError(t, err)
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
