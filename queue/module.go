package queue

import (
	"context"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
)

// Module provides a *Factory of queues on the application's client. Queues made with it are closed when the application stops, before
// the client is.
var Module = fx.Module("lockstep.queue", fx.Provide(provide))

// Factory makes queues on one client; see Make.
type Factory struct {
	client *framework.Client
	closer func(close func(context.Context) error)
}

// NewFactory returns a factory on client. Close the queues that it makes.
func NewFactory(client *framework.Client) *Factory {
	return &Factory{client, func(func(context.Context) error) {}}
}

// Make returns a queue of the factory's client; see New.
func Make[T any](f *Factory, path string, codec Codec[T], opts ...Option) *Queue[T] {
	q := New(f.client, path, codec, opts...)
	f.closer(q.Close)
	return q
}

func provide(lc fx.Lifecycle, client *framework.Client) *Factory {
	return &Factory{client, func(close func(context.Context) error) { lc.Append(fx.StopHook(close)) }}
}
