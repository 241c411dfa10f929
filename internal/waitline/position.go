package waitline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// ErrKindMixed is returned when a directory holds contenders of another kind. Contenders of two
// kinds would not wait for each other, and both would hold.
var ErrKindMixed = failure.KindOf(failure.ErrForeign, "directory holds contenders of another kind")

// Kind is the part of a node's name before its number: the kind of lock that its contender waits
// for. One directory holds one kind, or readers and writers.
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

// The names of kazoo's own lock and read lock. A line refuses these names unless its filter allows
// them. A kazoo client waits for Lockstep's names only if it is configured to, which no other
// client can see; without that, it would hold beside others. A kazoo Lock that uses Curator's name
// is a contender like others; see docs/layouts.md.
const (
	Kazoo     Kind = "__lock__"
	KazooRead Kind = "__rlock__"
)

// allKinds are the names that contenders have between their protection (see znode.ProtectedPrefix)
// and their number, in Lockstep, in Apache Curator and in kazoo. Children with other names are
// foreign: a line ignores them.
var allKinds = []Kind{Mutex, Latch, Read, Write, Kazoo, KazooRead}

// IsShared reports whether contenders of the kind can hold together.
func (k Kind) IsShared() bool { return k == Read || k == KazooRead }

// Family is the kind that stands for all kinds that may share a directory: Write for readers and
// writers.
func (k Kind) Family() Kind {
	if k == Read {
		return Write
	}
	return k
}

// mayBeDowngraded reports whether a holder of this kind may become a reader with the same number,
// as Curator's writer can.
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

// ParsePosition parses a child's name. It returns false for a foreign child.
func ParsePosition(name string) (p Position, ok bool) {
	for _, digits := range [...]int{10, 11} { // the server's %010d; a number that has wrapped may have 11 characters
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

// PositionOf returns the position of a node in its line. It returns false for a foreign node.
func PositionOf(node string) (Position, bool) {
	_, name := znode.Split(node)
	return ParsePosition(name)
}

// PermitsIn reads the number of permits in a semaphore's record, as far as it can be understood; 0
// if it cannot.
func PermitsIn(record []byte) int {
	var p struct{ Permits int }
	if err := json.Unmarshal(record, &p); err != nil {
		return 0
	}
	return max(p.Permits, 0)
}

// ParseNumbered parses a name that ends with a stem and a server's number, for nodes that are not
// in a line. It returns false for another name.
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

// parseSequence parses the number that a server has appended.
func parseSequence(digits string) (int32, error) {
	if digits[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err
}

// sequenceDigits is the number as the server has written it.
func (p Position) sequenceDigits() string {
	return p.Name[strings.LastIndex(p.Name, string(p.Kind))+len(p.Kind):]
}

// IsBefore reports whether p is before q in the line. The server's numbers wrap from 2147483647 to
// -2147483648, so IsBefore looks at the sign of their difference, which wraps too. A comparison of
// the numbers or of the names would put the wrapped number first, and two clients would hold the
// lock.
func (p Position) IsBefore(q Position) bool { return p.Seq-q.Seq < 0 }

// Blocks reports whether q must wait for p.
func (p Position) Blocks(q Position) bool {
	return p.IsBefore(q) && !(p.Kind.IsShared() && q.Kind.IsShared())
}

// Filter says which children of a directory are contenders of one line.
type Filter struct {
	Kind  Kind
	Kazoo bool // kazoo's own names are contenders too
}

func (f Filter) admitsKind(k Kind) bool {
	return k.Family() == f.Kind.Family() || f.Kazoo && (k == Kazoo || k == KazooRead)
}

// forEach calls call with each contender among names. It fails with ErrKindMixed if the kinds are
// mixed; it may have called call before.
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
	if len(parts) > 1 { // a single one may be another lock's directory with that name
		return fmt.Errorf("%w: a semaphore's %s beside %s#", ErrKindMixed, strings.Join(parts, " and "), f.Kind)
	}
	return nil
}

// inOrder returns the contenders among names in the order of the line. It fails with ErrKindMixed
// if the kinds are mixed.
func (f Filter) inOrder(names []string) ([]Position, error) {
	line := make([]Position, 0, len(names))
	if err := f.forEach(names, func(p Position) { line = append(line, p) }); err != nil {
		return nil, err
	}
	Sort(line)
	return line, nil
}

// Sort sorts contenders in the order of the line. A writer comes before the reader that has its
// number.
func Sort(line []Position) {
	slices.SortStableFunc(line, func(a, b Position) int {
		return cmp.Or(cmp.Compare(a.Seq-b.Seq, 0), -cmp.Compare(a.Kind, b.Kind))
	})
}
