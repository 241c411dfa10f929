// Package background counts what goes on in the background, so that a Close can wait for it.
package background

import "sync"

// Tasks are tasks in the background that end together. The zero value is ready. It is safe for concurrent use.
//
// A task may start others, even after Done was called: Done's channel is closed when all of them have ended.
type Tasks struct {
	mu      sync.Mutex
	running int
	closing bool
	ended   chan struct{}
}

// Start runs f in a goroutine. It returns false, and does not run f, once Done was called and all tasks have ended.
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

// Begin counts a task that ends with a call of End. It returns false once Done was called and all tasks have ended.
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

// Done returns a channel that is closed when all tasks have ended. From then on none begins.
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
