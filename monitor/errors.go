package monitor

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

var (
	// ErrOption is returned by Run and Check when an option's value cannot be used.
	ErrOption = errors.New("invalid option")
	// ErrForeign is returned by Run when the path has the record of a monitor of another root. Use
	// a path for each root.
	ErrForeign = errors.New("path is used by a monitor of another root")
	// ErrBadRecord is returned by Run when the record of the findings (<path>/findings) cannot be
	// read. Delete that node: the next leader reports the problems that persist once more.
	ErrBadRecord = recipe.ErrCorrupt
	// ErrNewerRecord is returned by Run when a newer release has written the record of the
	// findings.
	ErrNewerRecord = recipe.ErrNewer
)
