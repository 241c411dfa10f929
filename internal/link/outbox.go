package link

import (
	"io"
	"sync"
)

// outbox writes frames in the order they are put. A frame put while nothing else is under way is
// written at once, by the caller; frames that come faster than they are answered leave together, from
// a goroutine of the outbox's own. The first saves a switch of goroutines, the second system calls.
type outbox struct {
	w    io.Writer
	fail func(error)

	mu      sync.Mutex
	wake    sync.Cond
	queued  []byte
	writing bool
	stopped bool
}

// start begins to write to w; fail is called when a write fails.
func (o *outbox) start(w io.Writer, fail func(error)) {
	o.w, o.fail = w, fail
	o.wake.L = &o.mu
	go o.run()
}

// put writes or queues one frame, which may be reused afterwards. alone says that no other request is
// under way.
func (o *outbox) put(frame []byte, alone bool) error {
	o.mu.Lock()
	if o.stopped {
		o.mu.Unlock()
		return ErrClosed
	}
	if !alone || o.writing || len(o.queued) > 0 {
		defer o.mu.Unlock()
		o.queued = append(o.queued, frame...)
		o.wake.Signal()
		return nil
	}
	o.writing = true
	o.mu.Unlock()
	_, err := o.w.Write(frame)
	o.wrote(err)
	return err
}

// wrote ends one write.
func (o *outbox) wrote(err error) {
	o.mu.Lock()
	o.writing = false
	if len(o.queued) > 0 {
		o.wake.Signal()
	}
	o.mu.Unlock()
	if err != nil {
		o.fail(err)
	}
}

func (o *outbox) stop() {
	o.mu.Lock()
	o.stopped = true
	o.wake.Signal()
	o.mu.Unlock()
}

func (o *outbox) run() {
	var spare []byte
	for {
		b, ok := o.take(spare)
		if !ok {
			return
		}
		_, err := o.w.Write(b)
		o.wrote(err)
		if err != nil {
			return
		}
		spare = reusable(b)
	}
}

// take waits for queued bytes and swaps them against an empty buffer.
func (o *outbox) take(spare []byte) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for (len(o.queued) == 0 || o.writing) && !o.stopped {
		o.wake.Wait()
	}
	if o.stopped {
		return nil, false
	}
	b := o.queued
	o.queued, o.writing = spare[:0], true
	return b, true
}

// keptBuffer is how large a buffer may be that is kept for later.
const keptBuffer = 64 << 10

// reusable lets go of a buffer that a burst has blown up.
func reusable(b []byte) []byte {
	if cap(b) > keptBuffer {
		return nil
	}
	return b
}
