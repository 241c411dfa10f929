package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/locks"
)

// consumerSession is the consumer's part in the queue during one session. It stands in the queue's
// line, claims items for the calls of Take, and settles them.
type consumerSession struct {
	store    *store
	settings *settings
	writer   *writer
	s        *framework.Session
	id       string          // in the names of tickets
	ctx      context.Context // done when the consumer session ends, with the session at the latest
	cancel   context.CancelCauseFunc
	tasks    background.Tasks
	removals *background.Tasks // the Queue's: removals of segments may outlast the consumer session

	order   claimOrder
	claims  *sessionClaims
	gate    *pauseGate
	reads   *batchReader
	cancels *cancelMarks
	refs    segmentRefs
	place   linePlace
}

// claimOrder is how a consumer session claims items: in parallel, by tickets, or strictly, under
// the queue's lock.
type claimOrder interface {
	// claimItems claims items until the consumer session ends.
	claimItems() error
	// nextAfterAcks returns requests that claim the next items, to share a transaction with a
	// number of acknowledgements.
	nextAfterAcks(acks int) []*writeRequest
	// returnItem gives an item back after so many attempts, to be claimed again after a time.
	returnItem(c *claimedItem, attempts int, after time.Duration, reason error, finished func(error))
	// returnUnsettled gives the item of an unsettled delivery back. It calls given afterwards.
	returnUnsettled(c *claimedItem, attempts int, given func())
	// hasPassed reports whether the consumer session has left a segment behind.
	hasPassed(at queuelayout.Segment) bool
	// countClaimable returns how many items of a state the consumer session could claim, and
	// whether that is not decided yet since claims are on their way. first says that it is the
	// first consumer in line.
	countClaimable(state queueState, first bool) (n int, undecided bool)
	// awaitedItems returns the items that claims wait for.
	awaitedItems() []string
}

// errPlaceLost ends a consumer session that has lost its place in line; another one begins.
var errPlaceLost = fmt.Errorf("the place in line was lost: %w", framework.ErrSessionLost)

// errIdle ends a consumer session that was not used for the idle timeout.
var errIdle = errors.New("no call of Take for the idle timeout")

// claimUntilEnd claims items until the session or the Queue ends, or the idle timeout is over. Then
// it gives all items back and leaves the line.
func (cs *consumerSession) claimUntilEnd() error {
	stop := context.AfterFunc(cs.s.Context(), func() { cs.cancel(context.Cause(cs.s.Context())) })
	defer stop()
	cs.tasks.Start(func() { cs.endOnError(cs.gate.followNode(cs.ctx, cs.s, cs.store.nodes.PausedNode)) })
	cs.tasks.Start(func() { cs.endOnError(cs.store.watchRecord(cs.ctx, cs.s)) })
	err := cs.order.claimItems()
	cs.endOnError(err)
	<-cs.tasks.Done()
	cs.cancels.stopWatch(true)
	cs.returnAll()
	cs.leaveLine()
	return err
}

// endOnError ends the consumer session, if err is not nil. Only the first error counts.
func (cs *consumerSession) endOnError(err error) {
	if err != nil {
		cs.cancel(err)
	}
}

// claimLoop calls claim whenever something may have changed, and rest after the idle timeout
// without a change, until the consumer session ends. It returns errIdle when the consumer session
// was not used for the idle timeout.
func (cs *consumerSession) claimLoop(claim, rest func()) error {
	cs.place.stands.Store(true)
	for cs.ctx.Err() == nil {
		claim()
		idle, left := cs.claims.isIdle()
		if idle {
			return errIdle
		}
		timer := time.NewTimer(left)
		select {
		case <-cs.claims.takes.changed:
		case <-timer.C:
			rest()
		case <-cs.ctx.Done():
		}
		timer.Stop()
	}
	return context.Cause(cs.ctx)
}

// nextAfterAcks returns requests that claim the next items, to share a transaction with
// acknowledgements.
func (cs *consumerSession) nextAfterAcks(acks int) []*writeRequest {
	if cs.ctx.Err() != nil {
		return nil
	}
	return cs.order.nextAfterAcks(acks)
}

// deliverItem hands a claimed item out, or keeps it ready. An item that cannot be read, or has used
// up its attempts, goes to the dead letters. A cancelled item is removed. The items of a strict
// queue are delivered in order, so each waits for the removal of the one before.
func (cs *consumerSession) deliverItem(c *claimedItem) {
	cancelled, err := cs.removeIfCancelled(c)
	if cancelled {
		cs.claims.addClaimed(c, false)
		if c.markSettled(ErrSettled) == nil {
			c.endDelivery(err)
		}
		return
	}
	cs.endOnError(err)
	err = c.decodeErr
	if most := cs.settings.maxAttempts; err == nil && most > 0 && c.attempt > most {
		c.attempt--
		err = fmt.Errorf("%w: attempt %d ended without an answer", ErrLost, c.attempt)
	}
	cs.claims.addClaimed(c, err == nil)
	c.settleWhenLost()
	if err != nil {
		c.buryUnseen(err)
	}
	cs.claims.takes.noteChange()
}

// removeIfCancelled removes a claimed item that Cancel has marked, with its claim and its marks,
// and reports whether it has. If Cancel has withdrawn the mark meanwhile, the servers refuse the
// removal, and the item is delivered. If the item has gone, removeIfCancelled also returns an
// error, and the claim may still be there.
func (cs *consumerSession) removeIfCancelled(c *claimedItem) (bool, error) {
	if c.env.Header.ID == "" || c.decodeErr != nil {
		return false, nil
	}
	back := recipe.NewBackoff(cs.store.client)
	for unknown := false; ; { // whether a removal was sent, and its outcome is unknown
		marks, err := cs.cancels.marksOf(cs.ctx, c.env.Header)
		if err == nil && len(marks) == 0 && !unknown {
			return false, nil
		}
		removal := c.leaveOps()
		if c.lease != nil {
			removal = append([]framework.Op{c.lease.Guard()}, removal...)
		}
		switch {
		case err == nil && len(marks) == 0:
			_, err = cs.s.Exists(cs.ctx, c.node)
			if err == nil { // Cancel has withdrawn the mark, and the removal was not done
				return false, nil
			}
			if errors.Is(err, framework.ErrNoNode) {
				return true, fmt.Errorf("%w: %w", ErrLost, err)
			}
		case err == nil:
			ops := removal
			for _, mark := range marks {
				ops = append(ops, framework.DeleteOp(mark, framework.AnyVersion))
			}
			_, err = cs.s.Multi(cs.ctx, ops...)
			unknown = true
		}
		var refused *framework.TxError
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &refused) && refused.Index >= len(removal) && errors.Is(err, framework.ErrNoNode):
			unknown = false
			cs.cancels.stopWatch(false)
		case errors.As(err, &refused) && recipe.IsConflict(err):
			// the item was purged, or an earlier try has removed it and its reply was lost
			return true, fmt.Errorf("%w: %w", ErrLost, err)
		case !failure.IsTransient(err) || back.Pause(cs.ctx) != nil:
			return false, err
		}
	}
}

// returnAll gives back all items that were not settled. Only those that were handed out have had an
// attempt.
func (cs *consumerSession) returnAll() {
	seen, unseen := cs.claims.releaseAll()
	var given sync.WaitGroup
	given.Add(len(seen) + len(unseen))
	for _, c := range unseen {
		c.endAndReturn(c.attempt-1, given.Done)
	}
	for _, c := range seen {
		c.endAndReturn(c.attempt, given.Done)
	}
	given.Wait()
}

// releaseAhead gives back what was claimed ahead, if no call of Take has come for a time: other
// consumers may wait for it.
func (cs *consumerSession) releaseAhead(after time.Duration) {
	for _, c := range cs.claims.releaseAhead(after) {
		c.endAndReturn(c.attempt-1, func() {})
	}
}

// linePlace is a consumer session's place in the queue's line. It outlasts all that the consumer
// session has in the queue: the recoverer notices that a place has gone, and would miss a ticket
// that goes later (docs/adr/0021-a-queue-of-segments-and-tickets.md, rule 3).
type linePlace struct {
	ctx    context.Context
	leave  context.CancelFunc
	taken  sync.WaitGroup   // the goroutine that stands in line
	owed   background.Tasks // requests of the consumer session without an outcome
	stands atomic.Bool      // it stands in line, and claims items
	first  atomic.Bool      // it is the first in line
}

// standInLine joins the queue's line, and calls granted when it is first. It returns when the
// consumer stands in line; if it is first, when granted calls ready.
func (cs *consumerSession) standInLine(granted func(lease *locks.Lease, ready func())) error {
	joined := make(chan struct{})
	ready := sync.OnceFunc(func() { close(joined) })
	line := locks.NewMutex(cs.store.client, cs.store.nodes.LockDir, locks.WithOnWait(func(int) { ready() }))
	cs.place.taken.Go(func() {
		lease, err := line.Lock(cs.place.ctx)
		if err != nil {
			cs.endOnError(err)
			return
		}
		defer func() { _ = lease.Release(cs.place.ctx) }() // goes on in the background
		cs.tasks.Start(func() {
			defer ready()
			if lease.Session() == cs.s.ID() {
				cs.place.first.Store(true)
				granted(lease, ready)
			}
			if cs.ctx.Err() == nil {
				cs.endOnError(fmt.Errorf("%w: %w", errPlaceLost, context.Cause(lease.Context())))
			}
		})
		<-cs.place.ctx.Done()
	})
	select {
	case <-joined:
		return nil
	case <-cs.ctx.Done():
		return context.Cause(cs.ctx)
	}
}

// leaveLine leaves the line after the servers have answered all requests of the consumer session,
// or have ended its session.
func (cs *consumerSession) leaveLine() {
	select {
	case <-cs.place.owed.Done():
	case <-cs.s.Done():
	}
	cs.place.leave()
	cs.place.taken.Wait()
}

// writeRequests writes requests before the consumer session leaves the line.
func (cs *consumerSession) writeRequests(requests ...*writeRequest) {
	for _, r := range requests {
		then := r.then
		if !cs.place.owed.Begin() {
			continue
		}
		r.then = func(results []framework.OpResult, err error) {
			defer cs.place.owed.End()
			if then != nil {
				then(results, err)
			}
		}
	}
	cs.writer.addRequests(requests...)
}

// segmentRefs counts the unsettled claims of a consumer session, by segment. When it has left a
// segment behind and settled its claims there, it tries to remove the segment. The servers refuse
// that while other consumers have claims there.
type segmentRefs struct {
	mu sync.Mutex
	n  map[queuelayout.Segment]int
}

func (r *segmentRefs) addClaim(at queuelayout.Segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n[at]++
}

// dropClaim counts one claim less, and reports whether it was the last.
func (r *segmentRefs) dropClaim(at queuelayout.Segment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n[at]--; r.n[at] > 0 {
		return false
	}
	delete(r.n, at)
	return true
}

func (r *segmentRefs) isUnused(at queuelayout.Segment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n[at] == 0
}

// itemSettled counts one claim less in a segment.
func (cs *consumerSession) itemSettled(at queuelayout.Segment) {
	if cs.refs.dropClaim(at) && cs.order.hasPassed(at) {
		cs.removeIfDone(at)
	}
}

// segmentPassed is called when the consumer session has left a segment behind.
func (cs *consumerSession) segmentPassed(at queuelayout.Segment) {
	if cs.refs.isUnused(at) {
		cs.removeIfDone(at)
	}
}

// removeIfDone removes a segment in the background, if it is closed and empty.
func (cs *consumerSession) removeIfDone(at queuelayout.Segment) {
	cs.removals.Start(func() { _ = at.RemoveIfEmpty(cs.s.Context(), cs.s) })
}
