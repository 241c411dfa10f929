package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// machine simulates a machine's clocks. While it is suspended, the monotonic clock stands still and
// the others go on.
type machine struct {
	monotonic, asleep, stepped time.Duration
	slow                       time.Duration // how long a read of the boot clock takes
	reads                      int
}

func (m *machine) clocks() (monotonic, wall time.Duration) {
	return m.monotonic, 1000*time.Hour + m.monotonic + m.asleep + m.stepped
}

func (m *machine) boot() time.Duration {
	m.reads++
	m.monotonic += m.slow
	return m.truth()
}

func (m *machine) truth() time.Duration { return 5*time.Hour + m.monotonic + m.asleep }

func TestASuspensionIsNoticed(t *testing.T) {
	m := &machine{}
	c := newBootClock(m.clocks, m.boot)
	for _, step := range []struct {
		what  string
		do    func()
		reads int
	}{
		{"the first reading", func() {}, 1},
		{"time passes", func() { m.monotonic += time.Second }, 1},
		{"asleep for an hour", func() { m.asleep += time.Hour }, 2},
		{"time passes again", func() { m.monotonic += time.Minute }, 2},
		{"the wall clock is set", func() { m.stepped -= time.Minute }, 3},
	} {
		step.do()
		require.Equal(t, m.truth(), c.Now(), step.what)
		require.Equal(t, step.reads, m.reads, step.what)
	}
}

// TestASlowReadingIsNotKept: the system interrupts the thread between the readings of the clocks,
// so the readings do not belong to one moment.
func TestASlowReadingIsNotKept(t *testing.T) {
	m := &machine{slow: time.Second}
	c := newBootClock(m.clocks, m.boot)
	require.Equal(t, m.truth()+time.Second, c.Now())
	require.Nil(t, c.last.Load())
	m.slow = 0
	require.Equal(t, m.truth(), c.Now())
	require.NotNil(t, c.last.Load())
}

func TestTheSystemIsTheBootClock(t *testing.T) {
	c := System()
	for range 1000 {
		before := bootTime()
		now := c.Now()
		after := bootTime()
		require.GreaterOrEqual(t, now, before-bootStep)
		require.LessOrEqual(t, now, after+bootStep)
	}
}

// skippingClock is a clock that jumps forward, as CLOCK_BOOTTIME does beside Go's timers when the
// machine was suspended.
type skippingClock struct {
	Clock
	skipped time.Duration
}

func (c *skippingClock) Now() time.Duration { return c.Clock.Now() + c.skipped }

// TestTimerOfAnAlarmFollowsItsClock: after a suspension a Go timer that is set again rings when its
// clock has reached the time.
func TestTimerOfAnAlarmFollowsItsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, rings := &skippingClock{Clock: Time()}, make(chan time.Duration, 1)
		alarm := &timeAlarm{clock: clock, ring: func() { rings <- clock.Now() }}
		defer alarm.Stop()
		clock.skipped = time.Hour
		at := clock.Now() + time.Minute
		alarm.Set(at)
		require.Equal(t, at, <-rings)
	})
}
