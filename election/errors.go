package election

import "errors"

var (
	// ErrNoLeader is returned when nobody leads.
	ErrNoLeader = errors.New("no leader")
	// ErrStop is what the function given to Lead returns to end Lead without an error.
	ErrStop = errors.New("stop leading")
)
