package recipe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// WhileNodeExists returns a context that is done when a node is gone, or is not the caller's own any more, or its session has ended, or end is called; its cause
// says why. After a delay it keeps a watch on the node. It is for what is only present: a dormant session may have expired, so what is granted needs a Hold.
func WhileNodeExists(s *framework.Session, path string, isOwn func(data []byte, st framework.Stat) bool, delay time.Duration) (exists context.Context, end context.CancelCauseFunc) {
	exists, end = context.WithCancelCause(s.Context())
	go func() {
		if Pause(exists, delay) == nil {
			watchNode(exists, s, path, isOwn, end)
		}
	}()
	return exists, end
}

// watchNode ends a context when the node is gone, or is another node of the same name.
func watchNode(exists context.Context, s *framework.Session, path string, isOwn func([]byte, framework.Stat) bool, end context.CancelCauseFunc) {
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
