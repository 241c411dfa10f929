//go:build !linux

package framework

// SystemClock returns the clock that leases are counted by unless another is given: TimeClock on
// this system.
func SystemClock() Clock { return TimeClock() }
