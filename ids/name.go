package ids

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Name is a name that no other call of MakeName on the directory has returned.
type Name struct {
	// Name is the prefix, followed by a number of ten digits, such as "worker-0000000007".
	Name string
	// Path is the path of the name's node. Delete the node when the name is no longer used;
	// MakeName does not give the name again.
	Path string
}

// MakeName returns a name that is unique in a directory, and stores data in the name's node.
//
//	<dir>                              persistent: the servers count its children
//	<dir>/_c_<uuid>-<prefix><number>   persistent: the name
//
// Guarantee: no two calls on one directory return the same name, also when replies and sessions
// were lost. After a lost reply the call finds the node that it has created, and returns that
// node's name. Numbers rise in the order in which the nodes were created.
//
// Not guaranteed: that there are no gaps. That a call creates one node only: if the session is lost
// while a create has no answer, and the servers apply that create only after the call has looked
// for its node on the next session, a second node stays, whose name no call returns. That names are
// unique after the directory was deleted: the servers count from 0 again then. MakeName creates the
// directory as a persistent node. If you create it yourself, do not make it a container, which the
// servers delete when it is empty.
//
// The error is that of ctx or wraps ErrExhausted after 2^31 names, framework.ErrInvalid,
// framework.ErrClosed or framework.ErrNoAuth. A node without a user may stay after an error that
// also wraps framework.ErrOutcomeUnknown, and after ErrExhausted if the error also wraps another
// one, with which the delete of the node has failed.
func MakeName(ctx context.Context, client *framework.Client, dir, prefix string, data []byte) (Name, error) {
	if err := recipe.CheckClientAndPath(client, dir, "a name"); err != nil {
		return Name{}, failure.Wrap("make a name in", dir, err)
	}
	if strings.Contains(prefix, "/") {
		return Name{}, failure.Wrap("make a name in", dir,
			fmt.Errorf("%w: the prefix %q has a slash", failure.ErrInvalidPath, prefix))
	}
	n := nameMaker{client: client, dir: dir, prefix: prefix,
		node: znode.Join(dir, znode.ProtectedPrefix+uuid.NewString()+"-"+prefix), data: data}
	err := recipe.OnSession(ctx, client, func(s *framework.Session) error { return n.makeName(ctx, s) },
		failure.IsTransient, isUnknown)
	if err != nil && n.unknown && !isUnknown(err) {
		err = fmt.Errorf("%w: %w", framework.ErrOutcomeUnknown, err)
	}
	if errors.Is(err, ErrExhausted) {
		err = errors.Join(err, client.DeleteIfPresent(ctx, n.name.Path))
		n.name = Name{}
	}
	return n.name, failure.Wrap("make a name in", dir, err)
}

// nameMaker is one call of MakeName.
type nameMaker struct {
	client      *framework.Client
	dir, prefix string
	node        string // the path of the name's node without the number; its UUID belongs to this call
	data        []byte
	unknown     bool // a create has no answer: the node may exist
	name        Name
}

// makeName creates the node, or finds the one of a create without an answer by its UUID.
func (n *nameMaker) makeName(ctx context.Context, s *framework.Session) error {
	if n.unknown {
		path, err := n.findByUUID(ctx, s)
		if err != nil {
			return err
		}
		n.unknown = false
		if path != "" {
			return n.takeName(path)
		}
	}
	rs, err := s.Multi(ctx, framework.CreateOp(n.node, n.data, framework.PersistentSequential))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		above, _ := znode.Split(n.dir)
		if err := s.MakeDirs(ctx, above); err != nil {
			return err
		}
		if err := s.CreateIfMissing(ctx, n.dir, nil, framework.Persistent); err != nil {
			return err
		}
		return recipe.ErrAgain
	case err != nil:
		n.unknown = isUnknown(err)
		return err
	}
	return n.takeName(rs[0].Path)
}

// findByUUID returns the path of the node that this call has created, or "". It reads after a sync.
func (n *nameMaker) findByUUID(ctx context.Context, s *framework.Session) (string, error) {
	if err := s.Sync(ctx, n.dir); err != nil {
		return "", err
	}
	names, _, err := s.Children(ctx, n.dir)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return "", err
	}
	for _, name := range names {
		if path := znode.Join(n.dir, name); strings.HasPrefix(path, n.node) {
			return path, nil
		}
	}
	return "", nil
}

// takeName makes the node at path the result. After 2^31 names the number is negative: then
// takeName returns ErrExhausted, too.
func (n *nameMaker) takeName(path string) error {
	number := strings.TrimPrefix(path, n.node)
	n.name = Name{n.prefix + number, path}
	if strings.HasPrefix(number, "-") {
		return fmt.Errorf("%w: %s counts no further than 2147483647", ErrExhausted, n.dir)
	}
	return nil
}
