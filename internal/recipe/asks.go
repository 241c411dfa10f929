package recipe

import (
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/znode"
)

// AskDirSuffix follows a lock's path in the path of the directory in which package locks records
// who asks for the lock under other locks.
const AskDirSuffix = "~waits"

// AskName is the stem of such a record's name.
const AskName = "ask-"

// IsAskName reports whether a child of such a directory is a record.
func IsAskName(name string) bool {
	return strings.HasPrefix(name, znode.ProtectedPrefix) && strings.Contains(name, "-"+AskName)
}

// HasAskLayout reports whether a node with these children may be such a directory.
func HasAskLayout(children []string) bool { return slices.ContainsFunc(children, IsAskName) }
