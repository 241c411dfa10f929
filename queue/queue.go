package queue

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Queue puts items of one type into a queue and takes them out. It may be used by many goroutines at once. Several
// may be made for one path; each is a consumer of its own. Close it when it is no longer needed.
type Queue[T any] struct {
	core  *engine
	codec Codec[T]
}

// New returns a queue at path. Nothing is created before it is used: the first to put or take makes it, who looks does not. An
// argument that cannot be used makes every call return an error that says so.
func New[T any](client *framework.Client, path string, codec Codec[T], opts ...Option) *Queue[T] {
	q := &Queue[T]{newEngine(client, path, opts), codec}
	if codec == nil && q.core.err == nil {
		q.core.err = fmt.Errorf("%w: the codec is nil", ErrOption)
	}
	return q
}

// Path is the queue's path.
func (q *Queue[T]) Path() string { return q.core.path }

// Close stops taking: deliveries that are open end, with ErrClosed as the cause of their contexts, and their items go
// to other consumers. Puts and acknowledgements that were begun are finished. When ctx ends first its error is
// returned, and the rest goes on in the background, until the client is closed at the latest. It may be called more
// than once.
func (q *Queue[T]) Close(ctx context.Context) error { return q.core.close(ctx) }

// Put puts a value at the end of the queue and waits until the servers have it.
//
// Guarantee: when the error is nil the item is in the queue, once, however many replies were lost; when it wraps
// ErrUnknown it may be, since ctx ended while it was on its way or the session was lost for too long; with any
// other error it is not. The puts of one goroutine stay in order. The errors wrap ErrCodec, framework.ErrTooLarge,
// ErrMismatch, ErrNotQueue, ErrDuplicate, ErrFull, ErrRefused, framework.ErrNoAuth, ErrClosed, framework.ErrClosed or the end of ctx.
func (q *Queue[T]) Put(ctx context.Context, value T, opts ...PutOption) error {
	return q.PutBatch(ctx, []T{value}, opts...)
}

// PutBatch puts values in their order, with nothing in between, all or none, in one transaction: at most 1,000 items of
// 500,000 bytes together, of what the codec makes of them and of their headers. Its guarantee and its errors are those of Put;
// options hold for each value.
func (q *Queue[T]) PutBatch(ctx context.Context, values []T, opts ...PutOption) error {
	p, end, err := q.prepare(ctx, values, opts)
	if err == nil {
		err = q.core.putAndWait(ctx, p)
		end(err)
	}
	return framework.Wrap("put", q.core.path, err)
}

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

// Done is closed when the outcome is there.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait returns the outcome, or the end of ctx; then what was begun goes on.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return framework.Ended(ctx)
	}
}

// PutAsync is Put, and does not wait: puts that are on their way at once share transactions, in the order of the calls.
// Wait for the outcome. ctx lends its trace context only. Of a bounded queue, a put that finds no room fails with ErrFull.
// While as many bytes wait to be sent as WithBacklog allows, it fails with ErrBacklog.
func (q *Queue[T]) PutAsync(ctx context.Context, value T, opts ...PutOption) *Pending {
	pending := newPending()
	p, end, err := q.prepare(ctx, []T{value}, opts)
	if err != nil {
		pending.finish(framework.Wrap("put", q.core.path, err))
		return pending
	}
	p.then = func(_ []framework.OpResult, err error) {
		end(err)
		pending.finish(framework.Wrap("put", q.core.path, err))
	}
	if err := q.core.writer.addWithin(p, q.core.backlog); err != nil {
		p.then(nil, err)
	}
	return pending
}

// prepare encodes values into a part, or refuses them before anything is sent. The span that it begins is to be ended
// with the outcome.
func (q *Queue[T]) prepare(ctx context.Context, values []T, opts []PutOption) (*writeRequest, func(error), error) {
	if err := q.core.usable(); err != nil {
		return nil, nil, err
	}
	if len(values) == 0 {
		return nil, nil, fmt.Errorf("%w: a batch without values", ErrOption)
	}
	var how putting
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(&how); err != nil {
			return nil, nil, err
		}
	}
	if ttl := time.Duration(how.header.TTL) * time.Millisecond; ttl > 0 && how.after >= ttl {
		return nil, nil, fmt.Errorf("%w: WithExpiry: %v is over before the item comes, after %v (WithDelay)", ErrOption, ttl, how.after)
	}
	trace, end := q.core.tel.put(ctx, len(values))
	how.header.Trace = trace
	p, err := q.encode(how, values)
	if err != nil {
		end(err)
	}
	return p, end, err
}

func (q *Queue[T]) encode(how putting, values []T) (*writeRequest, error) {
	extra, err := how.header.headersSize()
	if err != nil {
		return nil, err
	}
	items, size := make([][]byte, len(values)), 0
	for i, v := range values {
		payload, err := encode(q.codec, v)
		if err != nil {
			return nil, err
		}
		size += len(payload) + extra
		if items[i], err = (envelope{how.header, payload}).encodeNew(); err != nil {
			return nil, err
		}
	}
	if len(items) > maxBatch || len(items) > 1 && size > maxBatchBytes {
		return nil, fmt.Errorf("%w: a batch of %d items and %d bytes, at most %d and %d are taken",
			framework.ErrTooLarge, len(items), size, maxBatch, maxBatchBytes)
	}
	return q.core.newPutRequest(how, items)
}

// Take waits for an item and claims it. Its errors wrap ErrMismatch, ErrNotQueue, framework.ErrNoAuth, ErrClosed,
// framework.ErrClosed or the end of ctx. A suspended connection and a lost session are waited out.
//
// An item that cannot be decoded, was claimed more often than WithMaxAttempts allows, or whose time is over (WithExpiry), is moved to
// the dead letters and not returned. The codec runs in the caller's goroutine.
//
// A Queue from which nothing was taken for a time (WithIdleTimeout) looks first, which writes nothing. Only when there is an item, or
// after 100 ms, does it join the line of consumers. So a call that ends sooner, on an empty queue, costs the servers some reads.
func (q *Queue[T]) Take(ctx context.Context) (*Delivery[T], error) {
	if err := q.core.usable(); err != nil {
		return nil, framework.Wrap("take", q.core.path, err)
	}
	began := time.Now()
	for {
		d, err := q.core.consumer.take(ctx)
		if err != nil {
			return nil, framework.Wrap("take", q.core.path, err)
		}
		if out := q.handOut(ctx, began, d); out != nil {
			return out, nil
		}
	}
}

// handOut decodes an item. One that cannot be decoded, or whose time is over, goes to the dead letters; then it returns nil.
func (q *Queue[T]) handOut(ctx context.Context, began time.Time, d *delivery) *Delivery[T] {
	if d.env.header.expired(q.core.clock.now()) {
		d.expire()
		return nil
	}
	value, err := decode(q.codec, d.env.payload)
	if err != nil {
		if d.markSettled(ErrSettled) == nil {
			d.moveToDeadLetters(err, func(error) {})
		}
		return nil
	}
	return &Delivery[T]{Value: value, Attempt: d.attempt, ID: d.env.header.ID, d: d,
		Priority: d.env.header.Priority, LastError: d.env.header.Error,
		Headers: maps.Clone(d.env.header.Headers), EnqueuedAt: d.env.header.enqueued(),
		ctx: q.core.tel.taken(ctx, d.tenure.Context(), began, d)}
}

// Messages yields deliveries until ctx ends, which is no error, or Take fails, which is yielded last. Each has to be
// settled by the loop's body, or elsewhere.
func (q *Queue[T]) Messages(ctx context.Context) iter.Seq2[*Delivery[T], error] {
	return func(yield func(*Delivery[T], error) bool) {
		for {
			d, err := q.Take(ctx)
			if err != nil && ctx.Err() != nil {
				return
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}
