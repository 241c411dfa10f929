package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// line is a lock with a holder and two waiters, the first of which has a link that can be cut.
type line struct {
	record        *record
	watcher       *framework.Client
	holder        *grant
	link          *ensemble.Proxy
	first, second <-chan *grant
}

func newLine(t *testing.T, a *arena, t1 time.Duration) *line {
	t.Helper()
	l := &line{record: &record{t: t, path: "/" + t.Name()}, link: a.proxy(t, 0)}
	steady := a.at(0, 1, 2)
	steady.SessionTimeout = longTimeout // nobody but the cut one is to lose anything
	l.watcher = client(t, steady)
	var err error
	l.holder, err = l.record.lock("holder", client(t, steady))
	require.NoError(t, err)
	cfg := config(l.link.Addr())
	cfg.SessionTimeout = t1
	l.first, err = l.record.queue("first", client(t, cfg))
	require.NoError(t, err)
	l.second, err = l.record.queue("second", client(t, steady))
	require.NoError(t, err)
	return l
}

// nodes are the contenders' nodes in order.
func (l *line) nodes(t *testing.T) []string {
	t.Helper()
	cs, err := locks.NewMutex(l.watcher, l.record.path).Contenders(t.Context())
	require.NoError(t, err)
	var nodes []string
	for _, c := range cs {
		nodes = append(nodes, c.Node)
	}
	return nodes
}

// finish releases one holder after the other and checks the order of grants.
func (l *line) finish(t *testing.T, order ...<-chan *grant) {
	t.Helper()
	l.holder.release(t.Context())
	for _, next := range order {
		await(t, next).release(t.Context())
	}
	l.record.gaps()
}

// testSuspendedWaiter cuts a waiter's link for a moment: it keeps its place.
func testSuspendedWaiter(t *testing.T, a *arena) {
	l := newLine(t, a, longTimeout)
	before := l.nodes(t)
	require.Len(t, before, 3)
	l.link.Cut()
	pass(t, time.Second)
	l.link.Heal()
	require.Equal(t, before, l.nodes(t))
	l.finish(t, l.first, l.second)
}

// testLostWaiter cuts a waiter's link for longer than its session lives: it queues again by itself,
// behind whoever came meanwhile.
func testLostWaiter(t *testing.T, a *arena) {
	l := newLine(t, a, timeout)
	before := l.nodes(t)
	require.Len(t, before, 3)
	l.link.Cut()
	eventually(t, func() error {
		now := l.nodes(t)
		return want("the lost waiter's node gone", len(now) == 2 && now[0] == before[0] && now[1] == before[2], now)
	})
	l.link.Heal()
	eventually(t, func() error {
		now := l.nodes(t)
		return want("the lost waiter back", len(now) == 3 && now[1] == before[2] && now[2] != before[1], now)
	})
	l.finish(t, l.second, l.first)
}
