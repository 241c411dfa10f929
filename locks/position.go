package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// position is one contender's place in the line.
type position struct {
	name string
	kind Kind
	seq  int32
}

// parsePosition reads a child's name; ok is false for a foreign one.
func parsePosition(name string) (p position, ok bool) {
	for _, digits := range [...]int{10, 11} { // an int32 that may have wrapped to negative ones
		if cut := len(name) - digits; cut > 0 {
			if kind, ok := kindOf(name[:cut]); ok {
				seq, err := parseSequence(name[cut:])
				return position{name, kind, seq}, err == nil
			}
		}
	}
	return position{}, false
}

// kindOf returns the kind that a name without its number ends with.
func kindOf(stem string) (Kind, bool) {
	for _, kind := range kinds {
		if strings.HasSuffix(stem, string(kind)) {
			return kind, true
		}
	}
	return "", false
}

// parseSequence reads the number that a server has appended.
func parseSequence(digits string) (int32, error) {
	if digits[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err
}

// sequenceDigits is the number as the server has written it.
func (p position) sequenceDigits() string {
	return p.name[strings.LastIndex(p.name, string(p.kind))+len(p.kind):]
}

// isBefore orders sequence numbers on the circle of int32, so that the order holds where they wrap:
// compared as strings, the wrapped one would come first, and two clients would hold the lock.
func (p position) isBefore(q position) bool { return p.seq-q.seq < 0 }

// mustWaitForThis reports whether q must wait for p.
func (p position) mustWaitForThis(q position) bool {
	return p.isBefore(q) && !(p.kind.isShared() && q.kind.isShared())
}

// forEachContender calls f with the contenders among names. It refuses a mixture of kinds, for which f may have been
// called by then.
func forEachContender(names []string, co kindFilter, f func(position)) error {
	var parts []string
	for _, name := range names {
		p, ok := parsePosition(name)
		switch {
		case ok && !co.admits(p.kind):
			return fmt.Errorf("%w: %s beside %s#", ErrKindMixed, name, co.kind)
		case ok:
			f(p)
		case slices.Contains(semaphoreParts, name):
			parts = append(parts, name)
		}
	}
	if len(parts) > 1 { // one alone may be another lock's directory
		return fmt.Errorf("%w: a semaphore's %s beside %s#", ErrKindMixed, strings.Join(parts, " and "), co.kind)
	}
	return nil
}

// contendersInOrder returns the contenders among names, first come first. It refuses a mixture of kinds. A
// writer comes before the reader that has its number.
func contendersInOrder(names []string, co kindFilter) ([]position, error) {
	line := make([]position, 0, len(names))
	if err := forEachContender(names, co, func(p position) { line = append(line, p) }); err != nil {
		return nil, err
	}
	sortBySequence(line)
	return line, nil
}

// Kind is what the contenders of a line are named after. One directory holds one kind, or readers and
// writers.
type Kind string

// The kinds of Apache Curator's layouts.
const (
	// MutexKind is InterProcessMutex's: lock-#.
	MutexKind Kind = "lock-"
	// LatchKind is LeaderLatch's: latch-#.
	LatchKind Kind = "latch-"
	// ReadKind and WriteKind are InterProcessReadWriteLock's: __READ__# and __WRIT__#.
	ReadKind  Kind = "__READ__"
	WriteKind Kind = "__WRIT__"
)

// kazooKind and kazooReadKind are the names of kazoo's own lock and read lock. They are refused unless
// WithKazoo says otherwise: whether that kazoo waits for our names cannot be seen, and half an exclusion
// looks like a whole one. (A kazoo Lock with Curator's name is a contender like all others; see
// docs/layouts.md.)
const (
	kazooKind     Kind = "__lock__"
	kazooReadKind Kind = "__rlock__"
)

// ownKinds are those that a line may be of.
var ownKinds = []Kind{MutexKind, LatchKind, ReadKind, WriteKind}

// kinds are all names that contenders have between their protection and their number, here, in
// Apache Curator and in kazoo. Everything else below a lock directory is foreign and never counted.
var kinds = append(slices.Clone(ownKinds), kazooKind, kazooReadKind)

// claimKind is no kind of a line: a claim has none.
const claimKind Kind = "claim"

// labels are what telemetry calls locks of a kind, where nothing else is said.
var labels = map[Kind]string{MutexKind: "mutex", LatchKind: "election", ReadKind: "read", WriteKind: "write"}

// isShared reports whether contenders of the kind hold beside each other.
func (k Kind) isShared() bool { return k == ReadKind || k == kazooReadKind }

// kindFilter is whom a contender takes for contenders.
type kindFilter struct {
	kind  Kind
	kazoo bool // kazoo's own names too
}

func (co kindFilter) admits(k Kind) bool {
	return k.familyName() == co.kind.familyName() || co.kazoo && (k == kazooKind || k == kazooReadKind)
}

// familyName is the name of the kinds that may share a directory.
func (k Kind) familyName() Kind {
	if k == ReadKind {
		return WriteKind
	}
	return k
}

// mayBeDowngraded reports whether a holder of the kind may be replaced in its place: Curator's writer that
// goes on as a reader gives the reader its own number.
func (k Kind) mayBeDowngraded() bool { return k == WriteKind }

// Contender is one node of a line, as anybody can see it.
type Contender struct {
	// Node is its path.
	Node string
	// Token is the fencing token that its lease has or would have.
	Token int64
	// Session is the number of the session that it lives with.
	Session int64
	// Data is what it has written into its node; see Describe.
	Data []byte
}

// Contenders lists the line in order: the holder first, then the waiters. A missing directory is an
// empty line. Nodes that vanish meanwhile are left out.
func (l *Line) Contenders(ctx context.Context) ([]Contender, error) {
	if l.err != nil {
		return nil, framework.Wrap("list", l.path, l.err)
	}
	names, _, err := l.client.Children(ctx, l.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.readContenders(ctx, names, len(names))
}

// First returns the holder, or nil.
func (l *Line) First(ctx context.Context, names []string) (*Contender, error) {
	cs, err := l.readContenders(ctx, names, 1)
	if err != nil || len(cs) == 0 {
		return nil, err
	}
	return &cs[0], nil
}

// readContenders returns the first n contenders among names.
func (l *Line) readContenders(ctx context.Context, names []string, n int) ([]Contender, error) {
	line, err := contendersInOrder(names, l.kindFilter)
	if err != nil {
		return nil, framework.Wrap("list", l.path, err)
	}
	var out []Contender
	for _, p := range line {
		if len(out) == n {
			break
		}
		path := framework.Join(l.path, p.name)
		data, st, err := l.client.Get(ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Contender{Node: path, Token: st.Czxid, Session: st.EphemeralOwner, Data: data})
	}
	return out, nil
}
