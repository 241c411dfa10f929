package barrier

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// readyName is the node of Apache Curator's DistributedDoubleBarrier that marks the beginning of a
// round.
const readyName = "ready"

// enterCurator enters by the algorithm of Apache Curator's DistributedDoubleBarrier.
func (b *storedBarrier) enterCurator(ctx, extended context.Context) (r *Round, err error) {
	nodeMayRemain := false
	err = recipe.OnSession(ctx, b.client, func(s *framework.Session) error {
		r, nodeMayRemain, err = b.enterCuratorOnSession(ctx, extended, s)
		return err
	})
	if err != nil && ctx.Err() != nil && nodeMayRemain {
		err = roundMayHaveBegun(err)
	}
	return r, err
}

// enterCuratorOnSession enters on one session. If it fails, it deletes the member's node, and waits
// extraTime at most for that: nodeMayRemain says that the deletion goes on in the background.
func (b *storedBarrier) enterCuratorOnSession(ctx, extended context.Context,
	s *framework.Session) (r *Round, nodeMayRemain bool, err error) {
	created, err := primitives.Of(s).CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: b.path, Name: uuid.NewString(), Plain: true, Unnumbered: true,
		Data: ownedRecord(b.client, memberKind).encode(),
	})
	if err != nil {
		return nil, false, err
	}
	node := created.Nodes[0].Path
	err = b.waitUntilReady(ctx, s)
	if err != nil && ctx.Err() != nil {
		if _, there := s.Exists(extended, znode.Join(b.path, readyName)); there == nil {
			err = nil
		}
	}
	if err == nil {
		var h primitives.Hold
		if h, err = primitives.Of(s).Hold(extended, created.Nodes[0]); err == nil {
			return &Round{hold: h, node: node, leaver: &curatorLeaver{b, s, node}}, false, nil
		}
	}
	gone := primitives.Of(s).Discard(nil, node)
	bounded, cancel := context.WithTimeout(extended, extraTime) // the servers may refuse the deletion
	defer cancel()
	select {
	case <-gone.Done():
		return nil, false, err
	case <-bounded.Done():
		return nil, true, err
	}
}

// waitUntilReady waits until the round has begun. If enough members are listed, it begins the
// round: it creates the ready node.
func (b *storedBarrier) waitUntilReady(ctx context.Context, s *framework.Session) error {
	ready := znode.Join(b.path, readyName)
	for {
		_, w, err := s.WatchExists(ctx, ready)
		if err == nil {
			w.Stop()
			return nil
		}
		if !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		names, _, err := s.Children(ctx, b.path)
		if err == nil && len(names) >= b.size {
			err = s.CreateIfMissing(ctx, ready, nil, framework.Persistent)
			if err == nil {
				w.Stop()
				return nil
			}
		}
		if err == nil {
			var event framework.Event // its kind counts, since the node may be gone again already
			if event, err = recipe.WaitForWatch(ctx, s, w); err == nil && event.Kind == framework.NodeCreated {
				return nil
			}
		}
		w.Stop()
		if err != nil {
			return err
		}
	}
}

// curatorLeaver leaves a barrier of Curator's layout.
type curatorLeaver struct {
	b    *storedBarrier
	s    *framework.Session
	node string
}

func (d *curatorLeaver) removeNode(ctx context.Context) error {
	ctx, cancel := d.b.client.CleanupContext(ctx)
	defer cancel()
	err := primitives.Of(d.s).Discard(nil, d.node).Wait(ctx)
	if errors.Is(err, framework.ErrSessionLost) {
		return nil // waitForOthers waits until the servers have deleted the session's nodes
	}
	return err
}

// waitForOthers waits until no member is left, and deletes the ready node.
func (d *curatorLeaver) waitForOthers(ctx context.Context) error {
	return recipe.OnSession(ctx, d.b.client, func(s *framework.Session) error {
		for {
			left, err := d.waitForLastMember(ctx, s)
			if err != nil {
				return err
			}
			if left == 0 {
				break
			}
		}
		return s.DeleteIfPresent(ctx, znode.Join(d.b.path, readyName))
	})
}

// waitForLastMember waits until the last member in the order of names is gone. It returns the
// number of members that it listed before the wait.
func (d *curatorLeaver) waitForLastMember(ctx context.Context, s *framework.Session) (int, error) {
	names, _, err := s.Children(ctx, d.b.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return 0, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == readyName })
	if len(names) == 0 {
		return 0, nil
	}
	last := primitives.Created{Path: znode.Join(d.b.path, slices.Max(names))}
	if err = recipe.WatchUntilGone(ctx, s, last, nil); errors.Is(err, framework.ErrNodeGone) {
		err = nil
	}
	return len(names), err
}
