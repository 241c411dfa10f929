package barrier

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/internal/znode"
)

// directoryNumbering identifies the directory that members' numbers belong to. A new directory begins a new numbering.
type directoryNumbering struct {
	czxid  int64 // the transaction that has created the barrier
	origin int32 // the phase from which the numbers are counted
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
