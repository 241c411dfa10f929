package locks

import "slices"

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

// shared tells whether contenders of the kind hold beside each other.
func (k Kind) shared() bool { return k == ReadKind || k == kazooReadKind }

// company is whom a contender takes for contenders.
type company struct {
	kind  Kind
	kazoo bool // kazoo's own names too
}

func (co company) admits(k Kind) bool {
	return k.family() == co.kind.family() || co.kazoo && (k == kazooKind || k == kazooReadKind)
}

// family is the name of the kinds that may share a directory.
func (k Kind) family() Kind {
	if k == ReadKind {
		return WriteKind
	}
	return k
}

// replaceable tells whether a holder of the kind may be replaced in its place: Curator's writer that
// goes on as a reader gives the reader its own number.
func (k Kind) replaceable() bool { return k == WriteKind }
