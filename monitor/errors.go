package monitor

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

var (
	// ErrOption is returned by Run and Check when an option's value cannot be used.
	ErrOption = errors.New("invalid option")
	// ErrForeign is returned by Run when the path has the record of a monitor of another root.
	ErrForeign = errors.New("path is used by a monitor of another root")
	// ErrBadRecord is returned by Run when the record of the findings cannot be read. Delete it: what is still wrong is told again.
	ErrBadRecord = recipe.ErrCorrupt
	// ErrNewerRecord is returned by Run when a newer release has written the record of the findings.
	ErrNewerRecord = recipe.ErrNewer
)
