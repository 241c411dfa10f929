//go:build unix && !linux

package watchdog

import "os"

func prepareRename() (rename func()) { return func() {} }

func forbidTracing() {}

const socketCloexec = 0 // not all of these systems have it

func executablePath() (string, error) { return os.Executable() }
