package interop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// soon is how long waiters wait that are to give up.
const soon = 200 * time.Millisecond

// TestExclusive lets two libraries have one lock, either first.
func TestExclusive(t *testing.T) {
	for _, r := range exclusive {
		for _, p := range pairs {
			for _, duel := range duels {
				if !p.plays(r) || duel.lists && !r.lists {
					continue
				}
				t.Run(r.name+"/"+p.String()+"/"+duel.name, func(t *testing.T) {
					t.Parallel()
					duel.run(newDuel(t, r, p[0], p[1]))
				})
			}
		}
	}
}

// TestOrder lets six contenders of several libraries queue one after the other: they are granted one after
// the other, in that order.
func TestOrder(t *testing.T) {
	for _, r := range exclusive {
		for _, mix := range mixes {
			if !mix.plays(r) {
				continue
			}
			t.Run(r.name+"/"+mix.String(), func(t *testing.T) {
				t.Parallel()
				testOrder(newScene(t, r), r, mix)
			})
		}
	}
}

func testOrder(s *scene, r role, mix mix) {
	const contenders = 6
	holder := mix[0].enter(s.t, r, s.path)
	s.hold(holder)
	var waiters []contender
	var told []<-chan grant
	for i := 1; i < contenders; i++ {
		c := mix[i%len(mix)].enter(s.t, r, s.path)
		waiters, told = append(waiters, c), append(told, s.queue(c, forever))
		s.stand(i + 1)
	}
	for i, next := range waiters {
		for _, t := range told[i:] {
			s.waits(t)
		}
		s.release(holder)
		require.True(s.t, s.told(told[i]))
		holder = next
	}
	s.release(holder)
	s.empty()
}

// duel is a scene with contenders of two libraries: the holder and a waiter, and another of the
// first's behind these.
type duel struct {
	*scene
	first, second contender
	third         func() contender
}

func newDuel(t *testing.T, r role, first, second team) duel {
	s := newScene(t, r)
	return duel{s, first.enter(t, r, s.path), second.enter(t, r, s.path),
		func() contender { return first.enter(t, r, s.path) }}
}

var duels = []struct {
	name  string
	run   func(duel)
	lists bool
}{
	{name: "the second is refused while the first holds", run: duel.refusesTheSecond},
	{name: "the second is granted when the first releases", run: duel.handsOver},
	{name: "a waiter that gives up leaves nothing", run: duel.letsAWaiterGo},
	{name: "a holder's end lets the next in", run: duel.survivesItsHolder},
	{name: "a waiter whose session ends queues again", run: duel.survivesAWaiter},
	{name: "both list the line", run: duel.isListed, lists: true},
}

func (d duel) refusesTheSecond() {
	d.hold(d.first)
	d.refused(d.second, 0)
	d.refused(d.second, soon)
	d.stand(1)
	d.release(d.first)
	d.hold(d.second)
	d.release(d.second)
	d.empty()
}

func (d duel) handsOver() {
	d.hold(d.first)
	second := d.queue(d.second, forever)
	d.stand(2)
	d.waits(second)
	d.release(d.first)
	require.True(d.t, d.told(second))
	d.release(d.second)
	d.empty()
}

func (d duel) letsAWaiterGo() {
	last := d.third()
	d.hold(d.first)
	second := d.queue(d.second, soon)
	third := d.queue(last, forever)
	require.False(d.t, d.told(second), "granted beside a holder")
	d.stand(2)
	d.waits(third)
	d.release(d.first)
	require.True(d.t, d.told(third))
	d.release(last)
	d.empty()
}

func (d duel) survivesItsHolder() {
	d.hold(d.first)
	second := d.queue(d.second, forever)
	d.stand(2)
	d.waits(second)
	d.first.born().kill(d.t)
	require.True(d.t, d.told(second))
	d.release(d.second)
	d.empty()
}

func (d duel) survivesAWaiter() {
	d.hold(d.first)
	second := d.queue(d.second, forever)
	before := d.stand(2)
	last := d.third()
	third := d.queue(last, forever)
	d.stand(3)
	d.second.born().kill(d.t)
	d.until("it queues again, at the end", func() bool {
		d.waits(second)
		line := d.look()
		return len(line) == len(before)+1 && !slices.Contains(line, before[len(before)-1])
	})
	d.release(d.first)
	require.True(d.t, d.told(third))
	d.waits(second)
	d.release(last)
	require.True(d.t, d.told(second))
	d.release(d.second)
	d.empty()
}

func (d duel) isListed() {
	d.hold(d.first)
	second := d.queue(d.second, forever)
	line := d.stand(2)
	for _, c := range []contender{d.first, d.second} {
		d.until(fmt.Sprintf("%T's list as it is", c), func() bool { // its server may lag behind
			listed, err := c.participants(d.ctx)
			require.NoError(d.t, err)
			return slices.Equal(c.tells(line), listed)
		})
	}
	d.inspected(paths(line)[:1], paths(line)[1:])
	d.release(d.first)
	require.True(d.t, d.told(second))
	d.release(d.second)
}

// inspected makes sure that Inspect tells holders from waiters, whoever they are, and returns its report.
func (s *scene) inspected(holders, waiters []string) *locks.Report {
	s.t.Helper()
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
