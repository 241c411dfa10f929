package ids

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// Factory makes sequences, workers, counters and names on one client.
type Factory struct{ client *framework.Client }

// NewFactory returns a factory on client.
func NewFactory(client *framework.Client) *Factory { return &Factory{client} }

// Sequence returns the sequence at path; see NewSequence.
func (f *Factory) Sequence(path string, opts ...SequenceOption) *Sequence {
	return NewSequence(f.client, path, opts...)
}

// Worker returns a worker of the path; see NewWorker.
func (f *Factory) Worker(path string, slots int, opts ...WorkerOption) *Worker {
	return NewWorker(f.client, path, slots, opts...)
}

// Counter returns the counter at path; see NewCounter.
func (f *Factory) Counter(path string, opts ...CounterOption) *Counter {
	return NewCounter(f.client, path, opts...)
}

// Name makes a name that is unique in a directory; see NewName.
func (f *Factory) Name(ctx context.Context, dir, prefix string, data []byte) (Name, error) {
	return NewName(ctx, f.client, dir, prefix, data)
}
