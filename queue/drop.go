package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// dropQueue marks the record and removes the markers of all writers in one transaction: writers
// make no markers while the mark is there, so no put succeeds after it. Then dropQueue removes
// everything. All removals check the node of the mark, so they cannot reach a queue that was made
// anew meanwhile.
func (store *store) dropQueue(ctx context.Context) error {
	for marked := false; ; {
		s, err := store.client.Session(ctx)
		if err != nil {
			return err
		}
		if err := s.Sync(ctx, store.nodes.Path); err != nil {
			return err
		}
		data, stat, err := s.Get(ctx, store.nodes.Path)
		if errors.Is(err, framework.ErrNoNode) || err == nil && len(data) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := queuelayout.DecodeRecord(data)
		if err != nil {
			return err
		}
		if !r.Dropped {
			if marked {
				return nil // another client has finished the removal and made the queue anew
			}
			r.Dropped = true
			if data, err = r.Encode(); err != nil {
				return err
			}
			var ops []framework.Op
			if ops, err = store.removeMarkersOps(ctx, s); err != nil {
				return err
			}
			_, err = s.Multi(ctx, append(ops, framework.SetOp(store.nodes.Path, data, stat.Version),
				framework.CreateOp(store.nodes.DroppedNode, nil, framework.Persistent))...)
		}
		if err == nil {
			marked = true
			err = store.finishDrop(ctx, s)
		}
		if err == nil || !errors.Is(err, errConflict) && !failure.IsTransient(err) && !recipe.IsConflict(err) {
			return err
		}
	}
}

// removeMarkersOps remove the markers of up to 300 writers.
func (store *store) removeMarkersOps(ctx context.Context, s *framework.Session) (ops []framework.Op, err error) {
	writers, _, err := s.Children(ctx, store.nodes.WritersDir)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	for _, name := range writers[:min(len(writers), 300)] {
		marker := znode.Join(store.nodes.WritersDir, name)
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
func (store *store) finishDrop(ctx context.Context, s *framework.Session) error {
	store.stale.Store(true)
	names, _, err := s.Children(ctx, store.nodes.Path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	mark := store.nodes.DroppedNode
	parts := []string{store.nodes.WritersDir}
	for _, name := range names {
		parts = append(parts, znode.Join(store.nodes.Path, name))
	}
	for _, part := range parts {
		if part == mark {
			continue
		}
		if err = removeTree(ctx, s, part, framework.CheckOp(mark, framework.AnyVersion)); err != nil {
			break
		}
	}
	if err == nil {
		_, err = s.Multi(ctx, framework.DeleteOp(mark, framework.AnyVersion),
			framework.DeleteOp(store.nodes.Path, framework.AnyVersion))
	}
	if recipe.IsConflict(err) {
		return errConflict
	}
	return err
}

// removeTree deletes a node and all nodes below. Each of its transactions also contains the
// operations of with.
func removeTree(ctx context.Context, s *framework.Session, path string, with ...framework.Op) error {
	names, _, err := s.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for some := range slices.Chunk(names, 500) {
		ops := slices.Clone(with)
		for _, name := range some {
			ops = append(ops, framework.DeleteOp(znode.Join(path, name), framework.AnyVersion))
		}
		if _, err := s.Multi(ctx, ops...); err != nil { // some have children, or are gone
			for _, name := range some {
				if err := removeTree(ctx, s, znode.Join(path, name), with...); err != nil {
					return err
				}
			}
		}
	}
	_, err = s.Multi(ctx, append(slices.Clone(with), framework.DeleteOp(path, framework.AnyVersion))...)
	var refused *framework.TxError
	if err == nil || errors.As(err, &refused) && refused.Path == path && errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return fmt.Errorf("remove: %w", err)
}
