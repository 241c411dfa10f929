package queue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

const (
	// idlePoll is how long a call of Take waits before it joins the line of a queue without
	// claimable items.
	idlePoll = 100 * time.Millisecond
	// maxTryWait is how long TryTake waits at most, standing in line, for items that seemed to be
	// claimable.
	maxTryWait = time.Second
)

// lookBeforeJoining returns when there may be something to claim, or after idlePoll. The call of
// Take then makes the consumer join the line, with writes of a contender, a ticket and more, which
// would be in vain if the call ended before.
func (c *consumer) lookBeforeJoining(ctx context.Context) error {
	during, cancel := c.untilClosed(ctx)
	defer cancel()
	n, _, err := c.countClaimable(during, false)
	if err == nil && n == 0 {
		timer := time.NewTimer(idlePoll)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-during.Done():
		}
	}
	return c.endError(ctx) // other errors come again, or not, when the consumer begins
}

// takeUpTo takes at most n items that can be claimed now. It returns ErrEmpty if there is no such
// item.
func (c *consumer) takeUpTo(ctx context.Context, n int) ([]*claimedItem, error) {
	during, cancel := c.untilClosed(ctx)
	defer cancel()
	got, calls, err := c.claimUpTo(ctx, during, n)
	for _, call := range calls {
		if item := c.takes.removeCall(call); item != nil {
			got = append(got, item)
		}
	}
	if len(calls) > 0 {
		c.releaseAhead()
	}
	if len(got) > 0 {
		return got, nil
	}
	return nil, cmp.Or(err, ErrEmpty)
}

// claimUpTo queues calls of Take for as many items as can be claimed now, at most n. It returns the
// items that they got, and the calls without a result.
func (c *consumer) claimUpTo(ctx, during context.Context, n int) (got []*claimedItem, calls []*takeCall, err error) {
	back, waited := recipe.NewBackoff(c.store.client), time.Duration(0)
	for pause := 2 * time.Millisecond; len(got) < n; pause = min(2*pause, 100*time.Millisecond) {
		for len(calls) == 0 && len(got) < n {
			item := c.takes.takeReady()
			if item == nil {
				break
			}
			got = append(got, item)
		}
		if len(got) == n {
			break
		}
		can, undecided, err := c.countClaimable(during, true)
		if failure.IsTransient(err) && during.Err() == nil {
			_ = back.Pause(during)
			continue
		}
		if ended := c.endError(ctx); ended != nil {
			return got, calls, ended
		}
		if err != nil || can == 0 && !undecided || waited >= maxTryWait {
			return got, calls, err
		}
		for len(calls) < min(can, n-len(got)) {
			call := newTakeCall()
			if err := c.takes.enqueueCall(call); err != nil {
				return got, calls, err
			}
			calls = append(calls, call)
		}
		if cs := c.session.Load(); cs != nil && cs.entry.stands.Load() {
			waited += pause
		}
		if got, calls, err = c.waitForCalls(during, pause, got, calls, n); err != nil {
			return got, calls, err
		}
	}
	return got, calls, nil
}

// waitForCalls waits for the results of calls, until there are n items, or for a time. It returns
// all items, and the calls without a result.
func (c *consumer) waitForCalls(ctx context.Context, pause time.Duration, got []*claimedItem, calls []*takeCall,
	n int) ([]*claimedItem, []*takeCall, error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for had := len(calls); len(got) < n; {
		var first chan takeResult
		if len(calls) > 0 {
			first = calls[0].got
		} else if had > 0 {
			return got, calls, nil
		}
		select {
		case result := <-first:
			calls = calls[1:]
			if result.err != nil {
				return got, calls, result.err
			}
			got = append(got, result.item)
		case <-timer.C:
			return got, calls, nil
		case <-ctx.Done():
			return got, calls, nil
		}
	}
	return got, calls, nil
}

// countClaimable returns how many items this consumer could claim at a moment of the call, after a
// sync, and whether that is undecided yet, since claims are on their way. The number may be too
// high, since other consumers claim at the same time. It does not write. Unless always, it returns
// 1 if the consumer runs.
func (c *consumer) countClaimable(ctx context.Context, always bool) (n int, undecided bool, err error) {
	select {
	case c.state.reading <- struct{}{}:
		defer func() { <-c.state.reading }()
	case <-ctx.Done():
		return 0, false, failure.Ended(ctx)
	}
	if !always && c.takes.isRunning() {
		return 1, false, nil
	}
	s, err := c.store.sessionForReads(ctx)
	if err != nil {
		return 0, false, ignoreAbsent(err)
	}
	var awaited []string
	cs := c.session.Load()
	if cs != nil {
		awaited = cs.claims.awaitedItems()
	}
	state, err := c.state.readState(ctx, s, awaited)
	if errors.Is(err, framework.ErrNoNode) { // the queue is being dropped
		c.store.stale.Store(true)
		return 0, false, nil
	}
	if err != nil || state.paused {
		return 0, false, err
	}
	cs, others := c.session.Load(), state.consumers
	if c.takes.isRunning() {
		others = max(0, others-1) // this consumer stands in line, or is about to
	}
	stands := cs != nil && cs.entry.stands.Load() && cs.ctx.Err() == nil
	first := others == 0 || stands && cs.entry.first.Load()
	switch {
	case stands && cs.claims.isFull():
		return 0, false, nil
	case stands:
		n, undecided = cs.order.countClaimable(state, first)
	case first: // it gets the items of dead consumers, too
		n = state.countItems()
	case !c.store.record().IsStrict():
		n = state.countUnclaimed()
	}
	if first && state.due {
		n++
	}
	return n, undecided, nil
}

// untilClosed is a context that ends with ctx, and when Close begins.
func (c *consumer) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	during, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.openCtx, cancel)
	return during, func() { stop(); cancel() }
}

func (c *consumer) endError(ctx context.Context) error {
	if err := context.Cause(c.openCtx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return failure.Ended(ctx)
	}
	return nil
}
