//go:build !unix

package watchdog

// Main is never reached here.
func Main() int { return 1 }

func startWatchdog() (*watchdogProcess, error) { return nil, ErrUnsupported }
