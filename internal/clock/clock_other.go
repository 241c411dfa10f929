//go:build !linux

package clock

// System returns the clock that measures leases by default. On this system it is that of Time.
func System() Clock { return Time() }
