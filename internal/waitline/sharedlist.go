package waitline

import (
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// sharedList lists one directory. Callers that wait at the same time share one list.
type sharedList struct {
	s   *framework.Session
	dir string

	mu      sync.Mutex
	wanted  *pendingList // the list that callers wait for and that has not begun, or nil
	running bool         // a goroutine runs answerRequests
}

// pendingList is one list for any number of callers.
type pendingList struct {
	done  chan struct{}
	names []string
	err   error
}

// listChildren returns the directory's children, or failure.Ended(ctx) if ctx ends first. The list
// begins after the call: a list that began before may be too old.
func (sl *sharedList) listChildren(ctx context.Context) ([]string, error) {
	l := sl.requestList()
	select {
	case <-l.done:
		return l.names, l.err
	case <-ctx.Done():
		return nil, failure.Ended(ctx)
	}
}

// requestList returns the list that begins next, and starts the goroutine if none runs.
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

// answerRequests lists the directory until no caller waits.
func (sl *sharedList) answerRequests() {
	for l := sl.nextRequest(); l != nil; l = sl.nextRequest() {
		l.names, _, l.err = sl.s.Children(sl.s.Context(), sl.dir)
		close(l.done)
	}
}

// nextRequest returns the list to begin now, or nil if the goroutine is to end.
func (sl *sharedList) nextRequest() *pendingList {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	l := sl.wanted
	sl.wanted, sl.running = nil, l != nil
	return l
}
