package unused

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// ErrChanged is returned for a leftover that was changed, used or created again after Find had read
// it. Delete has not deleted it, except for a part of a dropped queue: the next Find finds the
// rest, if the mark of the removal is still there.
var ErrChanged = errors.New("used or changed since it was found")

// ErrGone is returned for a leftover that the servers or another client have deleted.
var ErrGone = errors.New("deleted by the servers or another client")

// Delete deletes a leftover that Find has found. It deletes all nodes in one transaction, at the
// versions that Find has seen, or none. If an answer is lost, it reads the nodes again.
//
// A dropped queue is deleted in several transactions. Each of them requires the mark of its
// removal, and no version of the other nodes. An error may come after some of them.
//
// If the error wraps ErrChanged or framework.ErrNoAuth, the leftover stays, or the rest of a
// dropped queue. Other errors are ErrGone or that of ctx.
func Delete(ctx context.Context, client *framework.Client, l Leftover) error {
	if l.mark != "" {
		return failure.Wrap("clean", l.Path, deleteDropped(ctx, client, l))
	}
	sent := false
	err := recipe.OnSession(ctx, client, func(s *framework.Session) error {
		if err := s.Sync(ctx, l.Path); err != nil {
			return err
		}
		switch err := l.compare(ctx, s); {
		case sent && errors.Is(err, ErrGone):
			// the transaction whose answer was lost has deleted it, or another client has
			return nil
		case err != nil:
			return err
		}
		sent = true
		_, err := s.Multi(ctx, l.ops()...)
		if err = refusal(err); errors.Is(err, ErrChanged) && errors.Is(l.compare(ctx, s), ErrGone) {
			return ErrGone // since the comparison, such as by the servers, which delete empty containers
		}
		return err
	}, failure.IsTransient)
	return failure.Wrap("clean", l.Path, err)
}

// ops returns the operations that delete a leftover. They create and delete each node that was
// missing, which the servers refuse if the node exists now.
func (l Leftover) ops() (ops []framework.Op) {
	for _, path := range l.absent {
		ops = append(ops, framework.CreateOp(path, nil, framework.Persistent),
			framework.DeleteOp(path, framework.AnyVersion))
	}
	for _, path := range l.Nodes {
		ops = append(ops, framework.DeleteOp(path, l.seen[path].Version))
	}
	return ops
}

// compare reads a leftover's nodes again. It returns ErrGone or ErrChanged if they are not as Find
// has seen them. The transaction compares only versions, and a node that was created again can have
// the version of the former one.
func (l Leftover) compare(ctx context.Context, s *framework.Session) error {
	nodes, err := s.GetAll(ctx, l.Nodes...)
	if err != nil {
		return err
	}
	missing := 0
	for i, n := range nodes {
		was := l.seen[l.Nodes[i]]
		switch {
		case errors.Is(n.Err, framework.ErrNoNode):
			missing++
		case n.Err != nil:
			return n.Err
		case n.Stat.Czxid != was.Czxid || n.Stat.Mzxid != was.Mzxid ||
			n.Stat.Aversion != was.Aversion || n.Stat.Pzxid != was.Pzxid && !l.inner:
			return ErrChanged
		}
	}
	switch missing {
	case 0:
		return nil
	case len(nodes):
		return ErrGone
	}
	return ErrChanged
}

// refusal returns ErrChanged for the error of a transaction that the servers have refused because a
// node has changed, and any other error as it is.
func refusal(err error) error {
	for _, changed := range []error{framework.ErrNotEmpty, framework.ErrBadVersion, framework.ErrNodeExists,
		framework.ErrNoNode} {
		if errors.Is(err, changed) {
			return ErrChanged
		}
	}
	return err
}

// deletedAtOnce is how many nodes of a queue one transaction deletes.
const deletedAtOnce = 200

// deleteDropped finishes the removal of a queue, as its next user would. Each transaction checks
// the mark, which a queue that was created again does not have.
func deleteDropped(ctx context.Context, client *framework.Client, l Leftover) error {
	rest := len(l.Nodes) - 2 // the last transaction deletes the mark and the queue's node
	for some := range slices.Chunk(l.Nodes[:rest], deletedAtOnce) {
		ops := []framework.Op{framework.CheckOp(l.mark, l.seen[l.mark].Version)}
		for _, path := range some {
			ops = append(ops, framework.DeleteOp(path, framework.AnyVersion))
		}
		if err := deleteTogether(ctx, client, some[0], ops); err != nil {
			return err
		}
	}
	return deleteTogether(ctx, client, l.mark, []framework.Op{
		framework.DeleteOp(l.mark, l.seen[l.mark].Version), framework.DeleteOp(l.Path, l.seen[l.Path].Version),
	})
}

// deleteTogether sends a transaction that deletes several nodes. If the answer is lost, it looks
// whether one of them is gone, and sends the transaction again if not.
func deleteTogether(ctx context.Context, client *framework.Client, one string, ops []framework.Op) error {
	sent := false
	return recipe.OnSession(ctx, client, func(s *framework.Session) error {
		if sent {
			if err := s.Sync(ctx, one); err != nil {
				return err
			}
			_, err := s.Exists(ctx, one)
			if errors.Is(err, framework.ErrNoNode) { // the transaction has deleted it, or another client has
				return nil
			}
			if err != nil {
				return err
			}
		}
		sent = true
		_, err := s.Multi(ctx, ops...)
		return refusal(err)
	}, failure.IsTransient)
}

// EnsembleTime returns the time of the ensemble's leader. For that it creates an ephemeral node
// below dir and deletes it again. The time is early by one round trip at most.
func EnsembleTime(ctx context.Context, client *framework.Client, dir string) (now time.Time, err error) {
	node := znode.Join(dir, "clean-"+uuid.NewString())
	if err := client.Create(ctx, node, nil, framework.Ephemeral); err != nil &&
		!errors.Is(err, framework.ErrNodeExists) {
		return time.Time{}, fmt.Errorf("read the servers' time: %w", err)
	}
	stat, err := client.Exists(ctx, node)
	if err == nil {
		err = client.DeleteIfPresent(ctx, node)
	}
	return stat.Ctime, err
}
