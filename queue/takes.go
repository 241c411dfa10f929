package queue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// takeQueue holds the calls of Take of one Queue, in order. It hands claimed items out to them,
// over all consumer sessions.
type takeQueue struct {
	openCtx       context.Context // done when the Queue is being closed
	startConsumer func() bool     // false if the Queue has ended
	changed       chan struct{}   // has a token when the consumer session has to claim again

	mu      sync.Mutex // also that of the claims: calls and items meet under it
	calls   []*takeCall
	running bool           // the consumer runs
	claims  *sessionClaims // of the present consumer session, or nil
	last    time.Time      // when a call of Take last began or got an item, or a delivery was last settled
}

// takeCall is one call of Take.
type takeCall struct {
	got chan takeResult // buffered: gets the result once
}

type takeResult struct {
	item *claimedItem
	err  error
}

func newTakeCall() *takeCall { return &takeCall{make(chan takeResult, 1)} }

// take waits for an item.
func (q *takeQueue) take(ctx context.Context) (*claimedItem, error) {
	call := newTakeCall()
	if err := q.enqueueCall(call); err != nil {
		return nil, err
	}
	select {
	case got := <-call.got:
		return got.item, got.err
	case <-ctx.Done():
		if item := q.removeCall(call); item != nil {
			q.handToNextCall(item)
		}
		return nil, failure.Ended(ctx)
	}
}

// enqueueCall queues a call, and starts the consumer if it does not run.
func (q *takeQueue) enqueueCall(call *takeCall) error {
	if err := context.Cause(q.openCtx); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.running {
		if !q.startConsumer() {
			return errClosed
		}
		q.running = true
	}
	q.calls = append(q.calls, call)
	q.last = time.Now()
	if q.claims != nil {
		q.claims.expected = max(0, q.claims.expected-1)
		q.claims.handOutReady()
	}
	q.wakeClaimLoop()
	return nil
}

// removeCall removes a call, and returns what it was handed meanwhile, or nil.
func (q *takeQueue) removeCall(call *takeCall) *claimedItem {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = slices.DeleteFunc(q.calls, func(other *takeCall) bool { return other == call })
	q.wakeClaimLoop()
	select {
	case got := <-call.got:
		return got.item
	default:
		return nil
	}
}

// takeReady takes an item that was claimed ahead, if no call waits; or returns nil.
func (q *takeQueue) takeReady() *claimedItem {
	call := newTakeCall()
	q.mu.Lock()
	if q.claims != nil && len(q.claims.ready) > 0 && len(q.calls) == 0 {
		q.calls = append(q.calls, call)
		q.last = time.Now()
		q.claims.handOutReady()
	}
	q.mu.Unlock()
	return q.removeCall(call)
}

// handToNextCall hands an item to the next call, after the call that got it has ended.
func (q *takeQueue) handToNextCall(c *claimedItem) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if claims := c.session.claims; q.claims == claims && claims.handedOut[c] {
		delete(claims.handedOut, c)
		claims.ready = slices.Insert(claims.ready, 0, c)
		claims.handOutReady()
	}
}

// wakeClaimLoop makes the consumer session claim again: something has changed.
func (q *takeQueue) wakeClaimLoop() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// failAll ends all calls with an error. The consumer has ended.
func (q *takeQueue) failAll(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, call := range q.calls {
		call.got <- takeResult{err: err}
	}
	q.calls, q.running = nil, false
}

// endUnlessCalled reports whether the consumer may end: no call waits.
func (q *takeQueue) endUnlessCalled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = len(q.calls) > 0
	return !q.running
}

func (q *takeQueue) isRunning() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running
}

// setClaims makes claims those of the present consumer session; nil if there is no session.
func (q *takeQueue) setClaims(claims *sessionClaims) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claims = claims
}

// sessionClaims are the claims of one consumer session, counted against its window.
type sessionClaims struct {
	mu       *sync.Mutex // of takes
	takes    *takeQueue
	ctx      context.Context // the consumer session's
	gate     *pauseGate
	settings *settings
	size     int // of the window

	// Guarded by mu.
	claiming  int                   // claims on their way
	awaited   map[string]bool       // the items that claims on their way wait for, by their nodes
	ready     []*claimedItem        // claimed, and not handed out
	handedOut map[*claimedItem]bool // handed out, and not settled
	settling  int                   // being settled
	largest   int                   // bytes of the largest recent item, or 0
	expected  int                   // calls of Take that are expected because deliveries were acknowledged
	waitCtx   context.Context       // of claims that wait for items: done after the idle timeout without a call of Take
	endWaits  context.CancelFunc    // ends waitCtx
}

func newSessionClaims(takes *takeQueue, ctx context.Context, gate *pauseGate, settings *settings,
	size int) *sessionClaims {
	s := &sessionClaims{mu: &takes.mu, takes: takes, ctx: ctx, gate: gate, settings: settings, size: size,
		awaited: map[string]bool{}, handedOut: map[*claimedItem]bool{}}
	s.waitCtx, s.endWaits = context.WithCancel(ctx)
	return s
}

// handOutReady hands ready items out to the calls that wait; mu is held.
func (s *sessionClaims) handOutReady() {
	if s.ctx.Err() != nil || !s.gate.isOpen() { // ready items go back, or wait for the end of the pause
		return
	}
	for len(s.ready) > 0 && len(s.takes.calls) > 0 {
		item := s.ready[0]
		s.ready = s.ready[1:]
		if item.hold.Err() != nil {
			continue
		}
		call := s.takes.calls[0]
		s.takes.calls = s.takes.calls[1:]
		s.handedOut[item] = true
		s.takes.last = time.Now()
		call.got <- takeResult{item: item}
	}
}

// handOutAfterPause hands out the items that were ready during a pause.
func (s *sessionClaims) handOutAfterPause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handOutReady()
	s.takes.wakeClaimLoop()
}

// reserveClaims counts as many claims as are wanted, up to most, and returns their number. On
// demand, only claims for waiting calls of Take are wanted.
func (s *sessionClaims) reserveClaims(most int, onDemand bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := len(s.takes.calls)
	if !onDemand {
		wanted += max(s.expected, s.wantedAhead(wanted))
	}
	mine := s.claiming + len(s.ready)
	n = max(0, min(most, wanted-mine, s.size-mine-len(s.handedOut)))
	s.claiming += n
	return n
}

// wantedAhead is how many claims to make ahead of the calls of Take, when so many calls wait.
func (s *sessionClaims) wantedAhead(waiting int) int {
	if waiting == 0 && time.Since(s.takes.last) >= s.settings.idleTimeout {
		return 0
	}
	if s.largest == 0 { // the size of items is unknown
		return min(s.settings.prefetch, firstBatchReads)
	}
	return min(s.settings.prefetch, max(1, s.settings.prefetchBytes/s.largest))
}

// claimsFailed counts n claims that came to an end without an item.
func (s *sessionClaims) claimsFailed(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claiming -= n
	s.takes.wakeClaimLoop()
}

// addClaimed hands an item out, or keeps it ready. An item for the dead letters is not handed out.
func (s *sessionClaims) addClaimed(c *claimedItem, handOut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claiming--
	s.largest = max(1, len(c.env.Payload), s.largest-s.largest/8)
	if handOut {
		s.ready = append(s.ready, c)
		s.handOutReady()
	} else {
		s.handedOut[c] = true
	}
}

// beginSettling makes room for another delivery: this one is being settled.
func (s *sessionClaims) beginSettling(c *claimedItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moveToSettling(c)
}

// moveToSettling moves an item that was handed out to those being settled. It removes any other
// item from ready, unless that is being settled already; mu is held.
func (s *sessionClaims) moveToSettling(c *claimedItem) {
	switch {
	case s.handedOut[c]:
		delete(s.handedOut, c)
		c.settling = true
		s.settling++
		s.restartIdleTimeout(c)
	case !c.settling:
		s.ready = slices.DeleteFunc(s.ready, func(other *claimedItem) bool { return other == c })
	}
}

// removeSettled counts an item that was settled, or lost.
func (s *sessionClaims) removeSettled(c *claimedItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moveToSettling(c)
	if c.settling {
		s.settling--
	}
	s.restartIdleTimeout(c)
	s.takes.wakeClaimLoop()
}

// restartIdleTimeout begins the idle timeout again, unless no caller has had the item; mu is held.
func (s *sessionClaims) restartIdleTimeout(c *claimedItem) {
	if !c.unseen {
		s.takes.last = time.Now()
	}
}

// expectTakes expects n calls of Take more, or less if n is negative.
func (s *sessionClaims) expectTakes(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = max(0, min(s.expected+n, s.size))
}

// isBusy reports whether a claim is on its way or a delivery is open.
func (s *sessionClaims) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claiming+len(s.ready)+len(s.handedOut) > 0
}

// isIdle reports whether the consumer session was not used for the idle timeout, or else how long
// to wait before the next look.
func (s *sessionClaims) isIdle() (bool, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.settings.idleTimeout - time.Since(s.takes.last)
	if len(s.takes.calls) > 0 || len(s.handedOut) > 0 || s.settling > 0 {
		left = s.settings.idleTimeout
	}
	return left <= 0, left
}

// waitContext is the context of claims that wait for items.
func (s *sessionClaims) waitContext() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waitCtx
}

// releaseAhead ends the claims made ahead, if no call of Take has come for a time. It returns the
// ready items, which the caller returns to the queue.
func (s *sessionClaims) releaseAhead(after time.Duration) []*claimedItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	unused := len(s.takes.calls) == 0 && time.Since(s.takes.last) >= after
	if !unused || s.claiming+len(s.ready)+s.expected == 0 {
		return nil
	}
	defer s.endWaits()
	s.expected = 0
	s.waitCtx, s.endWaits = context.WithCancel(s.ctx)
	return s.takeUnseen()
}

// releaseReady returns the items that have not reached a call of Take, which the caller returns to
// the queue.
func (s *sessionClaims) releaseReady() []*claimedItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeUnseen()
}

// releaseIfReady reports whether an item was ready. If it was, the caller returns it to the queue.
func (s *sessionClaims) releaseIfReady(c *claimedItem) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.ready, c)
	if i < 0 {
		return false
	}
	s.ready = slices.Delete(s.ready, i, i+1)
	c.unseen = true
	s.handedOut[c] = true
	return true
}

// releaseAll returns the items that were handed out, and those that were not. The caller returns
// both to the queue.
func (s *sessionClaims) releaseAll() (seen, unseen []*claimedItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.handedOut)), s.takeUnseen()
}

// takeUnseen takes the ready items; mu is held.
func (s *sessionClaims) takeUnseen() []*claimedItem {
	ready := s.ready
	s.ready = nil
	for _, c := range ready {
		c.unseen = true
		s.handedOut[c] = true
	}
	return ready
}

// readyItems are the claimed items that have not reached a call of Take.
func (s *sessionClaims) readyItems() []*claimedItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ready)
}

// openItems are the items that were handed out and are not being settled. undecided says that
// other claims are on their way, ready, or being settled.
func (s *sessionClaims) openItems() (items []*claimedItem, undecided bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.handedOut)), s.claiming+s.settling+len(s.ready) > 0
}

// isFull reports whether the window has no room for another delivery.
func (s *sessionClaims) isFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handedOut) >= s.size
}

// setAwaited records, for TryTake, whether a claim waits for an item.
func (s *sessionClaims) setAwaited(item string, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waits {
		s.awaited[item] = true
	} else {
		delete(s.awaited, item)
	}
}

// awaitedItems are the items that claims wait for.
func (s *sessionClaims) awaitedItems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.awaited))
}

// mayDeliver reports whether an item is ready, or a claim is on its way that waits for none of some
// items. Claims that have waited for one of these before may have got it.
func (s *sessionClaims) mayDeliver(except []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	undecided := s.claiming
	for _, item := range except {
		if s.awaited[item] {
			undecided--
		}
	}
	return undecided > 0 || len(s.ready) > 0
}

// pauseGate is closed while the queue is paused: no items are handed out. It is closed until the
// servers have said that the queue is not paused.
type pauseGate struct {
	mu       sync.Mutex
	opened   chan struct{} // closed while the gate is open
	paused   bool
	onResume func() // called after the gate has opened, without a lock
}

func newPauseGate() *pauseGate { return &pauseGate{opened: make(chan struct{}), paused: true} }

// followNode opens and closes the gate with the node, until ctx ends.
func (g *pauseGate) followNode(ctx context.Context, s *framework.Session, node string) error {
	for {
		_, w, err := s.WatchExists(ctx, node)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			g.setPaused(false)
		case err != nil:
			return err
		default:
			g.setPaused(true)
		}
		if err := waitForWatch(ctx, w); err != nil {
			return err
		}
	}
}

func (g *pauseGate) setPaused(paused bool) {
	g.mu.Lock()
	changed := g.paused != paused
	g.paused = paused
	switch {
	case changed && paused:
		g.opened = make(chan struct{})
	case changed:
		close(g.opened)
	}
	g.mu.Unlock()
	if changed && !paused {
		g.onResume()
	}
}

func (g *pauseGate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.paused
}

// waitUntilOpen waits until the queue is not paused.
func (g *pauseGate) waitUntilOpen(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened: // also if ctx has ended
		return nil
	default:
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
