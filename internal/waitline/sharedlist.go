package waitline

import (
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// sharedList lists one directory once for all callers that wait for a list.
type sharedList struct {
	s   *framework.Session
	dir string

	mu      sync.Mutex
	wanted  *listing // requested, not begun
	running bool
}

// listing is one list, for any number of callers.
type listing struct {
	done  chan struct{}
	names []string
	err   error
}

// list returns the directory's children. The list begins after the call: one that is under way when list is called may be too old.
func (sl *sharedList) list(ctx context.Context) ([]string, error) {
	l := sl.request()
	select {
	case <-l.done:
		return l.names, l.err
	case <-ctx.Done():
		return nil, framework.Ended(ctx)
	}
}

func (sl *sharedList) request() *listing {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.wanted == nil {
		sl.wanted = &listing{done: make(chan struct{})}
	}
	if !sl.running {
		sl.running = true
		go sl.answerRequests()
	}
	return sl.wanted
}

// answerRequests lists until no request is left.
func (sl *sharedList) answerRequests() {
	for l := sl.nextRequest(); l != nil; l = sl.nextRequest() {
		l.names, _, l.err = sl.s.Children(sl.s.Context(), sl.dir)
		close(l.done)
	}
}

func (sl *sharedList) nextRequest() *listing {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	l := sl.wanted
	sl.wanted, sl.running = nil, l != nil
	return l
}
