package child

import "errors"

var (
	// ErrNotFound is returned when there is no such command; shells exit with 127.
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable is returned when the command is there but cannot be run; shells exit with 126.
	ErrNotExecutable = errors.New("command cannot be run")
	// ErrHoldLost is returned when the hold was lost before the command had ended by itself. The
	// command has ended.
	ErrHoldLost = errors.New("hold lost")

	errRunningOut = errors.New("the proof of life runs out")
)
