package link

import (
	"io"
	"sync"
)

// outbox writes what is put into it from a goroutine of its own: frames that come while a
// write is under way leave together in the next one.
type outbox struct {
	mu      sync.Mutex
	wake    sync.Cond
	queued  []byte
	stopped bool
}

// start begins to write to w; fail is called when a write fails.
func (o *outbox) start(w io.Writer, fail func(error)) {
	o.wake.L = &o.mu
	go o.run(w, fail)
}

// put queues one frame, which may be reused afterwards.
func (o *outbox) put(frame []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return ErrClosed
	}
	o.queued = append(o.queued, frame...)
	o.wake.Signal()
	return nil
}

func (o *outbox) stop() {
	o.mu.Lock()
	o.stopped = true
	o.wake.Signal()
	o.mu.Unlock()
}

func (o *outbox) run(w io.Writer, fail func(error)) {
	var spare []byte
	for {
		b, ok := o.take(spare)
		if !ok {
			return
		}
		if _, err := w.Write(b); err != nil {
			fail(err)
			return
		}
		spare = reusable(b)
	}
}

// take waits for queued bytes and swaps them against an empty buffer.
func (o *outbox) take(spare []byte) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queued) == 0 && !o.stopped {
		o.wake.Wait()
	}
	if o.stopped {
		return nil, false
	}
	b := o.queued
	o.queued = spare[:0]
	return b, true
}

// reusable lets go of a buffer that a burst has blown up.
func reusable(b []byte) []byte {
	const keep = 64 << 10
	if cap(b) > keep {
		return nil
	}
	return b
}
