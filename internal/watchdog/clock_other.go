//go:build !linux

package watchdog

import "time"

// leaseClock reads the clock that leases are told in, which all processes share: here the wall clock, which may be set.
func leaseClock() time.Duration { return time.Duration(time.Now().UnixNano()) }
