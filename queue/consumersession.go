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
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/locks"
)

// consumerSession is the consumer's part in the queue during one session. It stands in the queue's
// line, claims items for the calls of Take, and settles them.
type consumerSession struct {
	store      *store
	settings   *settings
	writer     *writer
	s          *framework.Session
	id         string          // in the names of tickets
	ctx        context.Context // done when the consumer session ends, with the session at the latest
	cancel     context.CancelCauseFunc
	tasks      background.Tasks
	queueTasks *background.Tasks // the Queue's: what may outlast the consumer session

	order   claimOrder
	claims  *sessionClaims
	gate    *pauseGate
	reads   *batchReader
	cancels *cancelMarks
	refs    segmentRefs
	entry   lineEntry
}

// claimOrder is how a consumer session claims items: in parallel, by tickets, or strictly, under
// the queue's lock.
type claimOrder interface {
	// claimItems claims items until the consumer session ends.
	claimItems() error
	// nextAfterAcks returns requests that claim the next items, to share a transaction with a
	// number of acknowledgements.
	nextAfterAcks(acks int) []*writeRequest
	// returnItem gives an item back after so many attempts, to be claimed again after a time. then
	// is called once with the outcome.
	returnItem(c *claimedItem, attempts int, after time.Duration, reason error, then func(error))
	// returnUnsettled gives the item of an unsettled delivery back. then is called once with the
	// outcome.
	returnUnsettled(c *claimedItem, attempts int, then func(error))
	// hasPassed reports whether the consumer session has left a segment behind.
	hasPassed(segment queuelayout.Segment) bool
	// countClaimable returns how many items of a state the consumer session could claim, and
	// whether that is not decided yet since claims are on their way. first says that it is the
	// first consumer in line. It changes nothing.
	countClaimable(state queueState, first bool) (n int, undecided bool)
}

// errLineLeft ends a consumer session that is no longer in the queue's line; another one begins.
var errLineLeft = fmt.Errorf("the place in line was lost: %w", framework.ErrSessionLost)

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
	cs.entry.stands.Store(true)
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
	if c.decodeErr == nil && c.env.Header.ID != "" {
		removal := c.leaveOps()
		if c.lease != nil {
			removal = append([]framework.Op{c.lease.Guard()}, removal...)
		}
		outcome, err := cs.cancels.removeIfMarked(cs.ctx, c.env.Header, c.node, removal)
		if outcome != itemStays {
			cs.claims.addClaimed(c, false)
			if c.markSettled(ErrSettled) == nil {
				c.endDelivery(err)
			}
			return
		}
		cs.endOnError(err)
	}
	err := c.decodeErr
	if most := cs.settings.maxAttempts; err == nil && most > 0 && c.attempt > most {
		c.attempt--
		err = fmt.Errorf("%w: attempt %d ended without an answer", ErrLost, c.attempt)
		if former := c.formerReason(); former != nil { // a consumer that permits more attempts gave it back
			err = fmt.Errorf("%d attempts are used up, and %d are permitted; the last error is: %w", c.attempt, most, former)
		}
	}
	cs.claims.addClaimed(c, err == nil)
	c.settleWhenLost()
	if err != nil {
		c.buryUnseen(err)
	}
	cs.claims.takes.wakeClaimLoop()
}

// returnAll gives back all items that were not settled. Only those that were handed out have had an
// attempt.
func (cs *consumerSession) returnAll() {
	seen, unseen := cs.claims.releaseAll()
	var returned sync.WaitGroup
	returned.Add(len(seen) + len(unseen))
	then := func(error) { returned.Done() }
	for _, c := range unseen {
		c.endAndReturn(c.attempt-1, then)
	}
	for _, c := range seen {
		c.endAndReturn(c.attempt, then)
	}
	returned.Wait()
}

// releaseAhead gives back what was claimed ahead, if no call of Take has come for a time: other
// consumers may wait for it.
func (cs *consumerSession) releaseAhead(after time.Duration) {
	for _, c := range cs.claims.releaseAhead(after) {
		c.endAndReturn(c.attempt-1, func(error) {})
	}
}

// lineEntry is a consumer session's part in the queue's line. It outlasts all that the consumer
// session has in the queue: the recoverer notices that an entry has gone, and would miss a ticket
// that goes later (docs/adr/0021-a-queue-of-segments-and-tickets.md, rule 3).
type lineEntry struct {
	ctx    context.Context
	leave  context.CancelFunc
	member sync.WaitGroup   // the goroutine that stands in line
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
	cs.entry.member.Go(func() {
		lease, err := line.Lock(cs.entry.ctx)
		if err != nil {
			cs.endOnError(err)
			return
		}
		defer func() { _ = lease.Release(cs.entry.ctx) }() // goes on in the background
		cs.tasks.Start(func() {
			defer ready()
			if lease.Session() == cs.s.ID() {
				cs.entry.first.Store(true)
				granted(lease, ready)
			}
			if cs.ctx.Err() == nil {
				cs.endOnError(fmt.Errorf("%w: %w", errLineLeft, context.Cause(lease.Context())))
			}
		})
		<-cs.entry.ctx.Done()
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
	case <-cs.entry.owed.Done():
	case <-cs.s.Done():
	}
	cs.entry.leave()
	cs.entry.member.Wait()
}

// writeRequests writes requests before the consumer session leaves the line.
func (cs *consumerSession) writeRequests(requests ...*writeRequest) {
	for _, r := range requests {
		then := r.then
		if !cs.entry.owed.Begin() {
			continue
		}
		r.then = func(results []framework.OpResult, err error) {
			defer cs.entry.owed.End()
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
	mu     sync.Mutex
	claims map[queuelayout.Segment]int
}

func (r *segmentRefs) addClaim(segment queuelayout.Segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims[segment]++
}

// dropClaim counts one claim less, and reports whether it was the last.
func (r *segmentRefs) dropClaim(segment queuelayout.Segment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claims[segment]--; r.claims[segment] > 0 {
		return false
	}
	delete(r.claims, segment)
	return true
}

func (r *segmentRefs) isUnused(segment queuelayout.Segment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claims[segment] == 0
}

// itemSettled counts one claim less in a segment.
func (cs *consumerSession) itemSettled(segment queuelayout.Segment) {
	if cs.refs.dropClaim(segment) && cs.order.hasPassed(segment) {
		cs.removeIfDone(segment)
	}
}

// segmentPassed is called when the consumer session has left a segment behind.
func (cs *consumerSession) segmentPassed(segment queuelayout.Segment) {
	if cs.refs.isUnused(segment) {
		cs.removeIfDone(segment)
	}
}

// removeIfDone removes a segment in the background, if it is closed and empty.
func (cs *consumerSession) removeIfDone(segment queuelayout.Segment) {
	cs.queueTasks.Start(func() { _ = segment.RemoveIfEmpty(cs.s.Context(), cs.s) })
}

// batchReader reads the items of a consumer session, many in one request. Reads that are asked for
// during a request share the next one. A full request does not wait.
type batchReader struct {
	ctx   context.Context // the consumer session's
	s     *framework.Session
	tasks *background.Tasks

	mu       sync.Mutex
	asked    []batchRead
	inFlight int // requests on their way
	most     int // reads in a request
}

func newBatchReader(ctx context.Context, s *framework.Session, tasks *background.Tasks) *batchReader {
	return &batchReader{ctx: ctx, s: s, tasks: tasks, most: firstBatchReads}
}

// batchRead is an item to read.
type batchRead struct {
	path string
	then func(framework.Node) // must not block
}

// Limits of a request. The size of an item is unknown before it was read, so the largest item of
// the last answer counts. If all items suddenly have the largest size, maxBatchReads keeps an
// answer below 16 MiB.
const (
	firstBatchReads = 8
	maxBatchReads   = 16
	maxReadRequests = 8 // on their way
	maxAnswerBytes  = 256 << 10
)

// readAsync reads an item and calls then with the answer.
func (b *batchReader) readAsync(path string, then func(framework.Node)) {
	b.mu.Lock()
	b.asked = append(b.asked, batchRead{path, then})
	start := b.inFlight == 0 || b.inFlight < maxReadRequests && len(b.asked) >= b.most
	if start {
		b.inFlight++
	}
	b.mu.Unlock()
	if start && !b.tasks.Start(b.readBatches) {
		b.readBatches() // the consumer session has ended: all reads fail
	}
}

// readAndWait reads an item.
func (b *batchReader) readAndWait(ctx context.Context, path string) framework.Node {
	answer := make(chan framework.Node, 1)
	b.readAsync(path, func(n framework.Node) { answer <- n })
	select {
	case n := <-answer:
		return n
	case <-ctx.Done():
		return framework.Node{Err: context.Cause(ctx)}
	}
}

func (b *batchReader) readBatches() {
	for {
		batch := b.nextBatch()
		if len(batch) == 0 {
			return
		}
		b.readBatch(batch)
	}
}

func (b *batchReader) nextBatch() (batch []batchRead) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.asked), b.most)
	if n < b.most && b.inFlight > 1 { // the request that is answered first takes the rest along
		n = 0
	}
	if n == 0 {
		b.inFlight--
	}
	batch, b.asked = b.asked[:n:n], b.asked[n:]
	return batch
}

// readBatch reads a batch in one request, or by halves if the answer would be too large.
func (b *batchReader) readBatch(batch []batchRead) {
	paths := make([]string, len(batch))
	for i, read := range batch {
		paths[i] = read.path
	}
	nodes, err := b.s.GetAll(b.ctx, paths...)
	if errors.Is(err, framework.ErrTooLarge) && len(batch) > 1 {
		b.readBatch(batch[:len(batch)/2])
		b.readBatch(batch[len(batch)/2:])
		return
	}
	if err == nil {
		b.adjustBatchSize(nodes)
	}
	for i, read := range batch {
		if err != nil {
			read.then(framework.Node{Err: err})
		} else {
			read.then(nodes[i])
		}
	}
}

// adjustBatchSize sets how many reads may share a request, by the size of the items that were read.
func (b *batchReader) adjustBatchSize(nodes []framework.Node) {
	largest := 1
	for _, n := range nodes {
		largest = max(largest, len(n.Data))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = max(1, min(maxAnswerBytes/largest, maxBatchReads, 2*b.most))
}
