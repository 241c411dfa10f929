//go:build !unix

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func freeze(*os.Process) error {
	return fmt.Errorf("freeze a process on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func thaw(p *os.Process) error { return freeze(p) }
