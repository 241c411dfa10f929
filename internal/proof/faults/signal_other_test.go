//go:build !unix

package faults

import (
	"errors"
	"os"
	"syscall"
)

func stopProcess(*os.Process) error         { return errors.ErrUnsupported }
func continueProcess(*os.Process) error     { return errors.ErrUnsupported }
func newProcessGroup() *syscall.SysProcAttr { return nil }

func runWatchedHolder() bool { return false }
