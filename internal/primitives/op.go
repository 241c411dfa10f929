package primitives

// Op is one operation of a transaction, for applications: framework's constructors make it. OpFields are what it does.
type Op struct{ fields OpFields }

// OpFields say what an operation does.
type OpFields struct {
	// Kind is what it does to the node.
	Kind OpKind
	// Path is the node's path, below the client's root.
	Path string
	// Data is what a create or a set writes. It must not be changed any more.
	Data []byte
	// Version is what the node's version must be, for all kinds but a create.
	Version int32
	// Mode is the mode of a created node, a framework.Mode.
	Mode int32
	// Valid is a condition of this process's own: the transaction is refused with its error before it is sent. It may be nil, and may be asked more than once.
	Valid func() error
}

// OpKind is what an operation does. Its text names it in errors.
type OpKind string

// The kinds of operations.
const (
	OpCheck  OpKind = "check"
	OpCreate OpKind = "create"
	OpSet    OpKind = "set"
	OpDelete OpKind = "delete"
)

// NewOp returns an operation.
func NewOp(f OpFields) Op { return Op{f} }

// Fields returns what the operation does.
func Fields(o Op) OpFields { return o.fields }

// Path is the path of the operation's node.
func Path(o Op) string { return o.fields.Path }

// When returns the operation with a condition of this process's own: the transaction is refused with
// the condition's error before it is sent. It may be asked more than once.
func When(o Op, valid func() error) Op {
	o.fields.Valid = valid
	return o
}

// Size is how many bytes the operation's path and data have.
func Size(o Op) int { return len(o.fields.Path) + len(o.fields.Data) }
