//go:build unix && !linux

package watchdog

import "os"

func renameProcess() {}

func executablePath() (string, error) { return os.Executable() }
