package recipe

import (
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// IsConflict reports whether the servers refused a write because another client has changed the
// nodes meanwhile.
func IsConflict(err error) bool {
	return errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNotEmpty) ||
		errors.Is(err, framework.ErrBadVersion) ||
		errors.Is(err, framework.ErrNodeExists)
}
