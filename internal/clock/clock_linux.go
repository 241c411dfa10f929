package clock

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// System returns the clock that measures leases by default. On Linux it is CLOCK_BOOTTIME, which
// also counts while the machine is suspended. Its alarms ring as soon as the machine resumes.
func System() Clock { return systemClock }

var systemClock = newBootClock(goClocks(time.Now()), bootTime)

// bootClock reads CLOCK_BOOTTIME. The system call for that is slow, so it keeps the last reading,
// and reads again only when the machine may have been suspended since: then the wall clock has
// moved and the monotonic clock has not. Reading those two needs no system call, so most readings
// take about a fifth of the time.
type bootClock struct {
	clocks func() (monotonic, wall time.Duration)
	boot   func() time.Duration
	last   atomic.Pointer[bootSample]
	alarms bootAlarms
}

// bootSample is one reading of CLOCK_BOOTTIME.
type bootSample struct {
	ahead  time.Duration // the wall clock minus the monotonic clock
	offset time.Duration // CLOCK_BOOTTIME minus the monotonic clock
}

// bootStep is the longest suspension that may go unnoticed, and the greatest error of a sample. The
// lease's margin is many times larger than both.
const bootStep = time.Millisecond

func newBootClock(clocks func() (monotonic, wall time.Duration), boot func() time.Duration) *bootClock {
	return &bootClock{clocks: clocks, boot: boot}
}

// goClocks reads both of Go's clocks at once.
func goClocks(base time.Time) func() (monotonic, wall time.Duration) {
	return func() (time.Duration, time.Duration) {
		t := time.Now()
		return t.Sub(base), time.Duration(t.UnixNano())
	}
}

func (c *bootClock) Now() time.Duration {
	monotonic, wall := c.clocks()
	if s := c.last.Load(); s != nil && (wall-monotonic-s.ahead).Abs() < bootStep {
		return monotonic + s.offset
	}
	return c.readBootClock()
}

// readBootClock reads CLOCK_BOOTTIME. It keeps the reading if no time has passed between the
// readings of the three clocks.
func (c *bootClock) readBootClock() time.Duration {
	before, wall := c.clocks()
	now := c.boot()
	after, wallAfter := c.clocks()
	if ahead := wallAfter - after; after-before < bootStep && (ahead-(wall-before)).Abs() < bootStep {
		c.last.Store(&bootSample{ahead: ahead, offset: now - before})
	}
	return now
}

func bootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("clock: CLOCK_BOOTTIME cannot be read: " + err.Error()) // every Linux that Go runs on has it
	}
	return time.Duration(t.Nano())
}

// NewAlarm uses a timerfd, which counts the time for which the machine is suspended. If it gets
// none, it uses a Go timer, which rings late by the time for which the machine is suspended after
// it was set. The lease is checked at every use all the same.
func (c *bootClock) NewAlarm(ring func()) Alarm {
	a, err := c.alarms.add(ring)
	if err != nil {
		return &timeAlarm{clock: c, ring: ring}
	}
	return a
}
