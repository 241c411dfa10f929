//go:build !unix

package terminal

import "os"

func screenSignals() (signals <-chan os.Signal, stop func()) { return nil, func() {} }

func isSuspension(os.Signal) bool { return false }

func isContinuation(os.Signal) bool { return false }

// stopProcess does nothing: these systems have no shells that continue stopped programs.
func stopProcess() error { return nil }
