package clock

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// System returns the clock that leases are counted by unless another is given. On Linux it is
// CLOCK_BOOTTIME, which goes on while the machine is suspended, and its alarms ring at once on resume.
func System() Clock { return systemClock }

var systemClock = newBootClock(goClocks(time.Now()), bootTime)

// bootClock reads CLOCK_BOOTTIME by a system call only when the machine may have been suspended since the
// last one: then the wall clock has moved on and the monotonic one has not. Those two are read without a
// system call, which makes asking whether a lease stands some five times cheaper.
type bootClock struct {
	clocks func() (monotonic, wall time.Duration)
	boot   func() time.Duration
	last   atomic.Pointer[bootSample]
}

// bootSample is one reading of CLOCK_BOOTTIME.
type bootSample struct {
	ahead time.Duration // of the wall clock before the monotonic one
	since time.Duration // what to add to the monotonic one
}

// bootStep is the longest suspension that may go unnoticed, and the greatest error of a sample; the
// lease's margin covers both many times.
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
		return monotonic + s.since
	}
	return c.readBootClock()
}

// readBootClock reads the boot clock, and keeps the reading if the others were read at the same moment.
func (c *bootClock) readBootClock() time.Duration {
	before, wall := c.clocks()
	now := c.boot()
	after, wallAfter := c.clocks()
	if ahead := wallAfter - after; after-before < bootStep && (ahead-(wall-before)).Abs() < bootStep {
		c.last.Store(&bootSample{ahead: ahead, since: now - before})
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

// NewAlarm prefers a timerfd, which counts suspended time; where none is to be had, a Go timer
// rings late after a suspension, and the lease is still checked at every use.
func (c *bootClock) NewAlarm(ring func()) Alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return &timeAlarm{clock: goClock{time.Now().Add(-c.Now())}, ring: ring}
	}
	a := &bootAlarm{fd: fd, file: os.NewFile(uintptr(fd), "lease-alarm")}
	go a.run(ring)
	return a
}

type bootAlarm struct {
	file *os.File

	mu      sync.Mutex
	fd      int
	stopped bool
}

func (a *bootAlarm) run(ring func()) {
	var expirations [8]byte
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return
		}
		ring()
	}
}

func (a *bootAlarm) Set(at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	// A zero value would disarm the timer instead of ringing at once.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, at.Nanoseconds()))}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		panic("clock: timerfd_settime: " + err.Error()) // only a programming error makes it fail
	}
}

func (a *bootAlarm) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		a.stopped = true
		a.file.Close()
	}
}
