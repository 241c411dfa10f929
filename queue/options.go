package queue

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
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
	DefaultMaxInFlight   = 16
	DefaultIdleTimeout   = 5 * time.Second
	DefaultPrefetchBytes = 8 << 20
	DefaultBacklog       = 64 << 20
)

// Option changes how a Queue works. Its error is returned by every call.
type Option func(*engine) error

// WithOrder says which order the queue keeps. Default: as it is stored; Parallel if the queue is made now. Another
// order than the stored one is refused with ErrMismatch.
func WithOrder(o Order) Option {
	return func(q *engine) error {
		if !o.known() {
			return fmt.Errorf("%w: WithOrder: %q is neither %q nor %q", ErrOption, o, Parallel, Strict)
		}
		q.record.Order = o
		return nil
	}
}

// WithMaxInFlight bounds the deliveries that this Queue has open at once: claimed, handed out or not, and neither
// acknowledged nor given back. It is what a crash repeats. Default 16 in a parallel queue, 1 in a strict one.
func WithMaxInFlight(n int) Option {
	return func(q *engine) error {
		if n <= 0 {
			return fmt.Errorf("%w: WithMaxInFlight: %d, at least 1", ErrOption, n)
		}
		q.window = n
		return nil
	}
}

// WithPrefetch lets this Queue claim up to n items ahead of the calls of Take, within the window, so that the
// next Take need not wait for the servers. Other consumers do not get these meanwhile. Default 0.
func WithPrefetch(n int) Option {
	return func(q *engine) error {
		if n < 0 {
			return fmt.Errorf("%w: WithPrefetch: %d is negative", ErrOption, n)
		}
		q.prefetch = n
		return nil
	}
}

// WithPrefetchBytes bounds the bytes of what this Queue has claimed ahead and handed to nobody: it claims no more ahead once
// there are so many. A strict queue's consumer also reads ahead, of each line at most so many bytes. Default 8 MiB.
func WithPrefetchBytes(n int) Option {
	return func(q *engine) error {
		if n <= 0 {
			return fmt.Errorf("%w: WithPrefetchBytes: %d, at least 1", ErrOption, n)
		}
		q.prefetchBytes = n
		return nil
	}
}

// WithBacklog bounds the bytes that wait to be sent when PutAsync is called, or are on their way: a call beyond fails with
// ErrBacklog. Default 64 MiB.
func WithBacklog(bytes int) Option {
	return func(q *engine) error {
		if bytes <= 0 {
			return fmt.Errorf("%w: WithBacklog: %d bytes, at least 1", ErrOption, bytes)
		}
		q.backlog = bytes
		return nil
	}
}

// WithIdleTimeout says how long this Queue keeps what it has claimed ahead when nobody calls Take any more, and goes on being
// a consumer when no delivery is open either. A strict queue's keeps both, with the lock, while one is. Default 5 s.
func WithIdleTimeout(d time.Duration) Option {
	return func(q *engine) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithIdleTimeout: %v, it must be more than 0", ErrOption, d)
		}
		q.idleTimeout = d
		return nil
	}
}

// WithMaxAttempts makes an item a dead letter when it was given back by, or lost with, its consumer so often. Default:
// never.
func WithMaxAttempts(n int) Option {
	return func(q *engine) error {
		if n <= 0 {
			return fmt.Errorf("%w: WithMaxAttempts: %d, at least 1", ErrOption, n)
		}
		q.maxAttempts = n
		return nil
	}
}

// WithCapacity bounds the items in the queue, dead letters not counted: never are there more, whoever puts. Default: as it
// is stored; unbounded if the queue is made now. Another capacity than the stored one is refused with
// ErrMismatch; see SetCapacity. A Put that finds no room waits, in line with those of other processes.
func WithCapacity(n int) Option {
	return func(q *engine) error {
		if n <= 0 || n > maxCapacity {
			return fmt.Errorf("%w: WithCapacity: %d is not between 1 and %d", ErrOption, n, maxCapacity)
		}
		q.record.Capacity = n
		return nil
	}
}

// maxCapacity leaves room for the arithmetic of counters that wrap.
const maxCapacity = 1 << 30

// WithFailWhenFull makes a Put that finds no room fail with ErrFull instead of waiting.
func WithFailWhenFull() Option {
	return func(q *engine) error {
		q.refuses = true
		return nil
	}
}

// WithDedup remembers the ids of items (WithID) for at least d after their puts, and refuses another item with such an
// id with ErrDuplicate. It may be up to twice as long, and longer while nothing is put. Default: as it is stored;
// none if the queue is made now. Another time than the stored one is refused with ErrMismatch; see SetDedup. Up to about two million ids
// may be put in that time.
func WithDedup(d time.Duration) Option {
	return func(q *engine) error {
		if d < time.Second {
			return fmt.Errorf("%w: WithDedup: %v, at least 1s", ErrOption, d)
		}
		q.record.Dedup = d.Milliseconds()
		return nil
	}
}

// defaultBound is how many items a segment takes before the next one is opened: a list of it has about 60 kB.
const defaultBound = 4000

// MaxPriority is the highest priority of an item; the lowest, and default, is 0.
const MaxPriority = 9

// putting is how one item is put.
type putting struct {
	header itemHeader
	after  time.Duration
	with   []framework.Op
}

// PutOption changes how an item is put. Its error is returned by the put.
type PutOption func(*putting) error

// WithPriority puts the item before all of lower priorities, from 0, the default, to MaxPriority. Those of one priority stay
// in order.
func WithPriority(n int) PutOption {
	return func(p *putting) error {
		if n < 0 || n > MaxPriority {
			return fmt.Errorf("%w: WithPriority: %d is not between 0 and %d", ErrOption, n, MaxPriority)
		}
		p.header.Priority = n
		return nil
	}
}

// WithDelay keeps the item back for d, by the ensemble's clock, rounded up to a second; then it is put at the
// end, by the queue's consumers. It counts as in the queue meanwhile.
func WithDelay(d time.Duration) PutOption {
	return func(p *putting) error {
		if d < 0 || d > maxDelay {
			return fmt.Errorf("%w: WithDelay: %v is not between 0 and %v", ErrOption, d, maxDelay)
		}
		p.after = d
		return nil
	}
}

const maxDelay time.Duration = 10 * 365 * 24 * time.Hour

// WithOps puts the item together with operations of the caller's own, in one transaction: all of it happens, or nothing. When one of
// them is refused the put fails with ErrRefused. They must not touch the queue's nodes. They are sent again when the queue has to
// send the put again, which is not while it may have been done: so they happen once, like the put. A put of a batch does them once.
func WithOps(ops ...framework.Op) PutOption {
	return func(p *putting) error {
		if err := checkOps("WithOps", ops); err != nil {
			return err
		}
		p.with = append(p.with, ops...)
		return nil
	}
}

// checkOps refuses operations without a path that can be.
func checkOps(what string, ops []framework.Op) error {
	for i, op := range ops {
		if err := framework.ValidatePath(op.Path()); err != nil {
			return fmt.Errorf("%w: %s: operation %d: %w", ErrOption, what, i, err)
		}
	}
	return nil
}

// WithHeaders puts up to 64 headers with the item: names and values of the producer's own, up to 16,384 bytes together, that each
// delivery and dead letter of the item shows. Names are not empty, and both are UTF-8. Trace context is kept elsewhere: no header can
// replace it.
func WithHeaders(headers map[string]string) PutOption {
	return func(p *putting) error {
		size := 0
		for name, value := range headers {
			if name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) {
				return fmt.Errorf("%w: WithHeaders: %.80q: %.80q, want a name that is not empty, and UTF-8", ErrOption, name, value)
			}
			size += len(name) + len(value)
		}
		if len(headers) > maxHeaders || size > maxHeaderBytes {
			return fmt.Errorf("%w: WithHeaders: %d headers of %d bytes, at most %d of %d", ErrOption, len(headers), size, maxHeaders, maxHeaderBytes)
		}
		p.header.Headers = headers
		return nil
	}
}

const (
	maxHeaders     = 64
	maxHeaderBytes = 16 << 10
)

// headersSize is how many bytes the producer's headers have as they are stored.
func (h itemHeader) headersSize() (int, error) {
	if len(h.Headers) == 0 {
		return 0, nil
	}
	data, err := json.Marshal(h.Headers)
	return len(data), err
}

// WithID names the item. A queue with WithDedup refuses another item with the same id for a time. A queue without it refuses the
// put with ErrOption: the id would protect from nothing.
func WithID(id string) PutOption {
	return func(p *putting) error {
		if id == "" || len(id) > maxID {
			return fmt.Errorf("%w: WithID: an id of %d bytes, want 1 to %d", ErrOption, len(id), maxID)
		}
		p.header.ID = id
		return nil
	}
}

const maxID = 1024
