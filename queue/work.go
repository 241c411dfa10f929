package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/usercode"
)

// DefaultGrace is how long Work lets handlers finish by default; see WithGrace.
const DefaultGrace = 30 * time.Second

// Handler works on an item. Its result settles the delivery; see Work. It may settle the delivery
// itself instead.
type Handler[T any] func(ctx context.Context, d *Delivery[T]) error

// WorkOption changes how Work works. Its error is returned by Work.
type WorkOption func(*workOptions) error

type workOptions struct {
	grace   time.Duration
	timeout time.Duration           // 0: no limit
	pauses  queuelayout.StoredRetry // used if the queue has no retry policy
}

// WithGrace sets how long handlers may continue after the context of Work has ended. 0 cancels them
// at once. Default 30 s.
func WithGrace(d time.Duration) WorkOption {
	return func(o *workOptions) error {
		if d < 0 {
			return fmt.Errorf("%w: WithGrace: %v is negative", errOption, d)
		}
		o.grace = d
		return nil
	}
}

// WithProcessingTimeout sets how long a handler may work on one item. Then its context ends, with a
// cause that wraps framework.ErrTimeout, and the attempt has failed, for any result of the handler.
// Default: no limit.
func WithProcessingTimeout(d time.Duration) WorkOption {
	return func(o *workOptions) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithProcessingTimeout: %v, it must be more than 0", errOption, d)
		}
		o.timeout = d
		return nil
	}
}

// WithPauses sets how long an item waits after a failed attempt in this call of Work, if the queue
// has no retry policy (WithRetry): first after the first attempt, then twice as long after each
// further one, up to longest. Times are rounded up to seconds in a parallel queue. 0 for both makes
// items come again at once: then a handler that always fails is called as fast as the servers
// answer. Default: DefaultPause.
func WithPauses(first, longest time.Duration) WorkOption {
	return func(o *workOptions) error {
		if first < 0 || longest < first || longest > queuelayout.MaxDelay || first == 0 && longest > 0 ||
			first > 0 && first < time.Millisecond {
			return fmt.Errorf("%w: WithPauses: %v to %v, want 1ms or more, the second not less than the first and "+
				"at most %v, or 0 for both", errOption, first, longest, queuelayout.MaxDelay)
		}
		o.pauses = queuelayout.StoredRetry{Min: first.Milliseconds(), Max: longest.Milliseconds(), Factor: 2}
		return nil
	}
}

// Work takes items and calls handler for each, in n workers, until ctx ends. Each worker has one
// item at a time.
//
// If the handler returns nil, Work acknowledges the item. If it returns an error, the attempt has
// failed: Work gives the item back as Nack does, after the time of the error (RetryAfter), of the
// queue's retry policy (WithRetry) or of WithPauses, by default DefaultPause; or makes it a dead
// letter (Permanent). The error's text becomes the item's LastError, except in a strict queue. Work
// logs a panic with its stack and treats the panic as an error; the worker continues.
//
// The handler's context is the delivery's, with the processing timeout (WithProcessingTimeout). It
// does not end with ctx: when ctx ends, Work takes no more items, and running handlers may continue
// for the grace (WithGrace) and keep their items. Then their contexts end, with a cause that wraps
// framework.ErrDraining, and Work gives their items back at once, with the attempt counted. Work
// does not settle an item, and does not return, before the item's handler has returned: so no other
// consumer works on the item at the same time. If a handler's context has ended, its result does
// not count, even a nil error.
//
// Lost connections and sessions do not end Work: handlers of lost items see their contexts end, and
// the items come again. Work returns nil if all handlers have returned before the end of the grace.
// Else the error wraps framework.ErrDraining, or a lasting error of Take, such as
// framework.ErrMismatch or framework.ErrClosed; then Work drains its handlers as if ctx had ended.
// n must not be larger than WithMaxInFlight, or than DefaultMaxInFlight without that option.
func (q *Queue[T]) Work(ctx context.Context, n int, handler Handler[T], opts ...WorkOption) error {
	o := workOptions{grace: DefaultGrace, pauses: defaultPauses}
	err := q.engine.checkUsable()
	if err == nil && handler == nil {
		err = fmt.Errorf("%w: Work: the handler is nil", errOption)
	}
	most := q.engine.settings.window
	if most == 0 {
		most = DefaultMaxInFlight
	}
	if err == nil && (n <= 0 || n > most) {
		err = fmt.Errorf("%w: Work: %d workers, want 1 to %d, which is the most in flight (WithMaxInFlight)",
			errOption, n, most)
	}
	if err == nil {
		o, err = recipe.ApplyOptions(o, opts)
	}
	if err != nil {
		return failure.Wrap("work", q.Path(), err)
	}
	w := &workers[T]{q: q, handler: handler, workOptions: o}
	return failure.Wrap("work", q.Path(), w.runWorkers(ctx, n))
}

// workers is one call of Work.
type workers[T any] struct {
	q       *Queue[T]
	handler Handler[T]
	workOptions

	taking     context.Context // done when the workers take no more items; the cause is the error of Take
	stop       context.CancelCauseFunc
	forced     context.Context // done after the grace
	settling   context.Context // done when Work stops waiting for the servers
	running    sync.WaitGroup
	unfinished atomic.Int64 // handlers that did not return within the grace
}

func (w *workers[T]) runWorkers(ctx context.Context, n int) error {
	var force, giveUp context.CancelFunc
	w.taking, w.stop = context.WithCancelCause(ctx)
	w.forced, force = context.WithCancel(context.Background())
	w.settling, giveUp = context.WithCancel(context.Background())
	defer giveUp()
	defer force()
	defer w.stop(nil)
	for range n {
		w.running.Go(w.workerLoop)
	}
	drained := make(chan struct{})
	go func() {
		w.running.Wait()
		close(drained)
	}()
	<-w.taking.Done() // no worker ends before
	w.grace = drain.Grace(ctx, w.grace)
	grace := time.NewTimer(w.grace)
	defer grace.Stop()
	select {
	case <-drained:
	case <-grace.C:
		force()
		cleanup, cancel := w.q.engine.store.client.CleanupContext(ctx) // for the items that are given back now
		defer cancel()
		defer context.AfterFunc(cleanup, giveUp)()
		<-drained
	}
	w.q.engine.consumer.releaseAhead()
	err := context.Cause(w.taking)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil
	}
	if unfinished := w.unfinished.Load(); unfinished > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d handlers, after %v", errOverran, unfinished, w.grace))
	}
	return err
}

// workerLoop is one worker.
func (w *workers[T]) workerLoop() {
	back := recipe.NewBackoff(w.q.engine.store.client)
	for w.taking.Err() == nil {
		d, err := w.q.Take(w.taking)
		switch {
		case err == nil && w.taking.Err() != nil:
			w.q.engine.consumer.takes.handToNextCall(d.item)
		case err == nil:
			back.Reset()
			w.handleItem(d)
		case w.taking.Err() != nil:
		case failure.IsTransient(err):
			_ = back.Pause(w.taking) // the next Take sees it
		default:
			w.stop(err)
		}
	}
}

// handleItem calls the handler and settles the delivery by its result.
func (w *workers[T]) handleItem(d *Delivery[T]) {
	ctx, cancel := context.WithCancelCause(d.Context())
	defer cancel(nil)
	defer context.AfterFunc(w.forced, func() { cancel(errDraining) })()
	if w.timeout > 0 {
		deadline := time.AfterFunc(w.timeout, func() { cancel(fmt.Errorf("%w: %v", errProcessingTimeout, w.timeout)) })
		defer deadline.Stop()
	}
	log := w.q.engine.store.client.Logger()
	attrs := []any{"path", w.q.Path(), "item", d.Node()}
	err := usercode.Call(log, errPanic, "the handler of an item", attrs,
		func() error { return w.handler(ctx, d) })
	if settled := w.settleByResult(context.Cause(ctx), d, err); settled != nil && !errors.Is(settled, ErrSettled) {
		log.Warn("the item of a handler could not be settled; it may be delivered again",
			append(attrs, "error", settled)...)
	}
}

// settleByResult settles a delivery by its handler's result, err. ended is the cause with which the
// handler's context has ended, or nil.
func (w *workers[T]) settleByResult(ended error, d *Delivery[T], err error) error {
	switch {
	case errors.Is(ended, errDraining):
		w.unfinished.Add(1)
		return d.nack(0, ended).Wait(w.settling)
	case errors.Is(ended, errProcessingTimeout):
		err = ended // instead of the handler's own error
	case err == nil:
		return d.AckAsync().Wait(w.settling)
	}
	var permanent *permanentError
	var retry *retryError
	switch {
	case errors.As(err, &permanent):
		return d.permanent(err).Wait(w.settling)
	case errors.As(err, &retry):
		return d.nack(retry.after, err).Wait(w.settling)
	}
	pause := w.q.engine.store.retryDelay(d.Attempt)
	if _, known := w.q.RetryPolicy(); !known {
		pause = w.pauses.DelayAfter(d.Attempt, 0)
	}
	return d.nack(pause, err).Wait(w.settling)
}

// retryError is what RetryAfter returns.
type retryError struct {
	// after is how long the item waits.
	after time.Duration
	// err is the reason of the failed attempt, or nil.
	err error
}

// RetryAfter returns an error with which a handler of Work gives its item back because of err,
// which may be nil. The item comes again after a time, from 0 to 10 years; the queue's retry policy
// has no effect. The attempt counts.
func RetryAfter(after time.Duration, err error) error {
	return &retryError{max(0, min(after, queuelayout.MaxDelay)), err}
}

func (e *retryError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("retry after %v", e.after)
	}
	return e.err.Error()
}

func (e *retryError) Unwrap() error { return e.err }

// permanentError is what Permanent returns.
type permanentError struct {
	// err is the reason, or nil.
	err error
}

// Permanent returns an error with which a handler of Work makes its item a dead letter because of
// err, which may be nil, without further attempts.
func Permanent(err error) error { return &permanentError{err} }

func (e *permanentError) Error() string {
	if e.err == nil {
		return "given up by its handler"
	}
	return e.err.Error()
}

func (e *permanentError) Unwrap() error { return e.err }
