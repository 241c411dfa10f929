package watchdog

import (
	"time"

	"golang.org/x/sys/unix"
)

// leaseClock reads the clock of the leases in messages: CLOCK_BOOTTIME, which is the same for all
// processes and also counts while the machine is suspended.
func leaseClock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("watchdog: CLOCK_BOOTTIME cannot be read: " + err.Error()) // every Linux that Go runs on has it
	}
	return time.Duration(t.Nano())
}
