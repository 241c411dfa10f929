//go:build !unix

package watchdog

// Main is never reached here.
func Main() int { return 1 }

func launch() (*process, error) { return nil, ErrUnsupported }
