package redislock

import (
	"context"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"reflect"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/lockstore"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/locks"
)

// mode says which scripts acquire and renew a lock.
type mode struct {
	acquire, renew *script
	shared         bool
}

var (
	exclusive = &mode{acquire: acquireExclusive, renew: renewExclusive}
	inOrder   = &mode{acquire: acquireInOrder, renew: renewExclusive}
	shared    = &mode{acquire: acquireShared, renew: renewShared, shared: true}
)

// lineStay is for how long a waiter in a line counts without a sign of life.
const lineStay = 5 * time.Second

// lock is what a Mutex and an RWLock have in common.
type lock struct {
	client redis.UniversalClient
	name   string
	keys   []string
	boxed  []any // what a command says of its keys: how many, and their names
	opts   options
	clock  clock.Clock
	wakes  wakes
	kept   kept
	err    error // of the arguments; every call returns it

	tel, readTel *waitline.Telemetry // readTel is of shared grants; nil if there are none, or err is not
}

// newLock returns a lock whose exclusive grants telemetry calls kind.
func newLock(client redis.UniversalClient, name, kind string, opts []Option) *lock {
	l := &lock{client: client, name: name, keys: keysOf(name), clock: clock.System(),
		kept: kept{work: make(chan func())}}
	l.boxed = []any{len(l.keys)}
	for _, key := range l.keys {
		l.boxed = append(l.boxed, key)
	}
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		l.err = fmt.Errorf("%w: the client is nil", errInvalid)
		return l
	}
	if _, isRing := client.(*redis.Ring); isRing {
		l.err = fmt.Errorf("%w: a ring gives a lock to another server when one fails, so two may hold it", errInvalid)
		return l
	}
	l.wakes.begin(client, name)
	if l.err = checkName(name); l.err == nil {
		l.opts, l.err = optionsOf(opts)
	}
	if l.err == nil {
		l.tel = l.telemetry(kind)
	}
	return l
}

// heldKey is the key of a lease in its own context.
type heldKey struct {
	client redis.UniversalClient
	name   string
	shared bool
}

// lock waits until the lock is granted.
func (l *lock) lock(ctx context.Context, m *mode) (*locks.Lease, error) {
	return l.acquire(ctx, "acquire", m, true)
}

// try acquires the lock at once, or returns an error that wraps locks.ErrNotAcquired.
func (l *lock) try(ctx context.Context, m *mode) (*locks.Lease, error) {
	return l.acquire(ctx, "try", m, false)
}

func (l *lock) acquire(ctx context.Context, op string, m *mode, waits bool) (lease *locks.Lease, err error) {
	if l.err != nil {
		return nil, failure.Wrap(op, l.name, l.err)
	}
	tel := l.tel
	if m.shared {
		tel = l.readTel
	}
	ctx, w := tel.StartWait(ctx, op)
	defer func() {
		var token int64
		if lease != nil {
			token = lease.Token()
		}
		w.End(token, err)
	}()
	key := heldKey{l.client, l.name, m.shared}
	lease, err = l.withinLease(w.Caller, key)
	if lease != nil || err != nil {
		return lease, failure.Wrap(op, l.name, err)
	}
	c := &contender{lock: l, mode: m, owner: l.wakes.newOwner(m.shared), waits: waits}
	g, err := c.wait(ctx)
	if err != nil {
		return nil, failure.Wrap(op, l.name, err)
	}
	return lockstore.OfLocks.NewLease(w.Caller, lockstore.Grant{Path: l.name, Token: g.token, Key: key,
		MaxHold: l.opts.maxHold, Measures: tel.StartHold(), Begin: func(values context.Context) lockstore.Hold {
			return beginHold(values, c, g)
		}}).(*locks.Lease), nil
}

// withinLease returns what may be had with the context of a lease of this lock, or nil.
func (l *lock) withinLease(ctx context.Context, key heldKey) (*locks.Lease, error) {
	other := key
	other.shared = !key.shared
	switch outer := lockstore.OfLocks.Held(ctx, key); {
	case outer != nil && l.opts.reentry:
		return lockstore.OfLocks.Nested(ctx, outer, l.opts.maxHold).(*locks.Lease), nil
	case outer != nil:
		return nil, locks.ErrHeld
	case lockstore.OfLocks.Held(ctx, other) == nil:
		return nil, nil
	case other.shared:
		return nil, locks.ErrHeld
	}
	return nil, locks.ErrHeld
}

// contender is one call that wants the lock.
type contender struct {
	*lock
	mode  *mode
	owner string
	waits bool

	attempts   int           // firstAttempt, or what follows it
	unanswered <-chan answer // of an acquisition whose answer the call did not wait for
	mayHave    bool          // the server may know this owner: as the holder, in the line, or as a writer
}

// grant is a contender's success.
type grant struct {
	token int64
	sent  time.Duration // when the acquisition was sent, by the lock's clock
}

// refusal says that the lock is not free.
type refusal struct {
	again time.Duration // when it may be free, by the server; negative if that is not known
	soon  bool          // againSoon
}

func (refusal) Error() string { return locks.ErrNotAcquired.Error() }
func (refusal) Unwrap() error { return locks.ErrNotAcquired }

// wait acquires the lock, once if the contender only tries. If it fails, the contender leaves
// nothing behind: what it may have in Redis is given back in the background.
func (c *contender) wait(ctx context.Context) (g grant, err error) {
	defer func() {
		if err != nil && c.mayHave {
			go func() {
				if c.unanswered != nil {
					<-c.unanswered // on one connection or none, the server executes it before what is sent now
				}
				within, cancel := context.WithTimeout(context.Background(), c.opts.expiry)
				defer cancel()
				_ = c.giveBack(within) // else it expires
			}()
		}
	}()
	g, err = c.attempt(ctx)
	var refused refusal
	if !c.waits || !errors.As(err, &refused) {
		return g, err
	}
	w := c.wakes.join(c.owner)
	defer c.wakes.leave(w)
	pauses := backoff.New(c.opts.expiry/100, c.opts.expiry/10)
	for {
		if w.wait(ctx, c.pauseBeforeAttempt(refused)) != nil {
			return grant{}, failure.Ended(ctx)
		}
		c.attempts = laterAttempt
		if refused.soon {
			c.attempts = repeatedAttempt
		}
		g, err = c.attempt(ctx)
		switch {
		case err == nil:
			return g, nil
		case errors.As(err, &refused):
			pauses.Reset()
		case ctx.Err() == nil && isTransient(err):
			refused = refusal{again: pauses.Next()}
		default:
			return grant{}, err
		}
	}
}

// pauseBeforeAttempt is how long a contender waits for a call: until the key expires, with some
// jitter, but no longer than a third of the expiry, in case a message is lost. In a line it also
// gives a sign of life.
func (c *contender) pauseBeforeAttempt(refused refusal) time.Duration {
	if refused.soon {
		return 2*time.Millisecond + mathrand.N(6*time.Millisecond)
	}
	longest := c.opts.expiry / 3
	if c.mode == inOrder {
		longest = min(longest, lineStay/3)
	}
	if refused.again < 0 || refused.again > longest {
		return longest
	}
	return refused.again + time.Millisecond + mathrand.N(longest/20)
}

// attempt asks the server once.
func (c *contender) attempt(ctx context.Context) (grant, error) {
	waits := 0
	if c.waits {
		waits = 1
	}
	sent := c.clock.Now()
	args := []any{c.owner, c.opts.expiry.Milliseconds(), waits, lineStay.Milliseconds(), c.attempts}
	if ctx.Done() == nil { // nothing ends the call before go-redis does
		return c.read(c.ask(ctx, c.mode.acquire, args), sent)
	}
	answer := c.send(ctx, c.mode.acquire, args...)
	select {
	case a := <-answer:
		return c.read(a, sent)
	case <-ctx.Done():
		c.unanswered, c.mayHave = answer, true
		return grant{}, failure.Ended(ctx)
	}
}

// read returns what the answer to an acquisition says that was sent at sent.
func (c *contender) read(a answer, sent time.Duration) (grant, error) {
	var refusedByServer redis.Error
	switch {
	case errors.As(a.err, &refusedByServer) || errors.Is(a.err, redis.ErrClosed):
		return grant{}, c.explain(a.err)
	case a.err != nil: // it may have been granted
		c.mayHave = true
		return grant{}, a.err
	case len(a.numbers) != 2:
		return grant{}, fmt.Errorf("%w: the answer has %d numbers, not 2", errForeign, len(a.numbers))
	case !a.granted():
		c.mayHave = c.mayHave || c.waits
		return grant{}, refusal{time.Duration(a.numbers[1]) * time.Millisecond, a.numbers[1] == againSoon}
	}
	c.mayHave = true
	if took := c.clock.Now() - sent; took >= c.leaseLength() {
		return grant{}, fmt.Errorf("%w: the server's answer took %v of %v", ErrExpired,
			took.Round(time.Millisecond), c.opts.expiry)
	}
	return grant{token: a.numbers[1], sent: sent}, nil
}

// leaseLength is for how long a lease stands after the acquisition or a renewal was sent.
func (l *lock) leaseLength() time.Duration {
	return l.opts.expiry - l.opts.expiry/50 - 5*time.Millisecond
}

// giveBack releases what the contender has, or may have, in Redis. It tries again until the server
// has answered or ctx ends, after which the key has expired.
func (c *contender) giveBack(ctx context.Context) error {
	pauses := backoff.New(c.opts.expiry/1000, c.opts.expiry/30)
	for {
		err := c.giveBackOnce(ctx)
		if err == nil || errors.Is(err, redis.ErrClosed) {
			return err
		}
		if pauses.Pause(ctx) != nil {
			return ErrExpired
		}
	}
}

func (c *contender) giveBackOnce(ctx context.Context) error {
	return c.run(ctx, release, c.owner, c.wakes.calls).Err()
}

// answer is what a script has returned.
type answer struct {
	numbers []int64
	err     error
}

func (a answer) granted() bool { return a.err == nil && len(a.numbers) > 0 && a.numbers[0] == 1 }

// ask runs a script, and reads its answer.
func (l *lock) ask(ctx context.Context, s *script, args []any) answer {
	return parse(l.run(ctx, s, args...).Result())
}

// run runs a script as its Run does, without making the names of its keys values each time: these
// were a quarter of the allocations of a free lock.
func (l *lock) run(ctx context.Context, s *script, args ...any) *redis.Cmd {
	command := append(make([]any, 0, 2+len(l.boxed)+len(args)), "evalsha", s.hash)
	command = append(append(command, l.boxed...), args...)
	c := redis.NewCmd(ctx, command...)
	c.SetFirstKeyPos(3)
	if err := l.client.Process(ctx, c); redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.Eval(ctx, l.client, l.keys, args...)
	}
	return c
}

// send runs a script in another goroutine. Its caller need not wait for the answer: go-redis itself
// waits for its ReadTimeout even if ctx has ended.
func (l *lock) send(ctx context.Context, s *script, args ...any) <-chan answer {
	answers := make(chan answer, 1)
	l.inBackground(func() { answers <- l.ask(ctx, s, args) })
	return answers
}

// inBackground calls f in another goroutine: in one that has ended another call, if there is one.
func (l *lock) inBackground(f func()) {
	idle := l.kept.use(l.clock)
	select {
	case l.kept.work <- f:
	default:
		go func() {
			for {
				f()
				select {
				case f = <-l.kept.work:
				case <-idle:
					return
				}
			}
		}()
	}
}

// parse reads an answer of numbers. A server may send them as text, too.
func parse(v any, err error) answer {
	if err != nil {
		return answer{err: err}
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var a answer
	for _, one := range list {
		n, ok := one.(int64)
		if !ok {
			f, err := strconv.ParseFloat(fmt.Sprint(one), 64)
			if err != nil || math.Abs(f) > math.MaxInt64/2 {
				return answer{err: fmt.Errorf("%w: the answer %.100q is no number", errForeign, fmt.Sprint(one))}
			}
			n = int64(f)
		}
		a.numbers = append(a.numbers, n)
	}
	return a
}
