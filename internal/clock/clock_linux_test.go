package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// machine plays a machine's clocks: asleep, the monotonic one stands still while the others go on.
type machine struct {
	monotonic, asleep, stepped time.Duration
	slow                       time.Duration // that a read of the boot clock takes
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

// TestASlowReadingIsNotKept has the thread lose the processor while it reads: the clocks do not fit together.
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
