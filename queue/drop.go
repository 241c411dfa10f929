package queue

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// dropQueue marks the record and removes the markers of all writers in one transaction: writers
// make no markers while the mark is there, so no put succeeds after it. Then dropQueue removes
// everything. All removals check the node of the mark, so they cannot reach a queue that was made
// anew meanwhile.
func (st *store) dropQueue(ctx context.Context) error {
	for marked := false; ; {
		s, err := st.client.Session(ctx)
		if err != nil {
			return err
		}
		if err := s.Sync(ctx, st.nodes.path); err != nil {
			return err
		}
		data, stat, err := s.Get(ctx, st.nodes.path)
		if errors.Is(err, framework.ErrNoNode) || err == nil && len(data) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := decodeRecord(data)
		if err != nil {
			return err
		}
		if !r.Dropped {
			if marked {
				return nil // another client has finished the removal and made the queue anew
			}
			r.Dropped = true
			if data, err = r.encode(); err != nil {
				return err
			}
			var ops []framework.Op
			if ops, err = st.removeMarkersOps(ctx, s); err != nil {
				return err
			}
			_, err = s.Multi(ctx, append(ops, framework.SetOp(st.nodes.path, data, stat.Version),
				framework.CreateOp(st.nodes.childPath(droppedNode), nil, framework.Persistent))...)
		}
		if err == nil {
			marked = true
			err = st.finishDrop(ctx, s)
		}
		if err == nil || !errors.Is(err, errConflict) && !failure.IsTransient(err) && !recipe.IsConflict(err) {
			return err
		}
	}
}

// removeMarkersOps remove the markers of up to 300 writers.
func (st *store) removeMarkersOps(ctx context.Context, s *framework.Session) (ops []framework.Op, err error) {
	writers, _, err := s.Children(ctx, st.nodes.childPath(writersDir))
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	for _, name := range writers[:min(len(writers), 300)] {
		marker := znode.Join(st.nodes.childPath(writersDir), name)
		children, _, err := s.Children(ctx, marker)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			ops = append(ops, framework.DeleteOp(znode.Join(marker, child), framework.AnyVersion))
		}
		ops = append(ops, framework.DeleteOp(marker, framework.AnyVersion))
	}
	return ops, nil
}

// finishDrop removes a queue after its record was marked, the markers of writers first. It returns
// errConflict if other clients have interfered.
func (st *store) finishDrop(ctx context.Context, s *framework.Session) error {
	st.stale.Store(true)
	names, _, err := s.Children(ctx, st.nodes.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	mark := st.nodes.childPath(droppedNode)
	for _, name := range append([]string{writersDir}, names...) {
		if name == droppedNode {
			continue
		}
		if err = removeTree(ctx, s, znode.Join(st.nodes.path, name),
			framework.CheckOp(mark, framework.AnyVersion)); err != nil {
			break
		}
	}
	if err == nil {
		_, err = s.Multi(ctx, framework.DeleteOp(mark, framework.AnyVersion),
			framework.DeleteOp(st.nodes.path, framework.AnyVersion))
	}
	if recipe.IsConflict(err) {
		return errConflict
	}
	return err
}
