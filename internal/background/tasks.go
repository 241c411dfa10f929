// Package background counts tasks that run in the background, so that a Close can wait for them.
package background

import "sync"

// Tasks are tasks that run in the background. The zero value has none. It is safe for concurrent
// use.
//
// A task may start more tasks, even after Done was called. Done's channel is closed when all of
// them have ended.
type Tasks struct {
	mu      sync.Mutex
	running int
	closing bool
	ended   chan struct{}
}

// Start runs f in a goroutine. If Done was called and all tasks have ended, it returns false and
// does not run f.
func (t *Tasks) Start(f func()) bool {
	if !t.Begin() {
		return false
	}
	go func() {
		defer t.End()
		f()
	}()
	return true
}

// Begin counts a task that will end with a call of End. If Done was called and all tasks have
// ended, it returns false and counts no task.
func (t *Tasks) Begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing && t.running == 0 {
		return false
	}
	t.running++
	return true
}

// End ends a task that Begin has counted.
func (t *Tasks) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.closing && t.running == 0 {
		close(t.ended)
	}
}

// Done returns a channel that is closed when all tasks have ended. After that, Begin and Start
// return false.
func (t *Tasks) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closing {
		t.closing, t.ended = true, make(chan struct{})
		if t.running == 0 {
			close(t.ended)
		}
	}
	return t.ended
}
