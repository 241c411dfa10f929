package queue

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// Defaults of the options.
const (
	DefaultMaxInFlight   = 16
	DefaultIdleTimeout   = 5 * time.Second
	DefaultPrefetchBytes = 8 << 20
	DefaultBacklog       = 64 << 20
)

// Limits of options.
const (
	// MaxPriority is the highest priority of an item. The lowest is 0, the default.
	MaxPriority = 9

	maxCapacity    = 1 << 30 // leaves room for the arithmetic of counters that wrap
	maxID          = 1024
	maxHeaders     = 64
	maxHeaderBytes = 16 << 10
)

// defaultSegmentSize is how many items a segment takes before the next one is opened: a list of it
// has about 60 kB.
const defaultSegmentSize = 4000

// Option changes how a Queue works. If it returns an error, each call of the Queue does.
type Option func(*settings) error

// settings are what the options of one Queue say.
type settings struct {
	record        queuelayout.Record // what the stored record must agree with
	window        int                // WithMaxInFlight; 0: the default of the queue's order
	prefetch      int
	prefetchBytes int
	backlog       int // bytes
	failWhenFull  bool
	idleTimeout   time.Duration
	maxAttempts   int // 0: any number
	dropExpired   bool
	deadExpiry    time.Duration // 0: dead letters stay
	onDead        func(DeadLetter)
	segmentSize   int64 // items of a segment
}

func defaultSettings() settings {
	return settings{record: queuelayout.Record{Recipe: queuelayout.Recipe}, segmentSize: defaultSegmentSize,
		idleTimeout:   DefaultIdleTimeout,
		prefetchBytes: DefaultPrefetchBytes, backlog: DefaultBacklog}
}

// windowSize is how many deliveries may be open at once.
func (s *settings) windowSize(strict bool) int {
	switch {
	case s.window > 0:
		return s.window
	case strict:
		return 1
	}
	return DefaultMaxInFlight
}

// WithOrder sets the order that the queue keeps. Default: the stored one; Parallel if the queue is
// made now. The calls fail with framework.ErrMismatch if another order is stored.
func WithOrder(o Order) Option {
	return func(s *settings) error {
		text := orderTexts.TextOf(o)
		if !queuelayout.IsKnownOrder(text) {
			return fmt.Errorf("%w: WithOrder: %q, want %q or %q", errOption, o, Parallel, Strict)
		}
		s.record.Order = text
		return nil
	}
}

// WithMaxInFlight bounds the open deliveries of this Queue: claimed, handed out or not, and not yet
// acknowledged or returned. After a crash at most n items are delivered again. Default: 16 in a
// parallel queue, 1 in a strict one.
func WithMaxInFlight(n int) Option {
	return func(s *settings) error {
		if n <= 0 {
			return fmt.Errorf("%w: WithMaxInFlight: %d, at least 1", errOption, n)
		}
		s.window = n
		return nil
	}
}

// WithPrefetch lets this Queue claim up to n items ahead of the calls of Take, within
// WithMaxInFlight, so that the next Take does not wait for the servers. Other consumers do not get
// these items meanwhile. Default 0.
func WithPrefetch(n int) Option {
	return func(s *settings) error {
		if n < 0 {
			return fmt.Errorf("%w: WithPrefetch: %d is negative", errOption, n)
		}
		s.prefetch = n
		return nil
	}
}

// WithPrefetchBytes bounds the bytes of prefetched items: beyond n, this Queue claims no items
// ahead. The consumer of a strict queue also reads ahead, at most n bytes of each chain. Default 8
// MiB.
func WithPrefetchBytes(n int) Option {
	return func(s *settings) error {
		if n <= 0 {
			return fmt.Errorf("%w: WithPrefetchBytes: %d, at least 1", errOption, n)
		}
		s.prefetchBytes = n
		return nil
	}
}

// WithBacklog bounds the bytes that wait to be sent, or for an answer, when PutAsync is called: a
// call beyond fails with ErrBacklog. Default 64 MiB.
func WithBacklog(bytes int) Option {
	return func(s *settings) error {
		if bytes <= 0 {
			return fmt.Errorf("%w: WithBacklog: %d bytes, at least 1", errOption, bytes)
		}
		s.backlog = bytes
		return nil
	}
}

// WithIdleTimeout sets how long this Queue keeps prefetched items after the last call of Take, and
// how long it remains a consumer without open deliveries. The Queue of a strict queue keeps both,
// with the lock, while a delivery is open. Default 5 s.
func WithIdleTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithIdleTimeout: %v, it must be more than 0", errOption, d)
		}
		s.idleTimeout = d
		return nil
	}
}

// WithMaxAttempts makes an item a dead letter after n attempts that ended without an
// acknowledgement. Default: any number of attempts.
func WithMaxAttempts(n int) Option {
	return func(s *settings) error {
		if n <= 0 {
			return fmt.Errorf("%w: WithMaxAttempts: %d, at least 1", errOption, n)
		}
		s.maxAttempts = n
		return nil
	}
}

// WithCapacity bounds the items in the queue, over all producers; dead letters do not count.
// Default: the stored bound; unbounded if the queue is made now. The calls fail with
// framework.ErrMismatch if another capacity is stored; see SetCapacity. A Put without room waits,
// in line with those of other processes.
func WithCapacity(n int) Option {
	return func(s *settings) error {
		if n <= 0 || n > maxCapacity {
			return fmt.Errorf("%w: WithCapacity: %d is not between 1 and %d", errOption, n, maxCapacity)
		}
		s.record.Capacity = n
		return nil
	}
}

// WithFailWhenFull makes a Put into a bounded queue without room fail with ErrFull instead of
// waiting.
func WithFailWhenFull() Option {
	return func(s *settings) error {
		s.failWhenFull = true
		return nil
	}
}

// WithDedup makes the queue remember the ids of items (WithID) for at least d after their puts.
// Another put of such an id fails with ErrDuplicate. The queue may remember an id for up to twice
// as long, and longer without puts. Default: the stored time; no ids if the queue is made now. The
// calls fail with framework.ErrMismatch if another time is stored; see SetDedup. Up to about two
// million ids may be put in that time.
func WithDedup(d time.Duration) Option {
	return func(s *settings) error {
		if d < time.Second {
			return fmt.Errorf("%w: WithDedup: %v, at least 1s", errOption, d)
		}
		s.record.Dedup = d.Milliseconds()
		return nil
	}
}

// WithRetry sets how long an item waits after a failed attempt: in Work, and in Nack without a
// delay. Times are kept in milliseconds, and rounded up to seconds in a parallel queue. The items
// of a lost consumer come again at once. Default: the stored policy; none if the queue is made now:
// then Nack does not wait, and Work as WithPauses says. The calls fail with framework.ErrMismatch
// if another policy is stored; see SetRetry.
func WithRetry(p RetryPolicy) Option {
	return func(s *settings) error {
		p, err := p.withDefaults()
		if err != nil {
			return err
		}
		s.record.Retry = p.stored(queuelayout.StoredRetry{})
		return nil
	}
}

// WithDropExpired makes this Queue remove expired items (WithExpiry) instead of making them dead
// letters. Give it to all consumers of a queue.
func WithDropExpired() Option {
	return func(s *settings) error {
		s.dropExpired = true
		return nil
	}
}

// WithDeadExpiry removes dead letters that are older than d, by the ensemble's clock, some time
// after. The first consumer in line removes them, if its Queue has this option: give it to all.
// Default: dead letters stay.
func WithDeadExpiry(d time.Duration) Option {
	return func(s *settings) error {
		if d < time.Second {
			return fmt.Errorf("%w: WithDeadExpiry: %v, at least 1s", errOption, d)
		}
		s.deadExpiry = d
		return nil
	}
}

// WithOnDead calls f after this Queue has made an item a dead letter, for whatever reason: to log
// it, count it or tell somebody. The letter has no Node and no time of Buried. f is called in a
// goroutine of its own, several calls at once if there are several letters; a panic is logged.
// Close waits for the calls, so f must not wait for Close.
//
// Each letter is told once at most, by the consumer that has made it. If that dies before it has
// called f, nobody does: use DeadLetters, or a monitor, for what must not be missed.
func WithOnDead(f func(DeadLetter)) Option {
	return func(s *settings) error {
		if f == nil {
			return fmt.Errorf("%w: WithOnDead: the function is nil", errOption)
		}
		s.onDead = f
		return nil
	}
}

// putSettings is how one item is put.
type putSettings struct {
	header queuelayout.Header
	delay  time.Duration
	with   []framework.Op
}

// PutOption changes how an item is put. If it returns an error, the put does.
type PutOption func(*putSettings) error

// WithPriority puts the item before all of lower priorities, from 0, the default, to MaxPriority.
// Items of one priority stay in order.
func WithPriority(n int) PutOption {
	return func(p *putSettings) error {
		if n < 0 || n > MaxPriority {
			return fmt.Errorf("%w: WithPriority: %d is not between 0 and %d", errOption, n, MaxPriority)
		}
		p.header.Priority = n
		return nil
	}
}

// WithDelay delays the item for at least d, from 0 to 10 years, by the ensemble's clock, rounded up
// to a second. Then the first consumer in line moves it behind the items of its priority; without a
// consumer it waits longer. Meanwhile it counts in Len, and takes room in a bounded queue.
func WithDelay(d time.Duration) PutOption {
	return func(p *putSettings) error {
		if d < 0 || d > queuelayout.MaxDelay {
			return fmt.Errorf("%w: WithDelay: %v is not between 0 and %v", errOption, d, queuelayout.MaxDelay)
		}
		p.delay = d
		return nil
	}
}

// WithExpiry expires the item d after its put, from 1 s to 10 years, by the ensemble's clock as a
// consumer estimates it. An expired item is not handed out any more, also if it was handed out
// before and has come back. The consumer that finds it makes it a dead letter with the reason
// "expired", or removes it (WithDropExpired). That is no attempt. Until a consumer finds it, an
// expired item stays in the queue and takes room in a bounded one. An open delivery continues. A
// dead letter that is requeued does not expire again.
func WithExpiry(d time.Duration) PutOption {
	return func(p *putSettings) error {
		if d < time.Second || d > queuelayout.MaxDelay {
			return fmt.Errorf("%w: WithExpiry: %v is not between 1s and %v", errOption, d, queuelayout.MaxDelay)
		}
		p.header.TTL = d.Milliseconds()
		return nil
	}
}

// WithOps puts the item together with the caller's own operations, in one transaction: all of it
// happens, or no part. If the servers refuse one of them, the put fails with framework.ErrRefused.
// They must not touch the queue's nodes. If the queue has to send the put again, it sends them
// again; it does so only if the put was not done. So they happen once, like the put. A put of a
// batch does them once.
func WithOps(ops ...framework.Op) PutOption {
	return func(p *putSettings) error {
		if err := checkOps("WithOps", ops); err != nil {
			return err
		}
		p.with = append(p.with, ops...)
		return nil
	}
}

// checkOps returns an error for operations with an invalid path.
func checkOps(what string, ops []framework.Op) error {
	for i, op := range ops {
		if err := framework.ValidatePath(primitives.Path(op)); err != nil {
			return fmt.Errorf("%w: %s: operation %d: %w", errOption, what, i, err)
		}
	}
	return nil
}

// WithHeaders puts up to 64 headers with the item: the producer's own names and values, up to
// 16,384 bytes together. Each delivery and dead letter of the item shows them. Names are not empty,
// and both are UTF-8. Trace context is kept apart: a header does not replace it.
func WithHeaders(headers map[string]string) PutOption {
	return func(p *putSettings) error {
		size := 0
		for name, value := range headers {
			if name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) {
				return fmt.Errorf("%w: WithHeaders: %.80q: %.80q, want a name that is not empty, and UTF-8",
					errOption, name, value)
			}
			size += len(name) + len(value)
		}
		if len(headers) > maxHeaders || size > maxHeaderBytes {
			return fmt.Errorf("%w: WithHeaders: %d headers of %d bytes, at most %d of %d", errOption, len(headers),
				size, maxHeaders, maxHeaderBytes)
		}
		p.header.Headers = headers
		return nil
	}
}

// WithID gives the item an id of 1 to 1,024 bytes. A queue with WithDedup refuses another item with
// the same id for a time, with ErrDuplicate. In a queue that does not remember ids the put fails
// with framework.ErrInvalid, since the id would have no effect. A batch of several items cannot
// have an id.
func WithID(id string) PutOption {
	return func(p *putSettings) error {
		p.header.ID = id
		return checkID("WithID", id)
	}
}

func checkID(of, id string) error {
	if id == "" || len(id) > maxID {
		return fmt.Errorf("%w: %s: an id of %d bytes, want 1 to %d", errOption, of, len(id), maxID)
	}
	return nil
}
