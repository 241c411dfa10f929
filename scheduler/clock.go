package scheduler

import (
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// MaxAhead is how far this machine's clock and the ensemble's may differ before the ensemble's
// decides: a tick is run at most so long before its time by the ensemble's clock, and at most so
// long and a minute late.
const MaxAhead = 10 * time.Second

const (
	// askTimeAfter is how old the estimate of the ensemble's clock may be that a tick waits for.
	askTimeAfter = 10 * time.Second
	// behindAfter is how long the ensemble's answers must agree that this machine's clock is
	// behind, until they count. So no tick runs early because of a server with a clock that is
	// ahead for a moment.
	behindAfter = time.Minute
)

// tickClock are the two clocks that decide whether a tick is due: this machine's, and the
// ensemble's.
type tickClock struct {
	local    func() time.Time
	ensemble recipe.EnsembleClock

	mu     sync.Mutex
	first  ensembleTimeAnswer
	latest ensembleTimeAnswer
	// when the first of the latest answers came that are all more than MaxAhead ahead of this
	// machine's clock; zero: the latest is not
	behindSince time.Time
}

// ensembleTimeAnswer is a time that the ensemble has given.
type ensembleTimeAnswer struct {
	ensemble time.Time
	local    time.Time // by this machine's clock, when the answer came
	at       time.Time // when the answer came; its monotonic reading counts
}

// recordAnswer records the ensemble's time of a write that was sent at a local time and is answered
// now.
func (c *tickClock) recordAnswer(mtime, requested time.Time) {
	c.ensemble.AddStamp(mtime, requested)
	a := ensembleTimeAnswer{mtime, c.local(), time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first.at.IsZero() {
		c.first = a
	}
	c.latest = a
	switch {
	case a.ensemble.Sub(a.local) <= MaxAhead:
		c.behindSince = time.Time{}
	case c.behindSince.IsZero():
		c.behindSince = a.at
	}
}

// now is the time up to which ticks are due: this machine's, within MaxAhead of the ensemble's. If
// this machine's clock is further behind, the ensemble's counts once it has differed for
// behindAfter.
func (c *tickClock) now() time.Time {
	local, ensemble := c.local(), c.ensemble.Now()
	if most := ensemble.Add(MaxAhead); local.After(most) {
		return most
	}
	if least := ensemble.Add(-MaxAhead); local.Before(least) && c.surelyBehind() {
		return least
	}
	return local
}

func (c *tickClock) surelyBehind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.behindSince.IsZero() && c.latest.at.Sub(c.behindSince) >= behindAfter && c.ensemble.Age() < 2*askTimeAfter
}

// clockDispute is how two clocks differ about a tick.
type clockDispute int

const (
	clocksAgree   clockDispute = iota
	localIsAhead               // it is due by this machine's clock only
	localIsBehind              // it is due by the ensemble's clock only
)

// disputeAbout reports whether the clocks differ about a tick, by more than MaxAhead.
func (c *tickClock) disputeAbout(due time.Time) clockDispute {
	local, ensemble := c.local(), c.ensemble.Now()
	switch {
	case !due.After(local) && due.After(ensemble.Add(MaxAhead)):
		return localIsAhead
	case due.After(local) && !due.After(ensemble.Add(-MaxAhead)):
		return localIsBehind
	}
	return clocksAgree
}

// isStale reports whether the ensemble must be asked for its time again before a tick waits because
// of its clock.
func (c *tickClock) isStale() bool { return c.ensemble.Age() >= askTimeAfter }

// differenceError says how far the clocks differ, and which of them was set since this member took
// part.
func (c *tickClock) differenceError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := c.latest.at.Sub(c.first.at)
	local, ensemble := c.latest.local.Sub(c.first.local)-passed, c.latest.ensemble.Sub(c.first.ensemble)-passed
	who := "which of them is wrong cannot be told, as they have differed since this member took part"
	if c.first.local.Sub(c.first.ensemble).Abs() <= MaxAhead {
		who = "this machine's was set meanwhile"
		if ensemble.Abs() > local.Abs() {
			who = "the ensemble's was set meanwhile, or another server leads it"
		}
	}
	by, how := c.latest.local.Sub(c.latest.ensemble).Round(time.Second), "ahead of"
	if by < 0 {
		by, how = -by, "behind"
	}
	return fmt.Errorf("this machine's clock is %v %s the ensemble's: %s", by, how, who)
}
