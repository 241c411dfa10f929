package recipe

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// EnsembleClock estimates the time of the ensemble's leader from the times that it has stamped on writes and from the time that has passed here since. The zero
// value has no time yet. It is safe for concurrent use.
//
// Guarantee: right after a write, the estimate is a time that the leader's clock had between the request and the answer.
// Not guaranteed: that it never goes back. It follows a clock that is set back, and another leader's clock.
type EnsembleClock struct {
	mu       sync.Mutex
	ensemble time.Time // what the ensemble's clock showed
	local    time.Time // when it did; its monotonic reading counts
	answered time.Time // when the latest answer came

	behind time.Duration // the most that the estimate is behind the ensemble's clock
}

// Note takes in the time that the leader has stamped on a write which was requested at a local time and is answered now. The stamp lies in between, so the estimate
// moves only as far as that requires: a late answer does not set it back.
func (c *EnsembleClock) Note(stamp, requested time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	latest := stamp.Add(now.Sub(requested))
	if former := c.estimateAt(now).Add(c.behind); !former.Before(stamp) && former.Before(latest) {
		latest = former
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

// Ask writes to dir without changing it, makes it as a container if it is missing, and notes the stamp, which it also returns.
func (c *EnsembleClock) Ask(ctx context.Context, s *framework.Session, dir string) (time.Time, error) {
	for {
		if err := s.MakeDirs(ctx, dir); err != nil {
			return time.Time{}, err
		}
		requested := time.Now()
		st, err := s.Set(ctx, dir, nil, framework.AnyVersion)
		unknown := errors.Is(err, framework.ErrOutcomeUnknown) && ctx.Err() == nil && s.Err() == nil // another write does no harm
		switch {
		case unknown, errors.Is(err, framework.ErrNoNode): // the servers remove an empty container
			continue
		case err != nil:
			return time.Time{}, err
		}
		stamp := st.Mtime.UTC()
		c.Note(stamp, requested)
		return stamp, nil
	}
}

// Known reports whether the clock has an estimate.
func (c *EnsembleClock) Known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.answered.IsZero()
}

// Now is the estimate. It means nothing before the first answer.
func (c *EnsembleClock) Now() time.Time {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimateAt(now)
}

// Latest is the latest time that the ensemble's clock may show now: the answers from which Now is estimated may have been under way for as long as their
// requests were. It means nothing before the first answer.
func (c *EnsembleClock) Latest() time.Time {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimateAt(now).Add(c.behind)
}

// Age is the time since the latest answer, which bounds how far the clocks can have drifted apart. It means nothing before the first.
func (c *EnsembleClock) Age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.answered)
}

// estimateAt is the estimate for a local time. Guarded by mu.
func (c *EnsembleClock) estimateAt(local time.Time) time.Time {
	return c.ensemble.Add(local.Sub(c.local))
}
