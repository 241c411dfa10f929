package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// consumerSession is a consumer's time on one session.
type consumerSession struct {
	c      *consumer
	q      *engine
	s      *framework.Session
	id     string
	ctx    context.Context // done when the consumer session is over, with the session at the latest
	cancel context.CancelCauseFunc
	tasks  taskGroup
	owed   taskGroup // parts on their way
	place  lockPlace
	gate   pauseGate
	reads  *batchReader
	stock  segmentRefs
	strict *strictConsumer // of a strict queue's consumer that has the lock; guarded by c.mu
	lines  *segmentViews   // of a parallel queue

	// Guarded by c.mu.
	making        int                // claims on their way
	ready         []*delivery        // claimed, and not handed out
	held          map[*delivery]bool // handed out, and not settled
	ending        int                // being settled
	largest       int                // bytes of the largest item of lately, or 0
	expectedTakes int                // calls of Take that are expected, since deliveries were settled
	takeWindow    takeWindow
	waiting       map[string]bool // the items that tickets wait for
	inLine        bool            // the consumer stands in the queue's line, and claims
	leads         bool            // and is the first there
}

func newConsumerSession(c *consumer, s *framework.Session) *consumerSession {
	sh := &consumerSession{c: c, q: c.q, s: s, id: uuid.NewString()[:8], held: map[*delivery]bool{}, waiting: map[string]bool{}, stock: segmentRefs{n: map[segmentID]int{}}}
	sh.ctx, sh.cancel = context.WithCancelCause(c.q.work)
	sh.takeWindow = newTakeWindow(sh.ctx)
	sh.place.ctx, sh.place.leave = context.WithCancel(s.Context())
	sh.gate.init(func() { c.handOutAfterPause(sh) })
	sh.reads = newBatchReader(sh)
	sh.lines = newSegmentViews(c.q, s, sh.id, sh.segmentPassed)
	return sh
}

// runUntilIdle works until the session or the Queue ends, or nobody calls Take any more.
func (sh *consumerSession) runUntilIdle() error {
	stop := context.AfterFunc(sh.s.Context(), func() { sh.cancel(context.Cause(sh.s.Context())) })
	defer stop()
	sh.tasks.start(func() { sh.end(sh.gate.watchPause(sh.ctx, sh.s, sh.q.below(pausedNode))) })
	sh.tasks.start(func() { sh.end(sh.q.watchRecord(sh.ctx, sh.s)) })
	err := sh.claimItems()
	sh.end(err)
	<-sh.tasks.done()
	sh.returnPrefetched()
	sh.leaveLine()
	return err
}

func (sh *consumerSession) claimItems() error {
	if sh.q.storedRecord().Order == Strict {
		return sh.consumeStrictly()
	}
	return sh.claimInParallel()
}

// end ends the consumer session; only the first error counts.
func (sh *consumerSession) end(err error) {
	if err != nil {
		sh.cancel(err)
	}
}

// beginClaims tells how many claims to begin, up to most, and counts them as begun. On demand means that calls of Take
// wait for them.
func (sh *consumerSession) beginClaims(most int, onDemand bool) (n int) {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	wanted := len(sh.c.waits)
	if !onDemand {
		wanted += max(sh.expectedTakes, sh.claimsAhead(wanted))
	}
	mine := sh.making + len(sh.ready)
	n = max(0, min(most, wanted-mine, sh.q.windowSize()-mine-len(sh.held)))
	sh.making += n
	return n
}

// claimsAhead is how many claims to make ahead of the calls of Take, of which so many wait.
func (sh *consumerSession) claimsAhead(waiting int) int {
	if waiting == 0 && time.Since(sh.c.last) >= sh.q.idleTimeout {
		return 0
	}
	if sh.largest == 0 { // nothing is known of the items so far
		return min(sh.q.prefetch, firstLookups)
	}
	return min(sh.q.prefetch, max(1, sh.q.prefetchBytes/sh.largest))
}

// busy reports whether a claim is on its way or a delivery is open.
func (sh *consumerSession) busy() bool {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	return sh.making+len(sh.ready)+len(sh.held) > 0
}

// claimFailed counts a claim that came to nothing.
func (sh *consumerSession) claimFailed() {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	sh.making--
	sh.c.kick()
}

// offerDelivery hands a delivery out, or keeps it until somebody takes it. An item that cannot be read, or has used up its
// attempts, goes to the dead letters instead.
func (sh *consumerSession) offerDelivery(d *delivery) {
	err := d.decodeErr
	if most := sh.q.maxAttempts; err == nil && most > 0 && d.attempt > most {
		d.attempt--
		err = fmt.Errorf("%w: attempt %d ended without an answer", ErrLost, d.attempt)
	}
	sh.c.mu.Lock()
	sh.making--
	sh.largest = max(1, len(d.env.payload), sh.largest-sh.largest/8)
	if err == nil {
		sh.ready = append(sh.ready, d)
		sh.c.handOut(sh)
	} else {
		sh.held[d] = true
	}
	sh.c.mu.Unlock()
	d.settleWhenLost()
	if err != nil && d.markSettled(ErrSettled) == nil {
		d.moveToDeadLetters(err, func(error) {})
	}
	sh.c.kick()
}

// deliverySettling makes room for another delivery: this one is on its way out.
func (sh *consumerSession) deliverySettling(d *delivery) {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	sh.ready = slices.DeleteFunc(sh.ready, func(other *delivery) bool { return other == d })
	if !sh.held[d] {
		return
	}
	delete(sh.held, d)
	d.leaves = true
	sh.ending++
	sh.noteUse(d)
}

// expectTake expects another call of Take, as mostly follows an acknowledgement.
func (sh *consumerSession) expectTake() {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	if sh.strict == nil {
		sh.expectedTakes = min(sh.expectedTakes+1, sh.q.windowSize())
	}
}

// expectTakeLess expects one call of Take less.
func (sh *consumerSession) expectTakeLess() {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	sh.expectedTakes = max(0, sh.expectedTakes-1)
}

// deliveryClosed takes in that a delivery was settled, or could not be.
func (sh *consumerSession) deliveryClosed(d *delivery) {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	if d.leaves {
		sh.ending--
	}
	sh.noteUse(d)
	sh.c.kick()
}

// noteUse notes that somebody needs the consumer session, unless nobody has seen the delivery. c.mu is held.
func (sh *consumerSession) noteUse(d *delivery) {
	if !d.unseen {
		sh.c.last = time.Now()
	}
}

// isIdle reports whether nobody has needed the consumer session for a while, or else when to ask again.
func (sh *consumerSession) isIdle() (bool, time.Duration) {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	left := sh.q.idleTimeout - time.Since(sh.c.last)
	if len(sh.c.waits) > 0 || len(sh.held) > 0 || sh.ending > 0 {
		left = sh.q.idleTimeout
	}
	return left <= 0, left
}

// claimLoop calls work whenever something may have changed, and rested when nothing has for the idle timeout, until the
// consumer session ends.
func (sh *consumerSession) claimLoop(work, rested func()) error {
	sh.c.mu.Lock()
	sh.inLine = true
	sh.c.mu.Unlock()
	for sh.ctx.Err() == nil {
		work()
		idle, left := sh.isIdle()
		if idle {
			return errIdle
		}
		timer := time.NewTimer(left)
		select {
		case <-sh.c.kicked:
		case <-timer.C:
			rested()
		case <-sh.ctx.Done():
		}
		timer.Stop()
	}
	return context.Cause(sh.ctx)
}

// errSessionReplaced ends a consumer session that another one has to take the place of.
var errSessionReplaced = fmt.Errorf("the place in line was lost: %w", framework.ErrSessionLost)

// errTakenBack is why a delivery cannot be settled after its Queue was closed.
var errTakenBack = fmt.Errorf("%w: %w", ErrLost, ErrClosed)

// nextRequests are the parts of claims that can begin at once, to share a transaction with what makes room for them.
func (sh *consumerSession) nextRequests() []*writeRequest {
	if sh.ctx.Err() != nil {
		return nil
	}
	if d := sh.currentStrictConsumer(); d != nil {
		return d.nextParts()
	}
	if sh.q.storedRecord().Order == Strict {
		return nil
	}
	return sh.nextDraws()
}

// lockPlace is a consumer session's in the queue's line. It outlasts all that the consumer session has of the queue: what goes with a session later
// than the place is missed by nobody (docs/adr/0021-a-queue-of-segments-and-tickets.md, rule 3).
type lockPlace struct {
	ctx   context.Context
	leave context.CancelFunc
	taken sync.WaitGroup
}

// standInLine joins the queue's line and calls granted when it is first. It returns once the consumer stands in line, and
// where that is its head, once granted says so.
func (sh *consumerSession) standInLine(granted func(lease *locks.Lease, ready func())) error {
	joined := make(chan struct{})
	ready := sync.OnceFunc(func() { close(joined) })
	line := locks.NewMutex(sh.q.client, sh.q.below(lockDir), locks.WithOnWait(func(int) { ready() }))
	sh.place.taken.Go(func() {
		lease, err := line.Lock(sh.place.ctx)
		if err != nil {
			sh.end(err)
			return
		}
		defer func() { _ = lease.Release(context.WithoutCancel(sh.place.ctx)) }() // never fails
		sh.tasks.start(func() {
			defer ready()
			if lease.Session() == sh.s.ID() {
				sh.c.mu.Lock()
				sh.leads = true
				sh.c.mu.Unlock()
				granted(lease, ready)
			}
			if sh.ctx.Err() == nil {
				sh.end(fmt.Errorf("%w: %w", errSessionReplaced, context.Cause(lease.Context())))
			}
		})
		<-sh.place.ctx.Done()
	})
	select {
	case <-joined:
		return nil
	case <-sh.ctx.Done():
		return context.Cause(sh.ctx)
	}
}

// leaveLine leaves the line once the servers have all that the consumer session has written, or have ended its session.
func (sh *consumerSession) leaveLine() {
	select {
	case <-sh.owed.done():
	case <-sh.s.Done():
	}
	sh.place.leave()
	sh.place.taken.Wait()
}

// writeTracked writes parts of the consumer session's, before it leaves the line.
func (sh *consumerSession) writeTracked(parts ...*writeRequest) {
	for _, p := range parts {
		then := p.then
		if !sh.owed.begin() {
			continue
		}
		p.then = func(results []framework.OpResult, err error) {
			defer sh.owed.finish()
			if then != nil {
				then(results, err)
			}
		}
	}
	sh.q.writer.add(parts...)
}

// segmentRefs counts by segment what a consumer session has asked for and not settled. When it has passed a segment and has
// nothing of it any more, it tries to remove it; the servers refuse while others have something of it.
type segmentRefs struct {
	mu sync.Mutex
	n  map[segmentID]int
}

// segmentID is a segment of a line.
type segmentID struct {
	line itemLine
	seg  int64
}

func (st *segmentRefs) addRef(at segmentID) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.n[at]++
}

// dropRef counts one less, and reports whether it was the last.
func (st *segmentRefs) dropRef(at segmentID) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.n[at]--; st.n[at] > 0 {
		return false
	}
	delete(st.n, at)
	return true
}

func (st *segmentRefs) empty(at segmentID) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.n[at] == 0
}

// itemSettled takes in that the consumer session has one item less of a segment.
func (sh *consumerSession) itemSettled(at segmentID) {
	if sh.stock.dropRef(at) && sh.hasPassed(at) {
		sh.removeIfDone(at)
	}
}

// segmentPassed takes in that the consumer session has passed a segment.
func (sh *consumerSession) segmentPassed(at segmentID) {
	if sh.stock.empty(at) {
		sh.removeIfDone(at)
	}
}

// removeIfDone removes a segment, if it is closed and empty.
func (sh *consumerSession) removeIfDone(at segmentID) {
	sh.q.tasks.start(func() { _ = at.line.removeSegment(sh.s.Context(), sh.s, at.seg) })
}

// hasPassed reports whether the consumer session has left a segment behind.
func (sh *consumerSession) hasPassed(at segmentID) bool {
	if d := sh.currentStrictConsumer(); d != nil {
		return d.linePassed(at)
	}
	return sh.lines.isBehind(at)
}

// takeWindow is how long claims may wait for items: until nobody has called Take for the idle timeout.
type takeWindow struct {
	ctx context.Context
	end context.CancelFunc
}

func newTakeWindow(shift context.Context) (s takeWindow) {
	s.ctx, s.end = context.WithCancel(shift)
	return s
}

// patience is the present take window's.
func (sh *consumerSession) patience() context.Context {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	return sh.takeWindow.ctx
}

// giveBackAhead gives back what was claimed ahead if nobody has called Take for a time: others may wait for it.
func (sh *consumerSession) giveBackAhead(after time.Duration) {
	sh.c.mu.Lock()
	waited := len(sh.c.waits) == 0 && time.Since(sh.c.last) >= after
	if !waited || sh.making+len(sh.ready)+sh.expectedTakes == 0 {
		sh.c.mu.Unlock()
		return
	}
	over := sh.takeWindow
	sh.expectedTakes, sh.takeWindow = 0, newTakeWindow(sh.ctx)
	unseen := sh.takeReady()
	sh.c.mu.Unlock()
	over.end()
	var given sync.WaitGroup // nobody waits for it
	for _, d := range unseen {
		d.takeBack(d.attempt-1, &given)
	}
}

// takeReady takes what nobody was handed. c.mu is held.
func (sh *consumerSession) takeReady() []*delivery {
	ready := sh.ready
	sh.ready = nil
	for _, d := range ready {
		d.unseen = true
		sh.held[d] = true
	}
	return ready
}

// returnPrefetched ends what is left of the consumer session's deliveries, and gives their items back. Only those that were handed out
// have had an attempt.
func (sh *consumerSession) returnPrefetched() {
	sh.c.mu.Lock()
	held := slices.Collect(maps.Keys(sh.held))
	ready := sh.takeReady()
	sh.c.mu.Unlock()
	var given sync.WaitGroup
	for _, d := range ready {
		d.takeBack(d.attempt-1, &given)
	}
	for _, d := range held {
		d.takeBack(d.attempt, &given)
	}
	given.Wait()
}

// takeBack ends a delivery that nobody has settled, and gives its item back as if it had so many attempts.
func (d *delivery) takeBack(attempts int, given *sync.WaitGroup) {
	if d.markSettled(errTakenBack) != nil {
		return
	}
	d.tenure.End(ErrClosed)
	given.Add(1)
	d.putBack(attempts, func(error) { given.Done() })
}

// pauseGate is closed while the queue is paused: nothing is handed out.
type pauseGate struct {
	mu   sync.Mutex
	open chan struct{} // closed while open
	shut bool
	wake func() // called when it has opened, without a lock
}

func (g *pauseGate) init(wake func()) { g.open, g.shut, g.wake = make(chan struct{}), true, wake }

func (g *pauseGate) set(shut bool) {
	g.mu.Lock()
	changed := g.shut != shut
	g.shut = shut
	switch {
	case changed && shut:
		g.open = make(chan struct{})
	case changed:
		close(g.open)
	}
	g.mu.Unlock()
	if changed && !shut {
		g.wake()
	}
}

func (g *pauseGate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.shut
}

// waitUntilOpen waits until the queue is not paused.
func (g *pauseGate) waitUntilOpen(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	default:
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watchPause opens and closes the gate until ctx ends.
func (g *pauseGate) watchPause(ctx context.Context, s *framework.Session, node string) error {
	for {
		_, w, err := s.WatchExists(ctx, node)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			g.set(false)
		case err != nil:
			return err
		default:
			g.set(true)
		}
		select {
		case <-w.C():
		case <-ctx.Done():
			w.Stop()
			return context.Cause(ctx)
		}
	}
}
