//go:build !unix

package faults

import (
	"errors"
	"os"
	"syscall"
)

func stopProcess(*os.Process) error     { return errors.ErrUnsupported }
func continueProcess(*os.Process) error { return errors.ErrUnsupported }
func ownGroup() *syscall.SysProcAttr    { return nil }

func playWatched() bool { return false }
