package barrier

import "github.com/lockstep-go/lockstep/framework"

// Factory makes barriers on one client.
type Factory struct{ client *framework.Client }

// NewFactory returns a factory on client.
func NewFactory(client *framework.Client) *Factory { return &Factory{client} }

// Gate returns the gate at path; see NewGate.
func (f *Factory) Gate(path string) *Gate { return NewGate(f.client, path) }

// DoubleBarrier returns a double barrier of so many members at path; see NewDoubleBarrier.
func (f *Factory) DoubleBarrier(path string, members int, opts ...Option) *DoubleBarrier {
	return NewDoubleBarrier(f.client, path, members, opts...)
}

// Latch returns a latch of so many counts at path; see NewLatch.
func (f *Factory) Latch(path string, counts int) *Latch { return NewLatch(f.client, path, counts) }
