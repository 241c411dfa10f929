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
	expiry    *expiry
	renewal   *time.Timer // begins renewals; nil without them. Most holds end before

	mu       sync.Mutex
	released *released // nil before Release
}

// beginHold begins the hold of a granted contender, and its renewals.
func beginHold(values context.Context, c *contender, g grant) *hold {
	c.alarms.keep(c.clock)
	h := &hold{contender: c, expiry: newExpiry(c.clock, g.sent+c.leaseLength())}
	h.life.Init(h.expiry, values)
	if !c.opts.fixed {
		h.renewal = time.AfterFunc(g.sent+c.opts.expiry/3-c.clock.Now(), h.renew)
	}
	return h
}

func (h *hold) Context() context.Context     { return h.life.Context() }
func (h *hold) Lifetime() *lifetime.Lifetime { return &h.life }
func (h *hold) Err() error                   { return h.life.Err() }
func (h *hold) End(cause error)              { h.life.End(cause) }
func (h *hold) Logger() *slog.Logger         { return h.contender.opts.log }
func (h *hold) GuardError() error            { return ErrNoGuard }
func (h *hold) Remaining() time.Duration     { return h.expiry.remaining() }

// CleanupTimeout is a third of the expiry: after that others may have the lock soon anyway.
func (h *hold) CleanupTimeout() time.Duration { return h.contender.opts.expiry / 3 }

// alarms keeps an alarm for a moment that never rings. The first alarm of a process opens a timer
// of the operating system, and the last one closes it, which takes a tenth of the time of a free
// lock.
type alarms struct {
	mu   sync.Mutex
	one  clock.Alarm // nil when there was no lease for a moment
	stop *time.Timer
}

// linger is for how long what most leases need is kept for the next one.
const linger = 100 * time.Millisecond

func (a *alarms) keep(c clock.Clock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.one != nil {
		a.stop.Reset(linger)
		return
	}
	a.one = c.NewAlarm(func() {})
	a.stop = time.AfterFunc(linger, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.one != nil {
			a.one.Stop()
			a.one = nil
		}
	})
}

// renew renews the lock until the hold ends.
func (h *hold) renew() {
	c, ctx := h.contender, h.life.BareContext()
	pauses := backoff.New(c.opts.expiry/100, c.opts.expiry/10)
	for {
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
	h.expiry.stop()
	if h.renewal != nil {
		h.renewal.Stop()
	}
	h.released = &released{done: make(chan struct{})}
	if queued != nil {
		queued()
	}
	r := h.released
	c.run(func() { r.run(within, c.giveBack) })
	return r
}

// released is a release in the background. It implements primitives.Discarded.
type released struct {
	done chan struct{}

	mu  sync.Mutex
	err error
}

// run gives the lock back. go-redis may return later than its context ends.
func (r *released) run(within time.Duration, giveBack func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	late := context.AfterFunc(ctx, func() {
		r.end(fmt.Errorf("%w: no answer within %v", ErrExpired, within.Round(time.Millisecond)))
	})
	err := giveBack(ctx)
	if late() {
		r.end(err)
	}
}

func (r *released) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	close(r.done)
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

// expiry ends a hold when its time is over, by the clock. It implements lifetime.Parent.
type expiry struct {
	clock  clock.Clock
	alarm  clock.Alarm
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	until time.Duration
	over  bool // the time is over, which no later renewal changes
}

func newExpiry(c clock.Clock, until time.Duration) *expiry {
	e := &expiry{clock: c, until: until}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.alarm = c.NewAlarm(func() { _ = e.Err() })
	e.alarm.Set(until)
	return e
}

// Err is ErrExpired once the time is over.
func (e *expiry) Err() error {
	e.mu.Lock()
	e.over = e.over || e.clock.Now() >= e.until
	over := e.over
	e.mu.Unlock()
	if !over {
		return nil
	}
	e.cancel(ErrExpired)
	return ErrExpired
}

func (e *expiry) BareContext() context.Context { return e.ctx }

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
func (e *expiry) stop() {
	e.alarm.Stop()
	e.cancel(nil)
}
