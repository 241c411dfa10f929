package queue

import "sync"

// taskGroup counts goroutines, and other work that has to end before its owner does.
type taskGroup struct {
	mu      sync.Mutex
	n       int
	closing bool
	ended   chan struct{}
}

// start runs f in the background. It returns false if the group has ended.
func (t *taskGroup) start(f func()) bool {
	if !t.begin() {
		return false
	}
	go func() {
		defer t.finish()
		f()
	}()
	return true
}

// begin counts a task that ends with finish. It returns false if the group has ended.
func (t *taskGroup) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing && t.n == 0 {
		return false
	}
	t.n++
	return true
}

func (t *taskGroup) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.closing && t.n == 0 {
		close(t.ended)
	}
}

// done returns a channel that is closed when all tasks have ended, and those that they start. Then the group has ended.
func (t *taskGroup) done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closing {
		t.closing, t.ended = true, make(chan struct{})
		if t.n == 0 {
			close(t.ended)
		}
	}
	return t.ended
}
