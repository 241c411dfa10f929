package queue

import (
	"sync"
	"time"
)

// serverClock estimates the ensemble's clock from the times that the servers gave to writes, and the time that has passed here since.
type serverClock struct {
	mu    sync.Mutex
	said  time.Time
	heard time.Time
}

// noteAnswer corrects the estimate by a write that was asked for at a local time, was given the time t, and is answered now. t lies in between, so the
// estimate moves only as far as that requires: a late reply does not set it back.
func (c *serverClock) noteAnswer(t, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch now := time.Now(); {
	case c.heard.IsZero(), c.at(now).Before(t):
		c.said, c.heard = t, now
	case c.at(asked).After(t):
		c.said, c.heard = t, asked
	}
}

// at is the estimate for a local time; c.mu is held.
func (c *serverClock) at(moment time.Time) time.Time { return c.said.Add(moment.Sub(c.heard)) }

// unset reports whether no write was answered so far.
func (c *serverClock) unset() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard.IsZero()
}

func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(time.Now())
}
