//go:build unix && !linux

package watchdog

import "os"

func rename() {}

func executable() (string, error) { return os.Executable() }
