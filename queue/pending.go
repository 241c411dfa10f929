package queue

import (
	"context"

	"github.com/lockstep-go/lockstep/internal/failure"
)

// Pending is a put, or an acknowledgement, that is on its way.
type Pending struct {
	done chan struct{}
	err  error
}

func newPending() *Pending { return &Pending{done: make(chan struct{})} }

func (p *Pending) finish(err error) {
	p.err = err
	close(p.done)
}

// Done is closed when the outcome is known.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait returns the outcome. If ctx ends first it returns the end of ctx, and the put or
// acknowledgement continues.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return failure.Ended(ctx)
	}
}
