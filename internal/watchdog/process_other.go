//go:build !unix

package watchdog

// IsWatchdog returns false, since startWatchdog starts no watchdog.
func IsWatchdog() bool { return false }

// Main is not called on these systems, since startWatchdog starts no watchdog.
func Main() int { return 1 }

func startWatchdog() (*watchdogProcess, error) { return nil, ErrUnsupported }
