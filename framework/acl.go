package framework

import "strings"

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

var permNames = [...]string{"read", "write", "create", "delete", "admin"}

// String names the permissions: "read, create", "all" or "none".
func (p Perms) String() string {
	switch p & PermAll {
	case PermAll:
		return "all"
	case 0:
		return "none"
	}
	var names []string
	for i, name := range permNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// ACL gives one identity permissions on a node. PermRead, PermWrite and PermAdmin are for the node
// itself; PermCreate and PermDelete are for its children.
type ACL struct {
	Perms  Perms
	Scheme string
	ID     string
}

// Identity names who has the permissions, as "world:anyone" or "digest:user". It leaves out the
// hash of a digest.
func (a ACL) Identity() string {
	id := a.ID
	if a.Scheme == "digest" {
		id, _, _ = strings.Cut(id, ":")
	}
	return a.Scheme + ":" + id
}

// String names who has which permissions: "digest:user: read, create". It leaves out the hash of a
// digest.
func (a ACL) String() string { return a.Identity() + ": " + a.Perms.String() }

// Credential is what a client authenticates with. Its fields do not appear in errors and logs.
type Credential struct {
	// Scheme is the server's authentication scheme, such as "digest".
	Scheme string
	// Auth is the scheme's data; for digest "user:password".
	Auth []byte

	readableFile string // of the secret, if everybody on this machine can read it: New warns of it
}

// String hides the credential's data.
func (c Credential) String() string { return c.Scheme + ":(hidden)" }

// GoString hides the credential's data.
func (c Credential) GoString() string { return c.String() }

// MarshalText hides the credential's data from encoders, such as slog's and encoding/json.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// OpenACL gives all permissions to all clients: the default of a client without credentials.
func OpenACL() []ACL { return []ACL{{PermAll, "world", "anyone"}} }

// CreatorOnlyACL gives all permissions to the creator of the node, and none to others: the default
// of a client with credentials.
func CreatorOnlyACL() []ACL { return []ACL{{PermAll, "auth", ""}} }
