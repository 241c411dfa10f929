package recipe

import (
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/znode"
)

// LockRequestsSuffix follows a lock's path in the path of the directory that has a record of each
// request for the lock whose caller holds other locks.
const LockRequestsSuffix = "~waits"

// LockRequestName is the stem of such a record's name.
const LockRequestName = "ask-"

// IsLockRequestName reports whether a child of such a directory is a record.
func IsLockRequestName(name string) bool {
	return strings.HasPrefix(name, znode.ProtectedPrefix) && strings.Contains(name, "-"+LockRequestName)
}

// HasLockRequests reports whether a node with these children may be such a directory.
func HasLockRequests(children []string) bool { return slices.ContainsFunc(children, IsLockRequestName) }
