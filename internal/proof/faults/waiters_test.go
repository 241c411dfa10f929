package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// waitingLine is a lock with a holder and two waiters. The first waiter's link can be cut.
type waitingLine struct {
	history       *lockHistory
	observer      *framework.Client
	holder        *grant
	link          *ensemble.Proxy
	first, second <-chan *grant
}

func newWaitingLine(t *testing.T, env *testEnv, firstTimeout time.Duration) *waitingLine {
	t.Helper()
	line := &waitingLine{history: &lockHistory{t: t, path: "/" + t.Name()}, link: env.newProxy(t, 0)}
	steady := env.clientConfig(0, 1, 2)
	steady.SessionTimeout = maxSessionTimeout // only the first waiter may lose its session
	line.observer = mustConnect(t, steady)
	var err error
	line.holder, err = line.history.lock("holder", mustConnect(t, steady))
	require.NoError(t, err)
	cfg := config(line.link.Addr())
	cfg.SessionTimeout = firstTimeout
	line.first, err = line.history.startWaiter("first", mustConnect(t, cfg))
	require.NoError(t, err)
	line.second, err = line.history.startWaiter("second", mustConnect(t, steady))
	require.NoError(t, err)
	return line
}

// nodes returns the contenders' nodes in order. It reads after a sync, because the server of its
// client may lag behind the others.
func (line *waitingLine) nodes(t *testing.T) []string {
	t.Helper()
	syncWithOthers(t, line.observer)
	r, err := locks.Inspect(t.Context(), line.observer, line.history.path)
	require.NoError(t, err)
	var nodes []string
	for _, e := range append(r.Holders, r.Waiters...) {
		nodes = append(nodes, e.Node)
	}
	return nodes
}

// releaseInOrder releases one holder after the other and checks the order of grants.
func (line *waitingLine) releaseInOrder(t *testing.T, order ...<-chan *grant) {
	t.Helper()
	line.holder.release(t.Context())
	for _, next := range order {
		awaitGrant(t, next).release(t.Context())
	}
	line.history.checkGaps()
}

// testSuspendedWaiter cuts a waiter's link for less than T. The waiter must keep its place in line.
func testSuspendedWaiter(t *testing.T, env *testEnv) {
	line := newWaitingLine(t, env, maxSessionTimeout)
	before := line.nodes(t)
	require.Len(t, before, 3)
	line.link.Cut()
	wait(t, time.Second)
	line.link.Heal()
	require.Equal(t, before, line.nodes(t))
	line.releaseInOrder(t, line.first, line.second)
}

// testLostWaiter cuts a waiter's link for longer than T. The waiter must join the line again,
// behind later contenders.
func testLostWaiter(t *testing.T, env *testEnv) {
	line := newWaitingLine(t, env, sessionTimeout)
	before := line.nodes(t)
	require.Len(t, before, 3)
	line.link.Cut()
	eventually(t, func() error {
		now := line.nodes(t)
		return mismatch("no node of the lost waiter", len(now) == 2 && now[0] == before[0] && now[1] == before[2], now)
	})
	line.link.Heal()
	eventually(t, func() error {
		now := line.nodes(t)
		return mismatch("the lost waiter at the end of the line", len(now) == 3 && now[1] == before[2] &&
			now[2] != before[1], now)
	})
	line.releaseInOrder(t, line.second, line.first)
}
