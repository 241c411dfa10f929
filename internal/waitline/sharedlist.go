package waitline

import (
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// sharedList lists one directory once for all callers that wait for a list.
type sharedList struct {
	s   *framework.Session
	dir string

	mu      sync.Mutex
	wanted  *pendingList // requested, not begun
	running bool
}

// pendingList is one list, for any number of callers.
type pendingList struct {
	done  chan struct{}
	names []string
	err   error
}

// listChildren returns the directory's children. The list begins after the call: a list that is under way at the call may be too old.
func (sl *sharedList) listChildren(ctx context.Context) ([]string, error) {
	l := sl.requestList()
	select {
	case <-l.done:
		return l.names, l.err
	case <-ctx.Done():
		return nil, failure.Ended(ctx)
	}
}

func (sl *sharedList) requestList() *pendingList {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.wanted == nil {
		sl.wanted = &pendingList{done: make(chan struct{})}
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

func (sl *sharedList) nextRequest() *pendingList {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	l := sl.wanted
	sl.wanted, sl.running = nil, l != nil
	return l
}
