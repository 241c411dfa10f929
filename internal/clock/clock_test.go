package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/clock"
)

// TestAlarmsRing runs on the clock of the system, in real time.
func TestAlarmsRing(t *testing.T) {
	for name, c := range map[string]clock.Clock{"system": clock.System(), "time": clock.Time()} {
		t.Run(name, func(t *testing.T) {
			rings := make(chan time.Duration, 10)
			a := c.NewAlarm(func() { rings <- c.Now() })
			set := c.Now()
			a.Set(set + time.Hour)
			a.Set(set + 20*time.Millisecond)
			require.GreaterOrEqual(t, <-rings, set+20*time.Millisecond, "it rings at the last setting, and not before")
			a.Set(set - time.Second)
			<-rings
			a.Stop()
			for stoppedInTime := false; !stoppedInTime; { // on a slow machine it may ring first
				rings := make(chan struct{}, 10) // not those of the alarm before, which may be late
				a = c.NewAlarm(func() { rings <- struct{}{} })
				at := c.Now() + 50*time.Millisecond
				a.Set(at)
				a.Stop()
				a.Stop()
				stoppedInTime = c.Now() < at-10*time.Millisecond // farther from it than the clock may be wrong
				a.Set(c.Now())
				select {
				case <-rings:
					require.False(t, stoppedInTime, "it rang after Stop")
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
}
