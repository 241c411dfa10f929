package election

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// watchNames lists and watches a directory. A missing directory is empty, and watched for its
// creation.
func watchNames(ctx context.Context, s *framework.Session, dir string) ([]string, *framework.Watch, error) {
	for {
		names, _, w, err := s.WatchChildren(ctx, dir)
		if !errors.Is(err, framework.ErrNoNode) {
			return names, w, err
		}
		if w, err = watchMissing(ctx, s, dir); w != nil || err != nil {
			return nil, w, err
		}
	}
}

// watchData reads and watches a node. A missing node has no data, and is watched for its creation.
func watchData(ctx context.Context, s *framework.Session, path string) ([]byte, *framework.Watch, error) {
	for {
		data, _, w, err := s.WatchData(ctx, path)
		if !errors.Is(err, framework.ErrNoNode) {
			return data, w, err
		}
		if w, err = watchMissing(ctx, s, path); w != nil || err != nil {
			return nil, w, err
		}
	}
}

// watchMissing watches for a node's creation. It returns no watch if the node exists by now.
func watchMissing(ctx context.Context, s *framework.Session, path string) (*framework.Watch, error) {
	_, w, err := s.WatchExists(ctx, path)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return w, nil
	case err != nil:
		return nil, err
	}
	w.Stop()
	return nil, nil
}
