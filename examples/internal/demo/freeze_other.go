//go:build !unix

package demo

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func freeze(*os.Process) error {
	return fmt.Errorf("freeze a process on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func resume(p *os.Process) error { return freeze(p) }
