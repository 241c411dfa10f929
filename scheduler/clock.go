package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// MaxAhead is how far a tick may lie ahead of the ensemble's clock and still be run, when the member's
// clock says that it is due.
const MaxAhead = 10 * time.Second

// clocks are the two that must agree that a tick is due: this machine's, and the ensemble's, which is
// estimated from the time that a node's latest write was given and what has passed here since then.
type clocks struct {
	local func() time.Time

	mu    sync.Mutex
	said  time.Time
	heard time.Time // its monotonic reading counts
}

// hear takes in the time of a write that was answered just now. The estimate is behind by the time that
// the answer took, which is the safe side.
func (c *clocks) hear(mtime time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said, c.heard = mtime, time.Now()
}

// ensemble is the estimate of the ensemble's clock.
func (c *clocks) ensemble() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.Add(time.Since(c.heard))
}

// now is the time up to which ticks are due.
func (c *clocks) now() time.Time {
	local, bound := c.local(), c.ensemble().Add(MaxAhead)
	if bound.Before(local) {
		return bound
	}
	return local
}

// held tells whether a time has come by this machine's clock only.
func (c *clocks) held(due time.Time) bool {
	return !due.After(c.local()) && due.After(c.now())
}

// ensembleTime is the ensemble's time, from a write that changes nothing. The servers may remove the directory
// while it is empty.
func (s *Scheduler) ensembleTime(ctx context.Context, session *framework.Session) (time.Time, error) {
	for {
		if err := session.MakeDirs(ctx, s.directory()); err != nil {
			return time.Time{}, err
		}
		st, err := session.Set(ctx, s.directory(), nil, framework.AnyVersion)
		if !errors.Is(err, framework.ErrNoNode) {
			return st.Mtime.UTC(), err
		}
	}
}
