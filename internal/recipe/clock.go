package recipe

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// EnsembleClock estimates the time on the clock of the ensemble's leader. It has a time that the
// leader has stamped on a write, and adds the time that has passed in this process since then. The
// zero value has no estimate. It is safe for concurrent use.
//
// Guarantee: right after a write, the estimate is a time that the leader's clock had between the
// request and the answer.
//
// Not guaranteed: that the estimate always rises. It follows the leader's clock when that is set
// back, and the clock of another leader.
type EnsembleClock struct {
	mu       sync.Mutex
	ensemble time.Time // a time on the ensemble's clock
	local    time.Time // the local time at that moment, with a monotonic reading
	answered time.Time // when the latest answer arrived

	behind time.Duration // an upper bound of how far the estimate is behind the ensemble's clock
}

// AddStamp takes the time that the leader has stamped on a write. The write was requested at a
// local time, and its answer has just arrived. The leader has stamped it in between. AddStamp moves
// the estimate no further than that requires, so a late answer does not set it back.
func (c *EnsembleClock) AddStamp(stamp, requested time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	latest := stamp.Add(now.Sub(requested))
	if bound := c.estimateAt(now).Add(c.behind); !bound.Before(stamp) && bound.Before(latest) {
		latest = bound // the earlier answers bound the leader's time more closely
	}
	switch {
	case c.answered.IsZero(), c.estimateAt(now).Before(stamp):
		c.ensemble, c.local = stamp, now
	case c.estimateAt(requested).After(stamp):
		c.ensemble, c.local = stamp, requested
	}
	c.behind = latest.Sub(c.estimateAt(now))
	c.answered = now
}

// ReadTime writes to dir, which it creates as a container if it is missing. It adds the stamp of
// the write to the estimate, and returns it. The write removes dir's data and raises its version.
// ReadTime repeats a write whose outcome is unknown. Its error is that of ctx, of the session's
// end, or a refusal by the servers.
func (c *EnsembleClock) ReadTime(ctx context.Context, s *framework.Session, dir string) (time.Time, error) {
	for {
		if err := s.MakeDirs(ctx, dir); err != nil {
			return time.Time{}, err
		}
		requested := time.Now()
		stat, err := s.Set(ctx, dir, nil, framework.AnyVersion)
		// a second write does no harm
		unknown := errors.Is(err, framework.ErrOutcomeUnknown) && ctx.Err() == nil && s.Err() == nil
		switch {
		case unknown, errors.Is(err, framework.ErrNoNode): // the servers remove empty containers
			continue
		case err != nil:
			return time.Time{}, err
		}
		stamp := stat.Mtime.UTC()
		c.AddStamp(stamp, requested)
		return stamp, nil
	}
}

// Known reports whether the clock has an estimate.
func (c *EnsembleClock) Known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.answered.IsZero()
}

// Now is the estimate. It is meaningless while Known is false.
func (c *EnsembleClock) Now() time.Time {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimateAt(now)
}

// Latest is the latest time that the ensemble's clock may show now. It is later than Now, because
// the leader may have stamped a write as soon as it was requested. It is meaningless while Known is
// false.
func (c *EnsembleClock) Latest() time.Time {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimateAt(now).Add(c.behind)
}

// Age is the time since the latest answer. It bounds how far the clocks can have drifted apart
// since. It is meaningless while Known is false.
func (c *EnsembleClock) Age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.answered)
}

// estimateAt is the estimate for a local time. The caller holds mu.
func (c *EnsembleClock) estimateAt(local time.Time) time.Time {
	return c.ensemble.Add(local.Sub(c.local))
}
