// Package clock has the clocks that measure leases.
package clock

import (
	"sync"
	"time"
)

// Clock is a clock that measures leases. Unlike a wall clock it is never set.
type Clock interface {
	// Now is the time since a moment that each clock chooses.
	Now() time.Duration
	// NewAlarm returns an alarm that is not set. When it rings, it calls ring in a goroutine of its
	// own.
	NewAlarm(ring func()) Alarm
}

// Alarm rings once after each call of Set.
type Alarm interface {
	// Set makes the alarm ring when its clock reads at, and cancels a former Set that has not rung.
	Set(at time.Duration)
	// Stop ends the alarm for good. It does not wait for a call of ring that has begun.
	Stop()
}

// ClientOption returns a framework.Option that makes a client count its leases by a clock. Package
// framework sets it; internal/testkit/testclock calls it.
var ClientOption func(Clock) any

// Time returns a clock that reads time.Now. It is the clock of a testing/synctest bubble, and of
// systems without a better one. On most systems it stands still while the machine is suspended, so
// a lease may outlive its session by that time. Then only fencing tokens help.
func Time() Clock { return goClock{time.Now()} }

type goClock struct{ base time.Time }

func (c goClock) Now() time.Duration { return time.Since(c.base) }

func (c goClock) NewAlarm(ring func()) Alarm { return &timeAlarm{clock: c, ring: ring} }

type timeAlarm struct {
	clock Clock
	ring  func()

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (a *timeAlarm) Set(at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	a.timer = time.AfterFunc(at-a.clock.Now(), a.ring)
}

func (a *timeAlarm) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
