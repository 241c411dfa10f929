package election

import (
	"errors"

	"github.com/lockstep-go/lockstep/locks"
)

var (
	// ErrNoLeader is returned when nobody leads.
	ErrNoLeader = errors.New("no leader")
	// ErrResigned is the cause of a term's end when its leader gave it up, and is returned when such a term
	// is used. It is locks.ErrReleased.
	ErrResigned = locks.ErrReleased
	// ErrStop is what the function given to Lead returns to end Lead without an error.
	ErrStop = errors.New("stop leading")
)
