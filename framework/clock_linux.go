package framework

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// SystemClock returns the clock that leases are counted by unless another is given. On Linux it is
// CLOCK_BOOTTIME, which goes on while the machine is suspended, and its alarms ring at once on resume.
func SystemClock() Clock { return bootClock{} }

type bootClock struct{}

func (bootClock) Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("framework: CLOCK_BOOTTIME cannot be read: " + err.Error()) // every Linux that Go runs on has it
	}
	return time.Duration(t.Nano())
}

// NewAlarm prefers a timerfd, which counts suspended time; where none is to be had, a Go timer
// rings late after a suspension, and the lease is still checked at every use.
func (c bootClock) NewAlarm(ring func()) Alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return &timeAlarm{clock: timeClock{time.Now().Add(-c.Now())}, ring: ring}
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
		panic("framework: timerfd_settime: " + err.Error()) // only a programming error makes it fail
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
