package sim

import (
	"sync"
	"time"

	leaseclock "github.com/lockstep-go/lockstep/internal/clock"
)

// clock is a process's own clock, which its leases use. It runs a little faster or slower than the
// server's. Its alarms do not fire while the process is frozen.
type clock struct {
	base time.Time
	rate float64

	mu      sync.Mutex
	frozen  bool
	pending []func()
}

// maxDrift is the largest drift of a clock. Lockstep tolerates 2 %.
const maxDrift = 0.018

func (c *clock) Now() time.Duration { return time.Duration(float64(time.Since(c.base)) * c.rate) }

func (c *clock) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
}

// thaw fires the alarms that were due while the clock was frozen.
func (c *clock) thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = false
	for _, ring := range c.pending {
		go ring()
	}
	c.pending = nil
}

func (c *clock) ring(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		c.pending = append(c.pending, f)
		return
	}
	go f()
}

// NewAlarm implements the Clock of package internal/clock.
func (c *clock) NewAlarm(ring func()) leaseclock.Alarm { return &alarm{clock: c, ring: ring} }

type alarm struct {
	clock *clock
	ring  func()

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (a *alarm) Set(at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	left := time.Duration(float64(at-a.clock.Now())/a.clock.rate) + 1 // not too early
	a.timer = time.AfterFunc(left, func() { a.clock.ring(a.ring) })
}

func (a *alarm) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
