//go:build linux

package chaos

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// now reads a clock that all processes of this machine share, in nanoseconds.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every Linux has it
	}
	return ts.Nano()
}

const (
	// checkInterval is how often a holder checks its context.
	checkInterval = 5 * time.Millisecond
	// maxCheckGap is the longest gap between two checks of a process that was not paused or
	// starved.
	maxCheckGap = 40 * time.Millisecond
	// wakeUpGrace is how long a resumed process may take to notice that its holds have ended. A
	// client cannot prevent that the process acts in the moments before it notices.
	wakeUpGrace = 60 * time.Millisecond
)

// schedulingMonitor detects the times in which this process was not scheduled.
type schedulingMonitor struct {
	mu          sync.Mutex
	last, since int64 // the last check, and the start of the period without gaps
}

func newSchedulingMonitor() *schedulingMonitor {
	t := now()
	return &schedulingMonitor{last: t, since: t}
}

// run observes the clock until done is closed.
func (m *schedulingMonitor) run(done <-chan struct{}) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		m.observe(now())
		select {
		case <-tick.C:
		case <-done:
			return
		}
	}
}

func (m *schedulingMonitor) observe(t int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t-m.last > int64(maxCheckGap) {
		m.since = t
	}
	m.last = t
}

// wasRunning reports whether this process was scheduled at t and for wakeUpGrace before.
func (m *schedulingMonitor) wasRunning(t int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t-m.last <= int64(maxCheckGap) && t-m.since >= int64(wakeUpGrace)
}

func TestSchedulingMonitorGivesGraceAfterAPause(t *testing.T) {
	m := &schedulingMonitor{}
	ms := func(n int64) int64 { return n * int64(time.Millisecond) }
	for n := int64(0); n <= 100; n += 5 {
		m.observe(ms(n))
	}
	require.True(t, m.wasRunning(ms(103)))
	require.False(t, m.wasRunning(ms(500)), "paused, and not observed since")
	m.observe(ms(500))
	require.False(t, m.wasRunning(ms(501)))
	for n := int64(505); n <= 600; n += 5 {
		m.observe(ms(n))
	}
	require.True(t, m.wasRunning(ms(601)))
}
