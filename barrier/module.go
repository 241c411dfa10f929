package barrier

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
)

// Module provides a *Factory, which makes barriers on the application's client. Places and rounds end with
// the client at the latest: whatever takes the factory is stopped before the client is closed.
var Module = fx.Module("lockstep.barrier", fx.Provide(NewFactory))

// Factory makes barriers on one client.
type Factory struct{ client *framework.Client }

// NewFactory returns a factory on client.
func NewFactory(client *framework.Client) *Factory { return &Factory{client} }

// Gate returns the gate at path; see NewGate.
func (f *Factory) Gate(path string) *Gate { return NewGate(f.client, path) }

// Double returns a double barrier of so many members at path; see NewDouble.
func (f *Factory) Double(path string, members int, opts ...Option) *Double {
	return NewDouble(f.client, path, members, opts...)
}

// Latch returns a latch of so many counts at path; see NewLatch.
func (f *Factory) Latch(path string, counts int) *Latch { return NewLatch(f.client, path, counts) }
