//go:build linux

package chaos

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// now reads the clock that all processes of this machine share, in nanoseconds.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every Linux has it
	}
	return ts.Nano()
}

const (
	// glance is how often a holder looks whether its hold stands.
	glance = 5 * time.Millisecond
	// blink is a gap between two looks that only a process which was stopped, or starved, has.
	blink = 40 * time.Millisecond
	// rouse is what a process that goes on is given to notice that its holds are over: no client-side rule
	// can promise that it acts on nothing in its first moments.
	rouse = 60 * time.Millisecond
)

// wakefulness knows whether this process is scheduled as it should be.
type wakefulness struct {
	mu          sync.Mutex
	last, since int64 // the last look, and since when there was no gap
}

func newWakefulness() *wakefulness {
	t := now()
	return &wakefulness{last: t, since: t}
}

// keep looks at the clock until done ends.
func (w *wakefulness) keep(done <-chan struct{}) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		w.look(now())
		select {
		case <-tick.C:
		case <-done:
			return
		}
	}
}

func (w *wakefulness) look(t int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t-w.last > int64(blink) {
		w.since = t
	}
	w.last = t
}

// steady tells whether this process was awake until t, and for a while before.
func (w *wakefulness) steady(t int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return t-w.last <= int64(blink) && t-w.since >= int64(rouse)
}

func TestAProcessThatGoesOnIsGivenAMoment(t *testing.T) {
	w := &wakefulness{}
	ms := func(n int64) int64 { return n * int64(time.Millisecond) }
	for n := int64(0); n <= 100; n += 5 {
		w.look(ms(n))
	}
	require.True(t, w.steady(ms(103)))
	require.False(t, w.steady(ms(500)), "stopped, and has not looked since")
	w.look(ms(500))
	require.False(t, w.steady(ms(501)))
	for n := int64(505); n <= 600; n += 5 {
		w.look(ms(n))
	}
	require.True(t, w.steady(ms(601)))
}
