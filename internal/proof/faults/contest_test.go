package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// placement says to which servers a holder that the fault affects, and a waiter that the fault does
// not affect, connect.
type placement struct {
	name       string
	holder     framework.Config
	option     framework.Option // of the holder's client; may be nil
	link       *ensemble.Proxy  // of the holder, which the fault may cut; may be nil
	waiter     framework.Config
	waiting    *framework.Client // the client of all waiters, instead of one each; may be nil
	mustBeLost bool              // the holder cannot keep its session through the fault
	// the holder's rule does not suffice for the fault, which shows that the fault is effective
	naive bool
}

// contest is one lock with a holder and a waiter.
type contest struct {
	placement
	history     *lockHistory
	connectedAt time.Time // the holder
	held        *grant
	nextGrant   <-chan *grant // receives the waiter's grant
	waiterGrant *grant
}

// startContests starts n contests in each placement, and returns those that are still held, when
// all holders send heartbeats. It staggers the heartbeats over T/4, so that one fault begins at
// different moments between two heartbeats.
func startContests(t *testing.T, n int, placements ...placement) []*contest {
	t.Helper()
	return startStaggeredContests(t, sessionTimeout/4, n, placements...)
}

// startStaggeredContests does what startContests does, with the heartbeats staggered over another
// time.
//
// It leaves out contests whose holder was lost because the machine has stalled: no document
// promises that a hold outlives that, and TestOrdinaryInterruptions and the tests in virtual time
// check which interruptions it outlives. One contest of each placement must remain, and no more:
// the promise under test, that a lease ends before the next grant, is checked in each contest by
// itself, so fewer contests make a check less likely to find a violation, and no check weaker. A
// placement without a contest would not be checked at all. Then all begin again.
func startStaggeredContests(t *testing.T, stagger time.Duration, n int, placements ...placement) []*contest {
	t.Helper()
	for try := 0; ; try++ {
		all := make([]*contest, n*len(placements))
		require.NoError(t, runConcurrently(len(all), func(i int) (err error) {
			wait(t, stagger*time.Duration(i)/time.Duration(len(all)))
			all[i], err = placements[i%len(placements)].start(t, try*len(all)+i)
			return err
		}))
		wait(t, sessionTimeout/2+randomBelow(sessionTimeout/4))
		var held []*contest
		ofPlacement := make([]int, len(placements))
		for i, c := range all {
			if !c.held.hasEnded() {
				held = append(held, c)
				ofPlacement[i%len(placements)]++
			}
		}
		if slices.Min(ofPlacement) > 0 {
			return held
		}
		require.Less(t, try, 4, "in each try every holder of a placement was lost before the fault: %v "+
			"remain, of %d each", ofPlacement, n)
		t.Logf("%v contests of %d each remain before the fault: once more", ofPlacement, n)
		for _, c := range held {
			c.held.release(t.Context())
		}
	}
}

// start starts a contest. If the machine stalls for so long that the holder is lost before the
// waiter is in line, it starts another contest.
func (p placement) start(t *testing.T, i int) (c *contest, err error) {
	for try := range 10 {
		c, err = p.tryStart(t, fmt.Sprintf("/%s/%d-%d", t.Name(), i, try))
		if !errors.Is(err, errNoWait) || !c.held.hasEnded() {
			return c, err
		}
	}
	return c, err
}

func (p placement) tryStart(t *testing.T, path string) (*contest, error) {
	c := &contest{placement: p, history: &lockHistory{t: t, path: path, naive: p.naive}}
	holder, err := connect(t, p.holder, p.option)
	if err != nil {
		return nil, err
	}
	c.connectedAt = time.Now()
	if c.held, err = c.history.lock(p.name, holder); err != nil {
		return nil, err
	}
	waiter := p.waiting
	if waiter == nil {
		if waiter, err = connect(t, p.waiter); err != nil {
			return nil, err
		}
	}
	c.nextGrant, err = c.history.startWaiter("the waiter", waiter)
	return c, err
}

// finishContests waits until the waiters of the holders that must be lost are granted, and gives
// the other holders time to be lost. Then it heals the fault. The remaining holders release, and
// their waiters must be granted.
func finishContests(t *testing.T, contests []*contest, heal func()) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), 2*sessionTimeout)
	defer cancel()
	for _, c := range contests {
		if c.mustBeLost {
			c.awaitWaiter(t)
		}
	}
	for _, c := range contests {
		c.awaitWaiterUntil(limit.Done())
	}
	heal()
	for _, c := range contests {
		c.held.release(t.Context())
	}
	for _, c := range contests {
		c.awaitWaiter(t)
	}
	logTakeoverGaps(t, contests)
}

// awaitWaiter waits for the waiter's grant.
func (c *contest) awaitWaiter(t *testing.T) {
	t.Helper()
	if c.waiterGrant == nil {
		c.waiterGrant = awaitGrant(t, c.nextGrant)
	}
}

// awaitWaiterUntil waits for the waiter's grant until end is closed.
func (c *contest) awaitWaiterUntil(end <-chan struct{}) {
	if c.waiterGrant != nil {
		return
	}
	select {
	case c.waiterGrant = <-c.nextGrant:
	case <-end:
	}
}

// logTakeoverGaps checks the histories and logs the time from each loss to the next grant.
func logTakeoverGaps(t *testing.T, contests []*contest) {
	t.Helper()
	gaps := map[string][]time.Duration{}
	total := map[string]int{}
	for _, c := range contests {
		gaps[c.name] = append(gaps[c.name], c.history.checkGaps()...)
		total[c.name]++
	}
	for name, g := range gaps {
		if len(g) == 0 {
			t.Logf("%s: none of %d lost", name, total[name])
			continue
		}
		t.Logf("%s: %d of %d lost, the next grant came %v to %v later", name, len(g), total[name], slices.Min(g),
			slices.Max(g))
	}
}
