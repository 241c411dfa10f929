package framework

// Perms is a set of permissions on a node.
type Perms int32

// The permissions of ZooKeeper.
const (
	PermRead Perms = 1 << iota
	PermWrite
	PermCreate
	PermDelete
	PermAdmin
	PermAll = PermRead | PermWrite | PermCreate | PermDelete | PermAdmin
)

// ACL gives one identity permissions on a node.
type ACL struct {
	Perms  Perms
	Scheme string
	ID     string
}

// Credential is what a client authenticates with. Its fields do not appear in errors and logs.
type Credential struct {
	// Scheme is the server's authentication scheme, such as "digest".
	Scheme string
	// Auth is the scheme's data; for digest "user:password".
	Auth []byte
}

// String hides the credential's data.
func (c Credential) String() string { return c.Scheme + ":(hidden)" }

// GoString hides the credential's data.
func (c Credential) GoString() string { return c.String() }

// MarshalText hides the credential's data from encoders, such as slog's and encoding/json.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Open gives all permissions to all clients: the default of a client without credentials.
func Open() []ACL { return []ACL{{PermAll, "world", "anyone"}} }

// CreatorOnly gives all permissions to the creator of the node, and none to others: the default
// of a client with credentials.
func CreatorOnly() []ACL { return []ACL{{PermAll, "auth", ""}} }
