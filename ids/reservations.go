package ids

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// reservations runs the reservations of a Sequence or a Worker in the background, one at a time.
// A Sequence and a Worker embed it.
type reservations struct {
	tel    reserveTelemetry
	ctx    context.Context // of each reservation; done after Close
	cancel context.CancelFunc
	tasks  background.Tasks

	mu      sync.Mutex
	pending *pendingReservation // under way, or nil
	closed  bool
}

// pendingReservation is a reservation under way. err is valid after done is closed.
type pendingReservation struct {
	done chan struct{}
	err  error
}

// begin begins a reservation, and returns it. If one is under way, begin returns that. It calls
// reserve without mu, and then store with mu and with reserve's error, or framework.ErrClosed after
// Close. Guarded by mu.
func (r *reservations) begin(reserve func() error, store func(error)) *pendingReservation {
	if r.pending != nil {
		return r.pending
	}
	pending := &pendingReservation{done: make(chan struct{})}
	r.pending = pending
	r.tasks.Start(func() {
		r.tel.countReservation(r.finish(pending, reserve(), store))
		close(pending.done)
	})
	return pending
}

// finish stores the outcome of a reservation, and returns it.
func (r *reservations) finish(pending *pendingReservation, err error, store func(error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		err = errClosed
	}
	store(err)
	pending.err, r.pending = err, nil
	return err
}

// waitFor waits for the end of a reservation, and returns its error. When ctx ends first, it
// returns failure.Ended(ctx).
func (r *reservations) waitFor(ctx context.Context, pending *pendingReservation) (err error) {
	began := time.Now()
	defer func() { r.tel.recordWait(began, err) }()
	select {
	case <-pending.done:
		return pending.err
	case <-ctx.Done():
		return failure.Ended(ctx)
	}
}
