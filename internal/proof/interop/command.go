package interop

// Command is a command to a peer; the package's documentation lists the fields of each.
type Command struct {
	ID int    `json:"id"`
	Do string `json:"do"`

	Client  string `json:"client,omitempty"`
	Servers string `json:"servers,omitempty"` // host:port, separated by commas
	Timeout int    `json:"timeout,omitempty"` // session timeout, in milliseconds

	Lock string `json:"lock,omitempty"`
	Spec
	Part string `json:"part,omitempty"`
	Wait *int   `json:"wait,omitempty"` // in milliseconds
	Node string `json:"node,omitempty"`

	Section Section  `json:"section,omitempty"`
	Nodes   []string `json:"nodes,omitempty"`
	Rounds  int      `json:"rounds,omitempty"`
}

// Spec describes a lock object.
type Spec struct {
	Kind     string   `json:"kind,omitempty"`
	Paths    []string `json:"paths,omitempty"`
	Permits  int      `json:"permits,omitempty"`  // how many there are
	Take     int      `json:"take,omitempty"`     // how many are acquired together
	Patterns []string `json:"patterns,omitempty"` // names of others' contenders, for kazoo
}

// Section is a critical section that detects a broken lock.
type Section string

const (
	// Add adds 1 to the number in each of the nodes, one after the other, by a read and a write of
	// any version. If two contenders do that at the same time, an addition is lost.
	Add Section = "add"
	// Compare fails if the first and the last node differ. Then another contender writes at the
	// same time.
	Compare Section = "compare"
	// Crowd fails if more than permits contenders are inside at the same time. Each creates a node
	// in the directory in Nodes while it is inside.
	Crowd Section = "crowd"
)

// Answer is a peer's answer.
type Answer struct {
	ID    int    `json:"id"`
	Error string `json:"error"` // a stack trace

	Session      int64    `json:"session"`
	Password     []byte   `json:"password"`
	Granted      bool     `json:"granted"`
	Participants []string `json:"participants"`
}
