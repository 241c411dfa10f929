package cli

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// NodeAccess is what a node's ACL permits to one client, and to others.
type NodeAccess struct {
	Path string
	acl  []framework.ACL
	own  framework.Perms // the client has them for certain
	// and perhaps these: by its address, by its certificate, or by a digest whose hash is not shown
	possible framework.Perms
	Everyone framework.Perms // world:anyone has them
	others   []framework.ACL // entries for credentials that the client does not present
}

// ReadAccess reads a node's ACL, and judges what it permits to the client.
func ReadAccess(ctx context.Context, client *framework.Client, path string) (NodeAccess, error) {
	acl, _, err := client.ACL(ctx, path)
	if err != nil {
		return NodeAccess{}, err
	}
	return judgeAccess(client.Config(), path, acl), nil
}

// judgeAccess compares a node's ACL with what a client presents.
func judgeAccess(cfg framework.Config, path string, acl []framework.ACL) NodeAccess {
	a := NodeAccess{Path: path, acl: acl}
	for _, entry := range acl {
		switch presents(cfg, entry) {
		case certainly:
			a.own |= entry.Perms
		case perhaps:
			a.possible |= entry.Perms
		default:
			a.others = append(a.others, entry)
		}
		if entry.Scheme == "world" {
			a.Everyone |= entry.Perms
		}
	}
	return a
}

// certainty is how certain it is that an entry of an ACL applies to this client.
type certainty int

const (
	certainlyNot certainty = iota
	perhaps
	certainly
)

// presents reports whether a client with a configuration presents what an entry of an ACL names.
func presents(cfg framework.Config, entry framework.ACL) certainty {
	switch entry.Scheme {
	case "world":
		return certainly
	case "ip":
		return perhaps // the server knows the address
	case "x509":
		if cfg.TLS != nil && len(cfg.TLS.Certificates) > 0 {
			return perhaps // the server writes the certificate's subject in a form of its own
		}
		return certainlyNot
	}
	best := certainlyNot
	for _, c := range cfg.Auth {
		if c.Scheme != entry.Scheme {
			continue
		}
		best = max(best, presentsCredential(c, entry))
	}
	return best
}

// presentsCredential compares a credential with an entry of its scheme.
func presentsCredential(c framework.Credential, entry framework.ACL) certainty {
	if c.Scheme != "digest" {
		return perhaps
	}
	user, _, _ := strings.Cut(string(c.Auth), ":")
	switch {
	case entry.ID == digestID(string(c.Auth)):
		return certainly
	case entry.ID == user+":x" && entry.Perms&framework.PermAdmin == 0:
		// servers show the hash to those who have PermAdmin
		return perhaps
	}
	return certainlyNot
}

// digestID returns the id that stands for user:password in an ACL.
func digestID(userAndPassword string) string {
	user, _, _ := strings.Cut(userAndPassword, ":")
	sum := sha1.Sum([]byte(userAndPassword))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// Lacks returns which of some permissions the client certainly does not have.
func (a NodeAccess) Lacks(perms framework.Perms) framework.Perms {
	return perms &^ (a.own | a.possible)
}

// Unpresented names the credentials that have one of some permissions, and that the client does not
// present.
func (a NodeAccess) Unpresented(perms framework.Perms) (names []string) {
	for _, entry := range a.others {
		if name := entry.Identity(); entry.Perms&perms != 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// String names who may do what: "digest:ann: all; world:anyone: read". The hashes of digests are
// left out.
func (a NodeAccess) String() string {
	entries := make([]string, len(a.acl))
	for i, entry := range a.acl {
		entries[i] = entry.String()
	}
	return strings.Join(entries, "; ")
}

// accessTime bounds what is read of ACLs after a command was refused.
const accessTime = 2 * time.Second

// WithPermitted adds to an error of missing permission which node's ACL refuses, and who is
// permitted, if the client may read that ACL. The client of the command is closed by then, so this
// opens another session.
func WithPermitted(cmd *cobra.Command, err error) error {
	if !errors.Is(err, framework.ErrNoAuth) {
		return err
	}
	path := refusingNode(err)
	if path == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), accessTime)
	defer cancel()
	client, failed := ConnectSilently(ctx, cmd)
	if failed != nil {
		return err
	}
	defer client.Close(ctx) //nolint:errcheck // the session ends by itself
	access, failed := ReadAccess(ctx, client, path)
	for errors.Is(failed, framework.ErrNoNode) && path != "/" {
		path, _ = znode.Split(path)
		access, failed = ReadAccess(ctx, client, path)
	}
	if errors.Is(failed, framework.ErrNoAuth) {
		return &permittedError{err, "; the ACL of " + path + " permits neither this nor to read it"}
	}
	if failed != nil || access.Lacks(framework.PermAll) == 0 {
		return err
	}
	return &permittedError{err, "; the ACL of " + access.Path + " has " + access.String()}
}

// permittedError is an error of missing permission that says which ACL refuses.
type permittedError struct {
	err  error
	says string
}

func (e *permittedError) Error() string { return e.err.Error() + e.says }

func (e *permittedError) Unwrap() error { return e.err }

// refusingNode is the node whose ACL has most likely refused an operation: the node of the
// innermost operation, or its directory if the operation was to create or delete the node.
func refusingNode(err error) string {
	var op, path string
	for one := (*framework.OpError)(nil); errors.As(err, &one); err = one.Err {
		op, path = one.Op, one.Path
	}
	if tx := (*framework.TxError)(nil); errors.As(err, &tx) {
		op, path = tx.Op, tx.Path
	}
	if (op == "create" || op == "delete") && path != "/" {
		path, _ = znode.Split(path)
	}
	return path
}
