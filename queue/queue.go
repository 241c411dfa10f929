package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/usercode"
)

// Queue puts items of one type into a queue and takes them out. Many goroutines may use it at once.
// If a program makes several for one path, each is a consumer of its own. Close it when it is no
// longer needed.
type Queue[T any] struct {
	engine *engine
	codec  codec.Codec[T]
}

// New returns a queue at path. It sends no request. The first Put or Take makes the queue, and so
// do Pause, Resume, SetCapacity, SetDedup and SetRetry; other calls do not. If an argument or an
// option is invalid, each call returns an error that says so.
func New[T any](client *framework.Client, path string, values codec.Codec[T], opts ...Option) *Queue[T] {
	q := &Queue[T]{newEngine(client, path, opts), values}
	if values == nil && q.engine.err == nil {
		q.engine.err = fmt.Errorf("%w: the codec is nil", errOption)
	}
	return q
}

// Path is the queue's path.
func (q *Queue[T]) Path() string { return q.engine.queuePath() }

// Validate returns what is wrong with the arguments of New, as every call does, or nil. It sends no
// request.
func (q *Queue[T]) Validate() error { return q.engine.err }

// Close ends this Queue. Waiting calls of Take return framework.ErrClosed. Open deliveries end,
// with framework.ErrClosed as the cause of their contexts, and their items go to other consumers.
// Puts and acknowledgements in progress are then. Closing again is harmless.
//
// Close is a cleanup (framework.Client.CleanupContext): it also waits if ctx has ended. If that
// lasts longer, the error wraps framework.ErrUnconfirmed, and the rest continues in the background,
// until the client is closed at the latest.
func (q *Queue[T]) Close(ctx context.Context) error { return q.engine.close(ctx) }

// Limits of one put, of the codec's bytes. With headers, names and ACLs that is less than the
// servers' limit.
const (
	maxBatch      = 1000
	maxBatchBytes = 500_000
)

// Put puts a value at the end of the queue and waits until the servers have stored the item.
//
// Guarantee: if the error is nil, the item is in the queue, once, however many replies were lost.
// If the error wraps framework.ErrOutcomeUnknown, the item may be in the queue: ctx ended while the
// put was on its way, or the session was lost for too long. After any other error the item is not
// in the queue. The puts of one goroutine stay in order. The errors wrap framework.ErrBadValue,
// framework.ErrTooLarge, framework.ErrMismatch, framework.ErrForeign, ErrDuplicate, ErrFull,
// framework.ErrRefused, framework.ErrNoAuth, framework.ErrClosed or the end of ctx.
func (q *Queue[T]) Put(ctx context.Context, value T, opts ...PutOption) error {
	return q.PutBatch(ctx, []T{value}, opts...)
}

// PutBatch puts all values or no value, in their order and with no other items in between, in one
// transaction: at most 1,000 items of 500,000 bytes together, counting the codec's bytes and the
// headers. Its guarantee and its errors are those of Put. The options apply to each value.
func (q *Queue[T]) PutBatch(ctx context.Context, values []T, opts ...PutOption) error {
	r, end, err := q.preparePut(ctx, values, opts)
	if err == nil {
		err = q.engine.put(ctx, r)
		end(err)
	}
	return failure.Wrap("put", q.Path(), err)
}

// PutAsync is Put without waiting. Puts that are on their way at once share transactions, in the
// order of the calls. Wait for the outcome. PutAsync takes only the trace context from ctx. In a
// full bounded queue it fails with ErrFull. If as many bytes wait to be sent as WithBacklog allows,
// it fails with ErrBacklog.
func (q *Queue[T]) PutAsync(ctx context.Context, value T, opts ...PutOption) *Pending {
	pending := newPending()
	r, end, err := q.preparePut(ctx, []T{value}, opts)
	if err != nil {
		pending.finish(failure.Wrap("put", q.Path(), err))
		return pending
	}
	r.then = func(_ []framework.OpResult, err error) {
		end(err)
		pending.finish(failure.Wrap("put", q.Path(), err))
	}
	if err := q.engine.writer.addWithin(q.engine.settings.backlog, r); err != nil {
		r.then(nil, err)
	}
	return pending
}

// preparePut encodes values into a request, or refuses them before anything is sent. It begins a
// span; end ends it with the outcome.
func (q *Queue[T]) preparePut(ctx context.Context, values []T,
	opts []PutOption) (r *writeRequest, end func(error), err error) {
	if err := q.engine.checkUsable(); err != nil {
		return nil, nil, err
	}
	if len(values) == 0 {
		return nil, nil, fmt.Errorf("%w: a batch without values", errOption)
	}
	how, err := recipe.ApplyOptions(putSettings{}, opts)
	if err != nil {
		return nil, nil, err
	}
	if ttl := time.Duration(how.header.TTL) * time.Millisecond; ttl > 0 && how.delay >= ttl {
		return nil, nil, fmt.Errorf("%w: WithExpiry: %v is over before the item comes, after %v (WithDelay)", errOption,
			ttl, how.delay)
	}
	how.header.Trace, end = q.engine.tel.startPut(ctx, len(values))
	if r, err = q.encodePut(how, values); err != nil {
		end(err)
	}
	return r, end, err
}

// encodePut makes the request that puts values.
func (q *Queue[T]) encodePut(how putSettings, values []T) (*writeRequest, error) {
	headers, err := how.header.HeadersSize()
	if err != nil {
		return nil, err
	}
	if how.header.ID != "" && len(values) > 1 {
		return nil, fmt.Errorf("%w: WithID is for single items, not for a batch of %d", errOption, len(values))
	}
	item, ops := putTarget(q.engine.store.nodes, how.header.Priority, how.delay)
	r := &writeRequest{ops: ops, with: how.with, adds: len(values), id: how.header.ID}
	size := 0
	for _, v := range values {
		payload, err := encodeValue(q.codec, v)
		if err != nil {
			return nil, err
		}
		size += len(payload) + headers + len(how.header.Kind)
		if item.data, err = (queuelayout.Envelope{Header: how.header, Payload: payload}).EncodeNew(); err != nil {
			return nil, err
		}
		r.items = append(r.items, item)
	}
	if len(values) > maxBatch || len(values) > 1 && size > maxBatchBytes {
		return nil, fmt.Errorf("%w: a batch of %d items and %d bytes, at most %d and %d",
			framework.ErrTooLarge, len(values), size, maxBatch, maxBatchBytes)
	}
	return r, nil
}

// Take waits for an item and claims the item. Its errors wrap framework.ErrMismatch,
// framework.ErrForeign, framework.ErrNoAuth, framework.ErrClosed or the end of ctx. Take continues
// over a suspended connection and a lost session.
//
// An item that cannot be decoded, was claimed more often than WithMaxAttempts allows, or has
// expired (WithExpiry) is moved to the dead letters and not returned. The codec runs in the
// caller's goroutine.
//
// A Queue from which no item was taken for the idle timeout (WithIdleTimeout) first looks. It joins
// the line of consumers when there is an item, or after 100 ms. So a shorter call on an empty queue
// costs the servers a sync and some reads, and creates no node.
func (q *Queue[T]) Take(ctx context.Context) (*Delivery[T], error) {
	if err := q.engine.checkUsable(); err != nil {
		return nil, failure.Wrap("take", q.Path(), err)
	}
	began, consumer := time.Now(), q.engine.consumer
	for {
		if !consumer.takes.isRunning() {
			if err := consumer.lookBeforeJoining(ctx); err != nil {
				return nil, failure.Wrap("take", q.Path(), err)
			}
		}
		item, err := consumer.takes.take(ctx)
		if err != nil {
			return nil, failure.Wrap("take", q.Path(), err)
		}
		if d := q.openDelivery(ctx, began, item); d != nil {
			return d, nil
		}
	}
}

// openDelivery makes a delivery of a claimed item. It returns nil for an item that has expired or
// cannot be decoded, and settles that item.
func (q *Queue[T]) openDelivery(ctx context.Context, began time.Time, item *claimedItem) *Delivery[T] {
	header := item.env.Header
	if header.HasExpired(q.engine.store.clock.Now()) {
		item.settleExpired()
		return nil
	}
	value, err := decodeValue(q.codec, item.env.Payload)
	if err != nil {
		item.buryUnseen(err)
		return nil
	}
	return &Delivery[T]{Value: value, Attempt: item.attempt, ID: header.ID, Kind: header.Kind,
		Priority: header.Priority, LastError: header.Error,
		Headers: maps.Clone(header.Headers), Enqueued: header.EnqueuedAt(),
		item: item, tel: &q.engine.tel, span: q.engine.tel.recordTake(ctx, began, header, item.attempt)}
}

// TryTake claims an item if there is one now, and else returns ErrEmpty without waiting for one.
//
// Now means at a moment of the call, after a sync, so TryTake sees all earlier puts. It returns
// ErrEmpty
//
//   - if other consumers have all items, or get them first. The items of a dead consumer count as
//     taken until its session has ended and the recoverer has returned them;
//   - if all items are delayed;
//   - if the queue is paused or does not exist;
//   - if as many deliveries are open as WithMaxInFlight allows;
//   - in a strict queue also if another consumer has the queue's lock, or a returned item waits for
//     its time.
//
// TryTake waits for the servers, also while the connection is suspended, until ctx ends.
//
// On an empty queue it costs a sync, which is a transaction without effect, and a read. With an
// item it costs as much more as Take. Its other errors are those of Take.
func (q *Queue[T]) TryTake(ctx context.Context) (*Delivery[T], error) {
	ds, err := q.takeUpTo(ctx, 1)
	if err != nil {
		return nil, failure.Wrap("take", q.Path(), err)
	}
	return ds[0], nil
}

// TakeBatch waits for an item as Take does, and returns it with up to n-1 others that can be
// claimed now (see TryTake), in their order. Their claims share transactions. With the open
// deliveries, there are at most as many as WithMaxInFlight allows. Settle each delivery on its own,
// or several with AckAll. If an error comes after the first item, TakeBatch returns the items it
// has.
func (q *Queue[T]) TakeBatch(ctx context.Context, n int) ([]*Delivery[T], error) {
	if n <= 0 {
		return nil, failure.Wrap("take", q.Path(), fmt.Errorf("%w: a batch of %d, at least 1", errOption, n))
	}
	first, err := q.Take(ctx)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return []*Delivery[T]{first}, nil
	}
	others, _ := q.takeUpTo(ctx, n-1) // a lasting error comes again in the next call
	all := append([]*Delivery[T]{first}, others...)
	slices.SortFunc(all, func(a, b *Delivery[T]) int { return queuelayout.CompareItems(a.item.id, b.item.id) })
	return all, nil
}

// takeUpTo takes at most n items that can be claimed now. It returns ErrEmpty if there is no such
// item.
func (q *Queue[T]) takeUpTo(ctx context.Context, n int) (out []*Delivery[T], err error) {
	if err := q.engine.checkUsable(); err != nil {
		return nil, err
	}
	began := time.Now()
	for len(out) == 0 {
		items, err := q.engine.consumer.takeUpTo(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if d := q.openDelivery(ctx, began, item); d != nil {
				out = append(out, d)
			}
		}
	}
	return out, nil
}

// Deliveries yields deliveries until ctx ends, which is no error, or Take fails, which it yields
// last. Settle each delivery in the loop's body, or elsewhere.
func (q *Queue[T]) Deliveries(ctx context.Context) iter.Seq2[*Delivery[T], error] {
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

// AckAll acknowledges deliveries and waits for all outcomes. Those of one Queue share one
// transaction, unless they are too many for the servers. Each delivery is acknowledged on its own:
// if one was lost, the others are still acknowledged. The error joins theirs, each with its item's
// node; see Delivery.Ack. If ctx ends first, the acknowledgements continue.
func AckAll[T any](ctx context.Context, deliveries ...*Delivery[T]) error {
	pending := make([]*Pending, len(deliveries))
	acks := map[*consumerSession][]*writeRequest{}
	for i, d := range deliveries {
		pending[i] = d.beginSettling("ack", func(then func(error)) {
			if r := d.item.ackRequest(then); r != nil {
				acks[d.item.session] = append(acks[d.item.session], r)
			}
		})
	}
	for cs, requests := range acks {
		cs.writeRequests(append(requests, cs.nextAfterAcks(len(requests))...)...)
	}
	var errs []error
	for _, p := range pending {
		errs = append(errs, p.Wait(ctx))
	}
	return errors.Join(errs...)
}

// RetryPolicy returns the retry policy that is stored with the queue, as this Queue has read it
// last, without a request. It returns false if the queue has no policy, or this Queue has not read
// the record yet.
func (q *Queue[T]) RetryPolicy() (RetryPolicy, bool) {
	r := q.engine.store.found.Load()
	if r == nil || r.Retry == nil {
		return RetryPolicy{}, false
	}
	return retryPolicy(*r.Retry), true
}

// encodeValue calls the codec. A codec that panics has failed.
func encodeValue[T any](c codec.Codec[T], v T) (data []byte, err error) {
	err = usercode.Try(func() (err error) { data, err = c.Encode(v); return err })
	if err != nil {
		return nil, fmt.Errorf("%w: encode: %w", errCodec, err)
	}
	return data, nil
}

func decodeValue[T any](c codec.Codec[T], data []byte) (v T, err error) {
	err = usercode.Try(func() (err error) { v, err = c.Decode(data); return err })
	if err != nil {
		return v, fmt.Errorf("%w: decode: %w", errCodec, err)
	}
	return v, nil
}

// engine is the untyped part of a Queue: the stored queue, one writer, one consumer, and their
// lifetime.
type engine struct {
	err      error // of the arguments
	settings settings
	store    *store
	tel      telemetry
	writer   *writer
	putLine  *putLine
	consumer *consumer

	openCtx   context.Context // done when Close begins: no more items are taken
	endOpen   context.CancelCauseFunc
	writeCtx  context.Context // done when Close ends: no more requests are written
	endWrites context.CancelCauseFunc
	tasks     background.Tasks

	ending sync.Once
	closed chan struct{}
}

func newEngine(client *framework.Client, path string, opts []Option) *engine {
	e := &engine{closed: make(chan struct{})}
	e.openCtx, e.endOpen = context.WithCancelCause(context.Background())
	e.writeCtx, e.endWrites = context.WithCancelCause(context.Background())
	e.settings, e.err = recipe.ApplyOptions(defaultSettings(), opts)
	if err := checkArguments(client, path); err != nil {
		e.err = err
	}
	e.store = &store{client: client, nodes: queuelayout.New(path), given: e.settings.record, checkUsable: e.checkUsable}
	e.putLine = &putLine{store: e.store, openCtx: e.openCtx, tasks: &e.tasks}
	e.writer = newWriter(writerConfig{
		store: e.store, segmentSize: e.settings.segmentSize, openCtx: e.openCtx, writeCtx: e.writeCtx, tasks: &e.tasks,
		putsWait: e.putLine.hasPuts,
	})
	e.putLine.writer = e.writer
	e.consumer = newConsumer(e.store, &e.settings, e.writer, e.openCtx, &e.tasks)
	if e.err == nil {
		e.tel = newTelemetry(client, path)
	}
	return e
}

func checkArguments(client *framework.Client, path string) error {
	if client == nil {
		return fmt.Errorf("%w: the client is nil", errOption)
	}
	return recipe.CheckClientAndPath(client, path, "a queue")
}

// queuePath is the queue's path.
func (e *engine) queuePath() string { return e.store.nodes.Path }

// checkUsable returns the error of wrong arguments, or framework.ErrClosed after Close.
func (e *engine) checkUsable() error {
	if e.err != nil {
		return e.err
	}
	return context.Cause(e.openCtx)
}

// put writes a put and waits, also for room unless the Queue fails when the queue is full.
func (e *engine) put(ctx context.Context, r *writeRequest) error {
	_, err := e.writer.writeAndWait(ctx, r)
	if !errors.Is(err, ErrFull) || e.settings.failWhenFull || e.store.exceedsCapacity(r.adds) {
		return err
	}
	return e.putLine.putInLine(ctx, r)
}

// close ends the consumer, then the writer.
func (e *engine) close(ctx context.Context) error {
	e.endOpen(errClosed)
	e.ending.Do(func() {
		go func() {
			defer close(e.closed)
			<-e.tasks.Done()
			e.endWrites(errClosed)
			e.writer.removeOwnNodes()
		}()
	})
	return failure.Wrap("close", e.queuePath(), recipe.FinishCleanup(ctx, e.store.client, e.closed, nil))
}
