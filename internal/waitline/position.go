package waitline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// ErrKindMixed is returned when a directory holds contenders of another kind. Each kind would see only itself, and both would hold.
var ErrKindMixed = errors.New("directory holds contenders of another kind")

// Kind is the part of a node's name that says what its contender contends for. One directory holds one kind, or readers and writers.
type Kind string

// The kinds of Apache Curator's layouts.
const (
	// Mutex is InterProcessMutex's: lock-#.
	Mutex Kind = "lock-"
	// Latch is LeaderLatch's: latch-#.
	Latch Kind = "latch-"
	// Read and Write are InterProcessReadWriteLock's: __READ__# and __WRIT__#.
	Read  Kind = "__READ__"
	Write Kind = "__WRIT__"
)

// The names of kazoo's own lock and read lock. A line refuses these names unless its filter allows them: no client can see whether that kazoo
// waits for our names, and half an exclusion looks like a whole one. A kazoo Lock with Curator's name is a contender like others; see
// docs/layouts.md.
const (
	Kazoo     Kind = "__lock__"
	KazooRead Kind = "__rlock__"
)

// allKinds are all names that contenders have between their protection and their number, in Lockstep, in Apache Curator and in kazoo.
// Children of other names are foreign and do not count.
var allKinds = []Kind{Mutex, Latch, Read, Write, Kazoo, KazooRead}

// IsShared reports whether contenders of the kind hold beside each other.
func (k Kind) IsShared() bool { return k == Read || k == KazooRead }

// Family is the kind that stands for all kinds that may share a directory: Write for readers and writers.
func (k Kind) Family() Kind {
	if k == Read {
		return Write
	}
	return k
}

// mayBeDowngraded reports whether a reader may take over the number of a holder of this kind, as Curator's writer allows.
func (k Kind) mayBeDowngraded() bool { return k == Write }

// The names below a semaphore's path. A line recognizes a semaphore's directory by these names.
const (
	LocksPart   = "locks"
	LeasesPart  = "leases"
	PermitsPart = "permits"
)

// SemaphoreParts are all names below a semaphore's path.
var SemaphoreParts = []string{LocksPart, LeasesPart, PermitsPart}

// Position is one contender's position in the line, parsed from its node's name.
type Position struct {
	Name string
	Kind Kind
	Seq  int32
}

// ParsePosition reads a child's name. It reports false for a foreign child.
func ParsePosition(name string) (p Position, ok bool) {
	for _, digits := range [...]int{10, 11} { // an int32 that may have wrapped to negative numbers
		if cut := len(name) - digits; cut > 0 {
			for _, kind := range allKinds {
				if strings.HasSuffix(name[:cut], string(kind)) {
					seq, err := parseSequence(name[cut:])
					return Position{name, kind, seq}, err == nil
				}
			}
		}
	}
	return Position{}, false
}

// ParseNumbered reads a name that ends with a stem and a server's number, for nodes that are not in a line.
func ParseNumbered(name, stem string, kind Kind) (p Position, ok bool) {
	i := strings.LastIndex(name, stem)
	if i < 0 {
		return Position{}, false
	}
	digits := name[i+len(stem):]
	if len(digits) != 10 && len(digits) != 11 {
		return Position{}, false
	}
	seq, err := parseSequence(digits)
	return Position{name, kind, seq}, err == nil
}

// parseSequence reads the number that a server has appended.
func parseSequence(digits string) (int32, error) {
	if digits[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err
}

// sequenceDigits is the number in the server's spelling.
func (p Position) sequenceDigits() string {
	return p.Name[strings.LastIndex(p.Name, string(p.Kind))+len(p.Kind):]
}

// IsBefore reports whether p is before q in the line. It orders sequence numbers on the circle of int32, so that the order holds where they wrap. Compared as strings, the wrapped
// number would come first, and two clients would hold the lock.
func (p Position) IsBefore(q Position) bool { return p.Seq-q.Seq < 0 }

// Blocks reports whether q must wait for p.
func (p Position) Blocks(q Position) bool {
	return p.IsBefore(q) && !(p.Kind.IsShared() && q.Kind.IsShared())
}

// Filter says which children of a directory are contenders of one line.
type Filter struct {
	Kind  Kind
	Kazoo bool // count kazoo's own names, too
}

func (f Filter) admitsKind(k Kind) bool {
	return k.Family() == f.Kind.Family() || f.Kazoo && (k == Kazoo || k == KazooRead)
}

// forEach calls f with each contender among names. It fails with ErrKindMixed for a mixture of kinds, and may have called f by then.
func (f Filter) forEach(names []string, call func(Position)) error {
	var parts []string
	for _, name := range names {
		p, ok := ParsePosition(name)
		switch {
		case ok && !f.admitsKind(p.Kind):
			return fmt.Errorf("%w: %s beside %s#", ErrKindMixed, name, f.Kind)
		case ok:
			call(p)
		case slices.Contains(SemaphoreParts, name):
			parts = append(parts, name)
		}
	}
	if len(parts) > 1 { // one alone may be the directory of another lock
		return fmt.Errorf("%w: a semaphore's %s beside %s#", ErrKindMixed, strings.Join(parts, " and "), f.Kind)
	}
	return nil
}

// inOrder returns the contenders among names in the order of the line. It fails with ErrKindMixed for a mixture of kinds.
func (f Filter) inOrder(names []string) ([]Position, error) {
	line := make([]Position, 0, len(names))
	if err := f.forEach(names, func(p Position) { line = append(line, p) }); err != nil {
		return nil, err
	}
	Sort(line)
	return line, nil
}

// Sort sorts contenders in the order of the line. A writer comes before the reader that has its number.
func Sort(line []Position) {
	slices.SortStableFunc(line, func(a, b Position) int {
		return cmp.Or(cmp.Compare(a.Seq-b.Seq, 0), -cmp.Compare(a.Kind, b.Kind))
	})
}

// CheckPath reports why no line can be at path on this client, or nil.
func CheckPath(client *framework.Client, path string) error {
	if client == nil {
		return errors.New("the client is nil")
	}
	if err := framework.ValidatePath(path); err != nil {
		return err
	}
	if path == "/" {
		return fmt.Errorf("%w %q: the root cannot be a lock", framework.ErrInvalidPath, path)
	}
	full := znode.Join(client.Config().Root, strings.TrimPrefix(path, "/"))
	if full == serversOwn || strings.HasPrefix(full, serversOwn+"/") {
		return fmt.Errorf("%w %q: nodes below %s belong to the servers; use another path", framework.ErrInvalidPath, path, serversOwn)
	}
	return nil
}

// serversOwn is the directory of the servers' configuration and quotas.
const serversOwn = "/zookeeper"
