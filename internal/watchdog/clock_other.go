//go:build !linux

package watchdog

import "time"

// leaseClock reads the clock of the leases in messages. It must be the same for all processes, so
// here it is the wall clock, which may be set.
func leaseClock() time.Duration { return time.Duration(time.Now().UnixNano()) }
