// Package clock has the clocks by which leases are counted.
package clock

import (
	"sync"
	"time"
)

// Clock is a clock by which leases are counted. It does not step.
type Clock interface {
	// Now is the time since a fixed point of the clock's own.
	Now() time.Duration
	// NewAlarm returns an alarm that is not set. When it rings, ring is called from a goroutine of its own.
	NewAlarm(ring func()) Alarm
}

// Alarm rings once each time the clock reaches what it was set to.
type Alarm interface {
	// Set makes the alarm ring at the reading at of its clock, instead of at a former setting.
	Set(at time.Duration)
	// Stop ends the alarm for good. A ring that has begun is not waited for.
	Stop()
}

// Time returns a clock that reads time.Now: the clock of a testing/synctest bubble, and of
// systems without a better one. While the machine is suspended it stands still on most systems, so
// that a lease may outlive its session by that time; only fencing tokens help then.
func Time() Clock { return goClock{time.Now()} }

type goClock struct{ base time.Time }

func (c goClock) Now() time.Duration { return time.Since(c.base) }

func (c goClock) NewAlarm(ring func()) Alarm { return &timeAlarm{clock: c, ring: ring} }

type timeAlarm struct {
	clock goClock
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
