package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

// runOnRealServers runs the scenario with real processes on the real ensemble. SIGSTOP stops ann
// until bob has written; bob gets the lock only when ann's session has ended.
func runOnRealServers(t *testing.T, fenced bool) *recorder {
	t.Helper()
	o := options{servers: ensemble.Shared(t), timeout: 4 * time.Second, unfenced: !fenced}
	s := newRecorder(o)
	var log bytes.Buffer
	s.Log = demo.Log{Out: &log}
	require.NoError(t, runScenario(t.Context(), o, s))
	exampletest.RequireCleanedUp(t, o.servers, log.String())
	return s
}

func TestALateWriteIsRefusedOnRealServers(t *testing.T) {
	t.Parallel()
	s := runOnRealServers(t, true)
	require.Equal(t, []string{"ann", "bob", "ann"}, holderNames(s.grants))
	require.Equal(t, refused, s.late.Kind)
	require.EqualValues(t, 110, s.late.Balance)
	require.Equal(t, s.grants[0].Token, s.late.Token)
	require.EqualValues(t, 115, s.balance)
	require.Equal(t, s.grants[2].Token, s.token, "ann has written again, with her second lease")
	require.Less(t, s.grants[0].Token, s.grants[1].Token)
	require.Less(t, s.grants[1].Token, s.grants[2].Token)
}

func TestLateWriteIsAcceptedWithoutFenceOnRealServers(t *testing.T) {
	t.Parallel()
	s := runOnRealServers(t, false)
	require.Equal(t, []string{"ann", "bob"}, holderNames(s.grants))
	require.Equal(t, written, s.late.Kind)
	require.EqualValues(t, 110, s.balance, "bob's deposit is lost")
	require.Equal(t, s.grants[0].Token, s.token)
	require.Less(t, s.token, s.grants[1].Token)
}

func holderNames(grants []grant) (names []string) {
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
	exampletest.RequireCleanedUp(t, servers, errs)
}
