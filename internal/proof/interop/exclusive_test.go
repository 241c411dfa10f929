package interop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// shortWait is how long a waiter waits before it gives up.
const shortWait = 200 * time.Millisecond

// TestExclusiveLocksWithPeers lets contenders of two libraries share one lock. Each library is
// first once.
func TestExclusiveLocksWithPeers(t *testing.T) {
	for _, r := range exclusive {
		for _, p := range pairs {
			for _, scenario := range scenarios {
				if !p.supports(r) || scenario.lists && !r.lists {
					continue
				}
				t.Run(r.name+"/"+p.String()+"/"+scenario.name, func(t *testing.T) {
					t.Parallel()
					scenario.run(newTwoContenders(t, r, p[0], p[1]))
				})
			}
		}
	}
}

// TestLinesKeepOneOrderWithPeers lets six contenders of several libraries join one line. They must
// be granted in that order.
func TestLinesKeepOneOrderWithPeers(t *testing.T) {
	for _, r := range exclusive {
		for _, mix := range mixes {
			if !mix.supports(r) {
				continue
			}
			t.Run(r.name+"/"+mix.String(), func(t *testing.T) {
				t.Parallel()
				testGrantOrder(newTestPath(t, r), r, mix)
			})
		}
	}
}

func testGrantOrder(s *testPath, r role, mix mix) {
	const contenders = 6
	holder := mix[0].newContender(s.t, r, s.path)
	s.mustLock(holder)
	var waiters []contender
	var outcomes []<-chan grant
	for i := 1; i < contenders; i++ {
		c := mix[i%len(mix)].newContender(s.t, r, s.path)
		waiters, outcomes = append(waiters, c), append(outcomes, s.startWaiter(c, forever))
		s.awaitContenders(i + 1)
	}
	for i, next := range waiters {
		for _, t := range outcomes[i:] {
			s.requireStillWaiting(t)
		}
		s.release(holder)
		require.True(s.t, s.awaitGrant(outcomes[i]))
		holder = next
	}
	s.release(holder)
	s.awaitNoNodes()
}

// twoContenders has a holder and a waiter of two libraries. A third contender, of the first
// library, may join the line behind them.
type twoContenders struct {
	*testPath
	first, second contender
	third         func() contender
}

func newTwoContenders(t *testing.T, r role, first, second library) twoContenders {
	s := newTestPath(t, r)
	return twoContenders{s, first.newContender(t, r, s.path), second.newContender(t, r, s.path),
		func() contender { return first.newContender(t, r, s.path) }}
}

var scenarios = []struct {
	name  string
	run   func(twoContenders)
	lists bool
}{
	{name: "the second is refused while the first holds", run: twoContenders.trySecondIsRefused},
	{name: "the second is granted when the first releases", run: twoContenders.releaseGrantsTheWaiter},
	{name: "a waiter that gives up leaves nothing", run: twoContenders.abandonedWaitLeavesNoNode},
	{name: "a holder's end lets the next in", run: twoContenders.holderSessionEndGrantsTheWaiter},
	{name: "a waiter whose session ends joins the line again", run: twoContenders.waiterSessionEndIsSkipped},
	{name: "both list the line", run: twoContenders.holderAndWaiterAreListed, lists: true},
}

func (d twoContenders) trySecondIsRefused() {
	d.mustLock(d.first)
	d.mustNotLock(d.second, 0)
	d.mustNotLock(d.second, shortWait)
	d.awaitContenders(1)
	d.release(d.first)
	d.mustLock(d.second)
	d.release(d.second)
	d.awaitNoNodes()
}

func (d twoContenders) releaseGrantsTheWaiter() {
	d.mustLock(d.first)
	second := d.startWaiter(d.second, forever)
	d.awaitContenders(2)
	d.requireStillWaiting(second)
	d.release(d.first)
	require.True(d.t, d.awaitGrant(second))
	d.release(d.second)
	d.awaitNoNodes()
}

func (d twoContenders) abandonedWaitLeavesNoNode() {
	last := d.third()
	d.mustLock(d.first)
	second := d.startWaiter(d.second, shortWait)
	third := d.startWaiter(last, forever)
	require.False(d.t, d.awaitGrant(second), "a waiter was granted while another contender holds")
	d.awaitContenders(2)
	d.requireStillWaiting(third)
	d.release(d.first)
	require.True(d.t, d.awaitGrant(third))
	d.release(last)
	d.awaitNoNodes()
}

func (d twoContenders) holderSessionEndGrantsTheWaiter() {
	d.mustLock(d.first)
	second := d.startWaiter(d.second, forever)
	d.awaitContenders(2)
	d.requireStillWaiting(second)
	d.first.sessionID().kill(d.t)
	require.True(d.t, d.awaitGrant(second))
	d.release(d.second)
	d.awaitNoNodes()
}

func (d twoContenders) waiterSessionEndIsSkipped() {
	d.mustLock(d.first)
	second := d.startWaiter(d.second, forever)
	before := d.awaitContenders(2)
	last := d.third()
	third := d.startWaiter(last, forever)
	d.awaitContenders(3)
	d.second.sessionID().kill(d.t)
	d.eventually("it joins the line again, at the end", func() bool {
		d.requireStillWaiting(second)
		line := d.contenderNodes()
		return len(line) == len(before)+1 && !slices.Contains(line, before[len(before)-1])
	})
	d.release(d.first)
	require.True(d.t, d.awaitGrant(third))
	d.requireStillWaiting(second)
	d.release(last)
	require.True(d.t, d.awaitGrant(second))
	d.release(d.second)
	d.awaitNoNodes()
}

func (d twoContenders) holderAndWaiterAreListed() {
	d.mustLock(d.first)
	second := d.startWaiter(d.second, forever)
	line := d.awaitContenders(2)
	for _, c := range []contender{d.first, d.second} {
		d.eventually(fmt.Sprintf("%T's list as it is", c), func() bool { // its server may lag behind
			listed, err := c.participants(d.ctx)
			require.NoError(d.t, err)
			return slices.Equal(c.listedNames(line), listed)
		})
	}
	d.inspect(paths(line)[:1], paths(line)[1:])
	d.release(d.first)
	require.True(d.t, d.awaitGrant(second))
	d.release(d.second)
}

// inspect requires that Inspect distinguishes holders from waiters of all libraries, and returns
// its report.
func (s *testPath) inspect(holders, waiters []string) locks.Report {
	s.t.Helper()
	s.sync()
	report, err := locks.Inspect(s.ctx, s.client, s.path)
	require.NoError(s.t, err)
	require.Equal(s.t, holders, nodesOf(report.Holders))
	require.Equal(s.t, waiters, nodesOf(report.Waiters))
	require.Empty(s.t, report.Others)
	return report
}

func nodesOf(entries []locks.Entry) (nodes []string) {
	for _, e := range entries {
		nodes = append(nodes, e.Node)
	}
	return nodes
}
