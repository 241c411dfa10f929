package barrier

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/internal/znode"
)

// memberDirectory identifies the directory that members' numbers belong to. A new directory has
// another name and begins a new numbering. So the path of a member's node never belongs to another
// member (docs/adr/0091-a-hold-knows-its-node.md).
type memberDirectory struct {
	czxid int64  // the transaction that has created the barrier
	in    string // the directory's path
}

// directoryPrefix begins the name of the directory of members. A UUID follows.
const directoryPrefix = "in-"

func newDirectoryName() string { return directoryPrefix + uuid.NewString() }

func isDirectoryName(name string) bool {
	id, ok := strings.CutPrefix(name, directoryPrefix)
	return ok && len(id) == len(uuid.Nil.String()) && uuid.Validate(id) == nil
}

// memberName is the name of a member's node, without its number.
const (
	memberName = "m-"
	memberKind = "member"
)

// parseMemberNumber reads a member's number, an int32 that may have wrapped.
func parseMemberNumber(node string) (int32, bool) {
	_, name := znode.Split(node)
	digits, ok := strings.CutPrefix(name, memberName)
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), ok && err == nil && name == memberNodeName(int32(n)) // exactly as a server writes it
}

func memberNodeName(number int32) string { return fmt.Sprintf("%s%010d", memberName, number) }
