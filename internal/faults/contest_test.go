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
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// placement says where a holder that the fault affects and a waiter beyond its reach are connected.
type placement struct {
	name       string
	holder     framework.Config
	option     framework.Option // of the holder's client; may be nil
	link       *ensemble.Proxy  // of the holder, which the fault may cut; may be nil
	waiter     framework.Config
	waiting    *framework.Client // the client of all waiters, instead of one each; may be nil
	mustBeLost bool              // the holder cannot keep its session through the fault
	naive      bool              // the holder's rule does not suffice for the fault, which shows that the fault is effective
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

// startContests starts n contests in each placement. It staggers the holders' heartbeats over T/4, so that one fault meets them at
// different moments, and returns when all heartbeats run.
func startContests(t *testing.T, n int, placements ...placement) []*contest {
	t.Helper()
	return startContestsOver(t, sessionTimeout/4, n, placements...)
}

// startContestsOver is startContests with the holders' heartbeats staggered over another time.
func startContestsOver(t *testing.T, stagger time.Duration, n int, placements ...placement) []*contest {
	t.Helper()
	all := make([]*contest, n*len(placements))
	require.NoError(t, runConcurrently(len(all), func(i int) (err error) {
		wait(t, stagger*time.Duration(i)/time.Duration(len(all)))
		all[i], err = placements[i%len(placements)].start(t, i)
		return err
	}))
	wait(t, sessionTimeout/2+randomBelow(sessionTimeout/4))
	return all
}

// start starts a contest. If the machine stalls for so long that the holder is lost before the waiter is in line, it starts another one.
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

// contestsStillHeld drops contests whose holder was already lost because this machine stalled. At least one must be left.
func contestsStillHeld(t *testing.T, contests []*contest) []*contest {
	t.Helper()
	contests = slices.DeleteFunc(contests, func(c *contest) bool { return c.held.hasEnded() })
	require.NotEmpty(t, contests, "every holder was lost before the fault: it proves nothing")
	return contests
}

// finishContests waits for the waiters of the holders that must be lost, and gives the other holders time to be lost. Then it heals
// the fault; remaining holders release, and their waiters must be granted.
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
		t.Logf("%s: %d of %d lost, the next grant came %v to %v later", name, len(g), total[name], slices.Min(g), slices.Max(g))
	}
}
