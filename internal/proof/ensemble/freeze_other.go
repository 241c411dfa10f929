//go:build !unix

package ensemble

import (
	"errors"
	"os"
)

func stopProcess(*os.Process) error     { return errors.ErrUnsupported }
func continueProcess(*os.Process) error { return errors.ErrUnsupported }
