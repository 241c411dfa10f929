package procguard

import "errors"

var (
	// ErrNotFound is returned when the command does not exist; shells exit with 127.
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable is returned when the command exists but cannot be run; shells exit with 126.
	ErrNotExecutable = errors.New("command cannot be run")
	// ErrHoldLost is returned when the hold was lost before the command ended by itself. When Run
	// returns it, the command has ended.
	ErrHoldLost = errors.New("hold lost")

	errLeaseRunsOut = errors.New("the session's lease runs out")
)
