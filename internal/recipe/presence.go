package recipe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// WhileNodeExists returns a context that is done when a node is deleted, when isOwn returns false
// for it, when the servers refuse the watch on it, when the session ends, or when end is called.
// Its cause says which. The watch on the node begins after a delay.
//
// Use it for a node that only shows presence. A grant needs a Hold instead, because a dormant
// session may have expired unnoticed.
func WhileNodeExists(s *framework.Session, path string, isOwn func(data []byte, st framework.Stat) bool,
	delay time.Duration) (exists context.Context, end context.CancelCauseFunc) {
	exists, end = context.WithCancelCause(s.Context())
	go func() {
		if Pause(exists, delay) == nil {
			watchNode(exists, s, path, isOwn, end)
		}
	}()
	return exists, end
}

// watchNode ends a context when the node is deleted, when isOwn returns false for the node at its
// path, or when the servers refuse the watch.
func watchNode(exists context.Context, s *framework.Session, path string, isOwn func([]byte, framework.Stat) bool,
	end context.CancelCauseFunc) {
	for {
		data, st, w, err := s.WatchData(exists, path)
		if err == nil && !isOwn(data, st) {
			w.Stop()
			err = framework.ErrNoNode
		}
		if errors.Is(err, framework.ErrNoNode) {
			err = fmt.Errorf("%w: %s", framework.ErrNodeGone, path)
		}
		if err != nil {
			end(err)
			return
		}
		if _, err := WaitForWatch(exists, s, w); err != nil {
			return
		}
	}
}
