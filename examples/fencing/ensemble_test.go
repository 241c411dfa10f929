package main

import (
	"database/sql"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/internal/testproc"
)

// onRealServers plays with real processes on the real ensemble: ann is stopped by SIGSTOP until bob, whom
// only the end of her session lets in, has written. It returns the row that is left, as the database has it.
func onRealServers(t *testing.T, fenced bool) (s *story, balance, token int64) {
	t.Helper()
	servers := ensemble.Shared(t)
	_, file := newLedger(t, fenced)
	env := demo.Environment(framework.Config{Servers: servers, Root: demo.NewRoot(), SessionTimeout: 4 * time.Second})
	c := newCast(append(env, "GORACE=atexit_sleep_ms=0"))
	defer c.stop()
	s = newStory(options{servers: servers, unfenced: !fenced})
	s.out = io.Discard
	require.NoError(t, s.act(t.Context(), c, part{Database: file, Fenced: fenced}))
	requireGone(t, servers, env)

	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.QueryRow(`SELECT balance, token FROM accounts`).Scan(&balance, &token))
	return s, balance, token
}

// rootOf is the play's root.
func rootOf(t *testing.T, env []string) string {
	t.Helper()
	i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, framework.EnvRoot+"=/") })
	require.GreaterOrEqual(t, i, 0)
	return strings.TrimPrefix(env[i], framework.EnvRoot+"=")
}

// requireGone waits until the servers have removed everything below the play's root.
func requireGone(t *testing.T, servers, env []string) {
	t.Helper()
	root := rootOf(t, env)
	client, err := framework.Connect(t.Context(), framework.Config{Servers: servers})
	require.NoError(t, err)
	defer client.Close(t.Context())
	require.Eventually(t, func() bool {
		_, err := client.Exists(t.Context(), root)
		return errors.Is(err, framework.ErrNoNode)
	}, time.Minute, 50*time.Millisecond, "%s is left behind", root)
}

func TestALateWriteIsRefusedOnRealServers(t *testing.T) {
	t.Parallel()
	s, balance, token := onRealServers(t, true)
	require.Equal(t, []string{"ann", "bob", "ann"}, holders(s.grants))
	require.Equal(t, refused, s.late.Kind)
	require.EqualValues(t, 110, s.late.Balance)
	require.Equal(t, s.grants[0].Token, s.late.Token)
	require.EqualValues(t, 115, balance)
	require.Equal(t, s.grants[2].Token, token, "ann has written again, with her second lease")
	require.Less(t, s.grants[0].Token, s.grants[1].Token)
	require.Less(t, s.grants[1].Token, s.grants[2].Token)
}

func TestWithoutTheFenceALateWriteIsAcceptedOnRealServers(t *testing.T) {
	t.Parallel()
	s, balance, token := onRealServers(t, false)
	require.Equal(t, []string{"ann", "bob"}, holders(s.grants))
	require.Equal(t, written, s.late.Kind)
	require.EqualValues(t, 110, balance, "bob's deposit is lost")
	require.Equal(t, s.grants[0].Token, token)
	require.Less(t, token, s.grants[1].Token)
}

func holders(grants []grant) (names []string) {
	for _, g := range grants {
		names = append(names, g.Holder)
	}
	return names
}

func TestTheProgramOnRealServers(t *testing.T) {
	t.Parallel()
	servers := ensemble.Shared(t)
	out, errs, code := testproc.Run(t, "--zk", strings.Join(servers, ","), "--json")
	require.Equal(t, 0, code, errs)
	require.EqualValues(t, 115, read(t, out).Balance)
	require.Contains(t, errs, servers[0])
}
