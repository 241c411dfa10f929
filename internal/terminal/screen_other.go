//go:build !unix

package terminal

import "os"

func screenSignals() (signals <-chan os.Signal, ignore func()) { return nil, func() {} }

func isSuspension(os.Signal) bool { return false }

// stopProcess does nothing: there is no shell that could go on with the program.
func stopProcess() error { return nil }
