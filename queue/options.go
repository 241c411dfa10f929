package queue

import (
	"fmt"
	"time"
)

// Order is what a queue promises about the order of deliveries. It is stored with the queue.
type Order string

const (
	// Parallel: items are claimed in the order of their puts, by any number of consumers at once. A claim's read and
	// hand-out take their own time, so handlers may start a few items out of order.
	Parallel Order = "parallel"
	// Strict: one consumer at a time, under the queue's lock; deliveries start in the order of the puts, and
	// the next consumer goes on where the last one acknowledged.
	Strict Order = "strict"
)

func (o Order) known() bool { return o == Parallel || o == Strict }

// Defaults of the options.
const (
	DefaultWindow = 16
	DefaultLinger = 5 * time.Second
)

// Option changes how a Queue works. Its error is returned by every call.
type Option func(*core) error

// WithOrder says which order the queue keeps. Default Parallel. All who use the queue must say the same.
func WithOrder(o Order) Option {
	return func(q *core) error {
		if !o.known() {
			return fmt.Errorf("%w: WithOrder: %q is neither %q nor %q", ErrOption, o, Parallel, Strict)
		}
		q.record.Order = o
		return nil
	}
}

// WithWindow bounds the deliveries that this Queue has open at once: claimed, handed out or not, and neither
// acknowledged nor given back. It is what a crash repeats. Default 16 in a parallel queue, 1 in a strict one.
func WithWindow(n int) Option {
	return func(q *core) error {
		if n <= 0 {
			return fmt.Errorf("%w: WithWindow: %d, at least 1", ErrOption, n)
		}
		q.window = n
		return nil
	}
}

// WithPrefetch lets this Queue claim up to n items ahead of the calls of Take, within the window, so that the
// next Take need not wait for the servers. Other consumers do not get these meanwhile. Default 0.
func WithPrefetch(n int) Option {
	return func(q *core) error {
		if n < 0 {
			return fmt.Errorf("%w: WithPrefetch: %d is negative", ErrOption, n)
		}
		q.prefetch = n
		return nil
	}
}

// WithLinger says how long this Queue goes on being a consumer when nobody calls Take any more and no delivery is
// open. Then it gives back what it has claimed ahead, and in a strict queue the lock. Default 5 s.
func WithLinger(d time.Duration) Option {
	return func(q *core) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithLinger: %v, it must be more than 0", ErrOption, d)
		}
		q.linger = d
		return nil
	}
}

// defaultBound is how many items a segment takes before the next one is opened: a list of it has about 60 kB.
const defaultBound = 4000

// MaxPriority is the highest priority of an item; the lowest, and default, is 0.
const MaxPriority = 9

// putting is how one item is put.
type putting struct{ header header }

// PutOption changes how an item is put.
type PutOption func(*putting) error
