package recipe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// WatchUntilGone reads a node, and reads it again after each change, until the node is gone or
// another node has its path. Then the error wraps framework.ErrNodeGone. A node whose Zxid is 0 may
// be replaced by another one between two reads.
//
// WatchUntilGone calls seen, unless it is nil, with what it has read. If that returns ErrAgain, it
// reads the node again at once. Any other error ends the watch, as does the end of ctx or of the
// session, or a refusal of the servers.
func WatchUntilGone(ctx context.Context, s *framework.Session, node primitives.Created,
	seen func(data []byte, stat framework.Stat) error) error {
	for {
		data, stat, w, err := s.WatchData(ctx, node.Path)
		if errors.Is(err, framework.ErrNoNode) {
			return nodeGone(node)
		}
		if err != nil {
			return err
		}
		switch {
		case node.Zxid != 0 && stat.Czxid != node.Zxid:
			err = nodeGone(node)
		case seen != nil:
			err = seen(data, stat)
		}
		if err != nil {
			w.Stop()
			if errors.Is(err, ErrAgain) {
				continue
			}
			return err
		}
		event, err := WaitForWatch(ctx, s, w)
		if err != nil {
			return err
		}
		if event.Kind == framework.NodeDeleted {
			return nodeGone(node)
		}
	}
}

func nodeGone(node primitives.Created) error {
	return fmt.Errorf("%w: %s", framework.ErrNodeGone, node.Path)
}

// WhileNodeExists returns a context that is done when a node is gone, when the servers refuse the
// watch on it, when the session ends, or when end is called. Its cause says which. The watch on the
// node begins after a delay.
//
// Use it for a node that only shows presence. A grant needs a Hold instead, because a dormant
// session may have expired unnoticed.
func WhileNodeExists(s *framework.Session, node primitives.Created,
	delay time.Duration) (exists context.Context, end context.CancelCauseFunc) {
	exists, end = context.WithCancelCause(s.Context())
	go func() {
		if Pause(exists, delay) == nil {
			end(WatchUntilGone(exists, s, node, nil))
		}
	}()
	return exists, end
}
