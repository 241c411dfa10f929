package locks

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

// kinds are all names that contenders have between their protection and their number, here and in
// Apache Curator. Everything else below a lock directory is foreign and never counted.
var kinds = []Kind{MutexKind, LatchKind, ReadKind, WriteKind}

// claimKind is no kind of a line: a claim has none.
const claimKind Kind = "claim"

// labels are what telemetry calls locks of a kind, where nothing else is said.
var labels = map[Kind]string{MutexKind: "mutex", LatchKind: "election", ReadKind: "read", WriteKind: "write"}

// shared tells whether contenders of the kind hold beside each other.
func (k Kind) shared() bool { return k == ReadKind }

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
