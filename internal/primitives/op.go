package primitives

// Op is one operation of a transaction. Applications make it with framework's constructors and
// cannot see its fields.
type Op struct{ fields OpFields }

// OpFields say what an operation does.
type OpFields struct {
	// Kind is what it does to the node.
	Kind OpKind
	// Path is the node's path, below the client's root.
	Path string
	// Data is what a create or a set writes. The caller must not change it after that.
	Data []byte
	// Version is the version that the node must have, for all kinds but a create.
	Version int32
	// Mode is the framework.Mode of a created node.
	Mode int32
	// Valid, unless it is nil, is a condition that this process checks before it sends the
	// transaction. If Valid returns an error, the transaction fails with that error and is not
	// sent. Valid may be called more than once.
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

// NewOp returns an operation with these fields.
func NewOp(f OpFields) Op { return Op{f} }

// Fields returns what the operation does.
func Fields(o Op) OpFields { return o.fields }

// Path is the path of the operation's node.
func Path(o Op) string { return o.fields.Path }

// When returns the operation with the condition valid; see OpFields.Valid.
func When(o Op, valid func() error) Op {
	o.fields.Valid = valid
	return o
}

// Size is the number of bytes of the operation's path and data.
func Size(o Op) int { return len(o.fields.Path) + len(o.fields.Data) }
