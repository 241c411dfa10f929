package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
)

// Factory makes queues on one client, and closes them together; see Make.
type Factory struct {
	client *framework.Client

	mu     sync.Mutex
	closes []func(context.Context) error
}

// NewFactory returns a factory on client. Close the factory, or each of the queues that it makes.
func NewFactory(client *framework.Client) *Factory { return &Factory{client: client} }

// Make returns a queue of the factory's client; see New.
func Make[T any](f *Factory, path string, values codec.Codec[T], opts ...Option) *Queue[T] {
	q := New(f.client, path, values, opts...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closes = append(f.closes, q.Close)
	return q
}

// Close closes all queues that the factory has made so far, at the same time; see Queue.Close. It
// joins their errors.
func (f *Factory) Close(ctx context.Context) error {
	f.mu.Lock()
	closes := f.closes
	f.mu.Unlock()
	errs := make([]error, len(closes))
	var all sync.WaitGroup
	for i, close := range closes {
		all.Go(func() { errs[i] = close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
