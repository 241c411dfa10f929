package redislock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/usercode"
)

// hold is the hold on a lock. It implements lockstore.Hold. Its lease calls Release at its end.
type hold struct {
	contender *contender
	life      lifetime.Lifetime
	expiry    expiry

	mu       sync.Mutex
	released *released // nil before Release
}

// beginHold begins the hold of a granted contender, and its renewals.
func beginHold(values context.Context, c *contender, g grant) *hold {
	c.kept.use(c.clock)
	h := &hold{contender: c}
	h.life.Init(&h.expiry, values)
	h.expiry.begin(c.clock, g.sent+c.leaseLength(), &h.life)
	if !c.opts.fixed {
		h.expiry.call(g.sent+c.opts.expiry/3, h.renew) // most holds end before
	}
	return h
}

func (h *hold) Context() context.Context     { return h.life.Context() }
func (h *hold) Lifetime() *lifetime.Lifetime { return &h.life }
func (h *hold) Err() error                   { return h.life.Err() }
func (h *hold) End(cause error)              { h.life.End(cause) }
func (h *hold) Logger() *slog.Logger         { return h.contender.opts.log }
func (h *hold) GuardError() error            { return errNoGuard }
func (h *hold) Remaining() time.Duration     { return h.expiry.remaining() }

// CleanupTimeout is a third of the expiry: after that others may have the lock soon anyway.
func (h *hold) CleanupTimeout() time.Duration { return h.contender.opts.expiry / 3 }

// kept is what most calls need, and what would take a tenth of the time of a free lock each to make
// anew: an alarm, since the first one of a process opens a timer of the operating system and the
// last one closes it; and goroutines whose stacks have grown as far as go-redis needs. It is kept
// for a moment after its last use.
type kept struct {
	work chan func() // for goroutines that have nothing to do

	mu    sync.Mutex
	used  bool          // since the timer has fired
	idle  chan struct{} // closed after a moment without use; nil before the next use
	alarm clock.Alarm   // never rings
	timer *time.Timer
}

// linger is after how long without use nothing is kept, or after twice that.
const linger = 100 * time.Millisecond

// use returns a channel that is closed when nothing is kept any more.
func (k *kept) use(c clock.Clock) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used = true
	if k.idle == nil {
		k.idle, k.alarm = make(chan struct{}), c.NewAlarm(func() {})
		k.timer = time.AfterFunc(linger, k.check)
	}
	return k.idle
}

func (k *kept) check() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.used {
		k.used = false
		k.timer.Reset(linger)
		return
	}
	k.alarm.Stop()
	close(k.idle)
	k.idle = nil
}

// renew renews the lock until the hold ends.
func (h *hold) renew() {
	c, ctx := h.contender, h.life.BareContext()
	pauses := backoff.New(c.opts.expiry/100, c.opts.expiry/10)
	for ctx.Err() == nil {
		sent := c.clock.Now()
		next := sent + c.opts.expiry/3
		err := h.renewOnce(ctx, sent)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pauses.Reset()
		case errors.Is(err, ErrLost) || errors.Is(err, redis.ErrClosed):
			h.life.End(err)
			return
		default:
			h.tellRenewalError(err)
			next = c.clock.Now() + pauses.Next()
		}
		if backoff.Pause(ctx, next-c.clock.Now()) != nil {
			return
		}
	}
}

// renewOnce renews the lock. The answer to what was sent at sent extends the expiry.
func (h *hold) renewOnce(ctx context.Context, sent time.Duration) error {
	c := h.contender
	select {
	case a := <-c.send(ctx, c.mode.renew, c.owner, c.opts.expiry.Milliseconds()):
		if a.err != nil {
			return c.explain(a.err)
		}
		if !a.granted() {
			return ErrLost
		}
		h.expiry.extend(sent + c.leaseLength())
		return nil
	case <-ctx.Done():
		return failure.Ended(ctx)
	}
}

func (h *hold) tellRenewalError(err error) {
	o := h.contender.opts
	if o.onRenewalError == nil {
		return
	}
	err = fmt.Errorf("renew %s, %v left: %w", h.contender.name, h.Remaining().Round(time.Millisecond), err)
	_ = usercode.Call(o.log, failure.ErrPanic, // the log has it
		"the function of WithOnRenewalError", []any{"lock", h.contender.name}, func() error {
			o.onRenewalError(err)
			return nil
		})
}

// Release implements lockstore.Hold.
func (h *hold) Release(cause error, queued func()) primitives.Discarded {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released != nil {
		return h.released
	}
	c := h.contender
	// the key may live for the margin longer than the lease
	within := h.expiry.remaining() + c.opts.expiry - c.leaseLength()
	h.life.End(cause)
	r := &released{done: make(chan struct{})}
	h.released = r
	if queued != nil {
		queued()
	}
	h.expiry.call(c.clock.Now()+within, func() { // go-redis may return later
		r.end(fmt.Errorf("%w: no answer within %v", ErrExpired, within.Round(time.Millisecond)))
	})
	return r
}

// Send implements lockstore.Hold. What fails in the caller's goroutine is tried again in another
// one.
func (h *hold) Send(inCaller bool) {
	c, r := h.contender, h.released
	if inCaller && c.giveBackOnce(releaseContext{r}) == nil {
		h.expiry.stop()
		r.end(nil)
		return
	}
	c.inBackground(func() {
		err := c.giveBack(releaseContext{r})
		h.expiry.stop()
		r.end(err)
	})
}

// released is a release in the background. It implements primitives.Discarded.
type released struct {
	done chan struct{}

	mu    sync.Mutex
	ended bool
	err   error
}

// end tells how the release has ended. Only the first call counts.
func (r *released) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.ended, r.err = true, err
		close(r.done)
	}
}

// Done is closed when the server has answered, or when the key has expired.
func (r *released) Done() <-chan struct{} { return r.done }

func (r *released) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *released) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return failure.Unconfirmed(r.Err())
	case <-ctx.Done():
		return failure.Unconfirmed(failure.Ended(ctx))
	}
}

// Zxid is 0: Redis numbers no transactions.
func (r *released) Zxid() int64 { return 0 }

// releaseContext is the context of a release's requests. It is done when the release has ended, so
// a release needs no other context.
type releaseContext struct{ *released }

func (releaseContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (releaseContext) Value(any) any               { return nil }

func (c releaseContext) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}

// expiry ends a hold's lifetime when the time is over, by the clock. It implements lifetime.Parent,
// for that lifetime only.
type expiry struct {
	clock clock.Clock
	alarm clock.Alarm
	life  *lifetime.Lifetime

	mu     sync.Mutex
	until  time.Duration
	over   bool   // the time is over, which no later renewal changes
	next   func() // see call
	nextAt time.Duration
}

func (e *expiry) begin(c clock.Clock, until time.Duration, life *lifetime.Lifetime) {
	e.clock, e.until, e.life = c, until, life
	e.alarm = c.NewAlarm(e.ring)
	e.alarm.Set(until)
}

// call calls f at a time, in a goroutine of its own, instead of what a former call has asked for.
func (e *expiry) call(at time.Duration, f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next, e.nextAt = f, at
	e.alarm.Set(at)
}

// ring is called by the alarm, which may have rung for a former call or a former end: then this
// call's time has not come.
func (e *expiry) ring() {
	_ = e.life.Err() // ends the lifetime if the time is over
	isOver := e.Err() != nil
	e.mu.Lock()
	var due func()
	switch {
	case e.next == nil:
	case e.clock.Now() >= e.nextAt:
		due, e.next = e.next, nil
	default:
		e.alarm.Set(e.nextAt)
	}
	if e.next == nil && !isOver {
		e.alarm.Set(e.until)
	}
	e.mu.Unlock()
	if due != nil {
		due()
	}
}

// Err is ErrExpired once the time is over.
func (e *expiry) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = e.over || e.clock.Now() >= e.until
	if e.over {
		return ErrExpired
	}
	return nil
}

// BareContext never ends: ring ends the lifetime.
func (e *expiry) BareContext() context.Context { return context.Background() }

// extend moves the end to until, unless the time is over.
func (e *expiry) extend(until time.Duration) {
	if e.Err() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if until > e.until {
		e.until = until
		e.alarm.Set(until)
	}
}

// remaining is the time until the end, 0 once it is over.
func (e *expiry) remaining() time.Duration {
	if e.Err() != nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(0, e.until-e.clock.Now())
}

// stop ends the alarm. The hold has ended.
func (e *expiry) stop() { e.alarm.Stop() }
