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
			require.GreaterOrEqual(t, <-rings, set+20*time.Millisecond, "the last setting counts, and never early")
			a.Set(set - time.Second)
			<-rings
			a.Set(c.Now() + 50*time.Millisecond)
			a.Stop()
			a.Stop()
			a.Set(c.Now())
			select {
			case <-rings:
				t.Error("it rang after Stop")
			case <-time.After(100 * time.Millisecond):
			}
		})
	}
}
