package monitor

import (
	"errors"
)

var (
	// ErrOption is returned by Run and Check when an option's value cannot be used.
	ErrOption = errors.New("invalid option")
	// ErrForeign is returned by Run when the path has the record of a monitor of another root. Use
	// a path for each root.
	ErrForeign = errors.New("path is used by a monitor of another root")
)
