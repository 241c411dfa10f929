package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// writer sends all that a Queue writes, one transaction at a time. All requests that came in during
// a transaction share the next one. The marker shows whether a transaction was applied if its
// reply was lost.
type writer struct {
	writerConfig

	mu      sync.Mutex
	queue   []*writeRequest
	bytes   int // of the requests without an outcome
	running bool

	// Used only by the goroutine that writes.
	marker   writeMarker
	appender segmentAppender
	room     capacityCounter
	ids      dedupBuckets
}

// writerConfig is what a writer needs of its Queue.
type writerConfig struct {
	store       *store
	segmentSize int64
	openCtx     context.Context // done when the Queue is being closed
	writeCtx    context.Context // done when writing ends
	tasks       *background.Tasks
	putsWait    func() bool // reports whether puts of this Queue wait for room
}

func newWriter(c writerConfig) *writer {
	return &writer{writerConfig: c, marker: writeMarker{store: c.store}, appender: newAppender(c.store, c.segmentSize),
		room: capacityCounter{store: c.store}, ids: dedupBuckets{store: c.store, tasks: c.tasks, openCtx: c.openCtx}}
}

// Limits of a transaction.
const (
	maxTransaction = 512 << 10 // bytes
	maxRequests    = 1000
)

// addRequests queues requests, which share a transaction if they fit. The then of each is called in
// any case.
func (w *writer) addRequests(requests ...*writeRequest) {
	if len(requests) > 0 {
		_ = w.addWithin(0, requests...)
	}
}

// addWithin is addRequests with a bound: it returns ErrBacklog if requests are waiting and more
// than most bytes would wait. 0 is no bound.
func (w *writer) addWithin(most int, requests ...*writeRequest) error {
	size := 0
	for _, r := range requests {
		r.measureSize()
		size += r.size
	}
	w.mu.Lock()
	if most > 0 && w.bytes > 0 && w.bytes+size > most {
		defer w.mu.Unlock()
		return fmt.Errorf("%w: %d bytes, at most %d", ErrBacklog, w.bytes+size, most)
	}
	w.queue = append(w.queue, requests...)
	w.bytes += size
	start := !w.running
	w.running = true
	w.mu.Unlock()
	if start && !w.tasks.Start(w.writeQueued) { // the Queue has ended
		for requests := w.nextBatch(); len(requests) > 0; requests = w.nextBatch() {
			w.finishAll(requests, errClosed)
		}
	}
	return nil
}

// writeAndWait queues a request and waits for its outcome. If ctx ends first, the request is
// withdrawn, or its outcome is unknown: framework.ErrOutcomeUnknown.
func (w *writer) writeAndWait(ctx context.Context, r *writeRequest) ([]framework.OpResult, error) {
	type outcome struct {
		results []framework.OpResult
		err     error
	}
	done := make(chan outcome, 1)
	r.then = func(results []framework.OpResult, err error) { done <- outcome{results, err} }
	w.addRequests(r)
	select {
	case o := <-done:
		return o.results, o.err
	case <-ctx.Done():
		if w.withdrawRequest(r) {
			return nil, failure.Ended(ctx)
		}
		return nil, fmt.Errorf("%w: %w", failure.Ended(ctx), errUnknown)
	}
}

// withdrawRequest takes a request back, and frees its memory unless the writer has taken the
// request into a batch, whose operations it reads. It returns false if the request is on its way,
// or has an outcome.
func (w *writer) withdrawRequest(r *writeRequest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.state != requestQueued {
		return false
	}
	r.state = requestDone
	w.bytes -= r.size
	if i := slices.Index(w.queue, r); i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
		r.ops, r.items = nil, nil
	}
	return true
}

// writeQueued writes until the queue is empty.
func (w *writer) writeQueued() {
	for requests := w.nextBatch(); len(requests) > 0; requests = w.nextBatch() {
		w.writeBatch(requests)
	}
}

// nextBatch takes as many requests as may share a transaction.
func (w *writer) nextBatch() (batch []*writeRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	size := 0
	for len(w.queue) > 0 && len(batch) < maxRequests {
		r := w.queue[0]
		if len(batch) > 0 && size+r.size > maxTransaction {
			break
		}
		size += r.size
		batch = append(batch, r)
		w.queue[0] = nil
		w.queue = w.queue[1:]
	}
	w.running = len(batch) > 0
	return batch
}

// writeBatch writes requests, in as many transactions as it takes, until each has its outcome.
func (w *writer) writeBatch(requests []*writeRequest) {
	back := recipe.NewBackoff(w.store.client)
	ctx, missing, refusals := w.writeCtx, 0, 0
	for len(requests) > 0 {
		s, err := w.store.client.Session(ctx)
		if err == nil {
			requests = w.failMatching(requests,
				func(r *writeRequest) bool { return r.session != nil && r.session != s }, framework.ErrSessionLost)
			err = w.makeQueueAndMarker(ctx, s)
		}
		if err == nil {
			requests, err = w.sendTransaction(ctx, s, requests)
		}
		switch {
		case err == nil:
			back.Reset()
		case ctx.Err() != nil:
			w.finishAll(requests, context.Cause(ctx))
			return
		case errors.Is(err, errSomeRefused):
			if refusals++; refusals < maxRefusals {
				continue
			}
			refusals = 0
			before := len(requests)
			if requests = w.failRefused(ctx, s, requests); len(requests) == before && before > 1 {
				// they are refused because of each other
				requests = w.writeHalf(requests)
			}
		case failure.IsTransient(err):
			_ = back.Pause(ctx) // the next round sees the end of ctx
		case (errors.Is(err, framework.ErrNoNode) || errors.Is(err, errNotQueue)) && !w.store.stale.Load() &&
			missing < maxMissingRetries:
			missing++ // the queue may have been dropped: the next round finds out
			w.forgetQueue()
			_ = back.Pause(ctx)
		case errors.Is(err, framework.ErrTooLarge) && len(requests) > 1: // sizes are estimates, without paths and ids
			requests = w.writeHalf(requests)
		default:
			w.finishAll(requests, err)
			return
		}
	}
}

// writeHalf writes the first half of some requests, and returns the second.
func (w *writer) writeHalf(requests []*writeRequest) []*writeRequest {
	half := len(requests) / 2
	w.writeBatch(requests[:half:half])
	return requests[half:]
}

// errSomeRefused says that the servers have refused a transaction because of requests that have
// failed. The others are to be sent again.
var errSomeRefused = errors.New("some of the requests were refused")

// makeQueueAndMarker makes the queue and the writer's marker where they are missing.
func (w *writer) makeQueueAndMarker(ctx context.Context, s *framework.Session) error {
	if err := w.store.findOrMake(ctx, s); err != nil {
		return err
	}
	for !w.marker.isReady(s) {
		err := w.marker.makeMarkerWithChild(ctx, s)
		if errors.Is(err, errMarkerGone) {
			w.forgetQueue()
			err = w.store.findOrMake(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendTransaction sends one transaction and returns the requests to send again.
func (w *writer) sendTransaction(ctx context.Context, s *framework.Session,
	requests []*writeRequest) (toResend []*writeRequest, err error) {
	if requests, err = w.admitRequests(ctx, s, requests); err != nil {
		return requests, err
	}
	if requests = w.setState(requests, requestSent); len(requests) == 0 {
		return nil, nil
	}
	t := w.assembleTransaction(requests)
	asked := time.Now()
	results, err := s.Multi(ctx, t.ops...)
	var refused *framework.TxError
	switch {
	case err == nil:
		w.store.clock.AddStamp(results[0].Stat.Mtime, asked)
		w.marker.countApplied()
		if n := itemsAdded(requests); n > 0 {
			w.room.countUsed(n)
		}
		for _, r := range requests {
			w.finishRequest(r, r.ownResults(results), nil)
		}
		if len(t.created) > 0 {
			w.appender.closeFullSegments(ctx, s, t, results)
		}
		return nil, nil
	case errors.As(err, &refused):
		requests = w.setState(requests, requestQueued)
		verdict := t.handlers[refused.Index](refused)
		if verdict.fails != nil {
			return w.failMatching(requests, verdict.fails, verdict.err), errSomeRefused
		}
		if verdict.repair != nil {
			return requests, verdict.repair(ctx, s)
		}
		return requests, nil
	case failure.IsTransient(err):
		return w.resolveLost(ctx, requests, err), nil
	case ctx.Err() != nil, errors.Is(err, framework.ErrClosed):
		// the client was closed while the transaction was on its way
		err = fmt.Errorf("%w: %w", errUnknown, err)
		w.finishAll(requests, err)
		return nil, err
	}
	return w.setState(requests, requestQueued), err
}

// admitRequests reads what the writer has to know for a transaction of these requests. It fails
// puts beyond the queue's capacity, and ids of a queue that does not remember ids.
func (w *writer) admitRequests(ctx context.Context, s *framework.Session,
	requests []*writeRequest) ([]*writeRequest, error) {
	hasID := func(r *writeRequest) bool { return r.id != "" }
	if slices.ContainsFunc(requests, hasID) {
		if !w.remembersIDs() { // since the record was read, SetDedup may have changed it
			if err := w.store.readRecord(ctx, s); err != nil {
				return requests, err
			}
		}
		if !w.remembersIDs() {
			requests = w.failMatching(requests, hasID, errNoDedup)
		} else if err := w.ids.openBucket(ctx, s); err != nil {
			return requests, err
		}
	}
	if !w.isBounded() || itemsAdded(requests) == 0 {
		return requests, nil
	}
	fits, err := w.room.reserveFor(ctx, s, w.marker.node, requests, w.putsWait())
	if err != nil {
		return requests, err
	}
	return w.failMatching(requests, func(r *writeRequest) bool { return r.adds > 0 && !fits[r] }, ErrFull), nil
}

func (w *writer) isBounded() bool { return w.store.record().Capacity > 0 }

func (w *writer) remembersIDs() bool { return w.store.record().Dedup > 0 }

// assembleTransaction makes a transaction: first the marker and what the requests have in common,
// then the requests in order.
func (w *writer) assembleTransaction(requests []*writeRequest) *transaction {
	t := &transaction{}
	t.addOp(w.marker.markerOp(), func(tx *framework.TxError) refusalHandling {
		if errors.Is(tx.Err, framework.ErrNoNode) || errors.Is(tx.Err, framework.ErrBadVersion) {
			return refusalHandling{repair: func(context.Context,
				*framework.Session) error {
				w.forgetQueue()
				return nil
			}}
		}
		return failAll(tx)
	})
	required, withID, withItems := map[precondition]bool{}, false, false
	for _, r := range requests {
		withID, withItems = withID || r.id != "", withItems || len(r.items) > 0
		for _, p := range r.requires {
			if required[p] {
				continue
			}
			required[p] = true
			for _, op := range p.ops() {
				t.addOp(op, failRequiring(p))
			}
		}
	}
	if withItems {
		w.appender.addChecks(t, requests)
	}
	readAgain := func(*framework.TxError) refusalHandling {
		w.ids.known, w.room.known = false, false
		return refusalHandling{}
	}
	if withID && w.remembersIDs() {
		t.addOp(w.ids.checkOpen(), readAgain)
	}
	if n := itemsAdded(requests); n > 0 && w.isBounded() {
		t.addOp(w.room.useOp(n), readAgain)
	}
	for _, r := range requests {
		r.firstOp = len(t.ops)
		w.addConditions(t, r)
		if len(r.items) > 0 {
			w.appender.addItems(t, r)
		}
	}
	return t
}

// addConditions adds the operations of a request for whose refusal only that request fails.
func (w *writer) addConditions(t *transaction, r *writeRequest) {
	fail := failRequest(r)
	for _, op := range r.ops {
		t.addOp(op, fail)
	}
	if r.id != "" && w.remembersIDs() {
		w.ids.addOps(t, r)
	}
	for i, op := range r.with {
		t.addOp(op, failCallersOp(r, i))
	}
}

// resolveLost finds out whether a transaction was applied after its reply was lost. It returns the
// requests to send again.
func (w *writer) resolveLost(ctx context.Context, requests []*writeRequest, lost error) (toResend []*writeRequest) {
	w.room.known = false
	applied, err := w.marker.wasApplied(ctx)
	switch {
	case err == nil && applied:
		w.finishAll(requests, nil)
		return nil
	case err == nil:
		return w.setState(requests, requestQueued)
	case errors.Is(err, framework.ErrNoNode):
		w.forgetQueue()
		err = lost
	}
	w.finishAll(requests, fmt.Errorf("%w: %w", errUnknown, err))
	return nil
}

// forgetQueue forgets all that is known of the queue: the servers have removed the marker, maybe
// with the queue.
func (w *writer) forgetQueue() {
	w.marker.forgetMarker()
	w.appender.forgetSegments()
	w.room, w.ids = capacityCounter{store: w.store}, dedupBuckets{store: w.store, tasks: w.tasks, openCtx: w.openCtx}
	w.store.stale.Store(true)
}

// setState marks requests as sent, or as queued again. It leaves out those that were withdrawn.
func (w *writer) setState(requests []*writeRequest, state requestState) []*writeRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests = slices.DeleteFunc(requests, func(r *writeRequest) bool { return r.state == requestDone })
	for _, r := range requests {
		r.state = state
	}
	return requests
}

// failMatching ends the requests that match with an error, and returns the others.
func (w *writer) failMatching(requests []*writeRequest, match func(*writeRequest) bool,
	err error) (others []*writeRequest) {
	for _, r := range requests {
		if match(r) {
			w.finishRequest(r, nil, err)
			continue
		}
		others = append(others, r)
	}
	return others
}

// finishAll ends requests with one outcome: success if err is nil.
func (w *writer) finishAll(requests []*writeRequest, err error) {
	for _, r := range requests {
		w.finishRequest(r, nil, err)
	}
}

// finishRequest ends a request, unless its caller has withdrawn it.
func (w *writer) finishRequest(r *writeRequest, results []framework.OpResult, err error) {
	w.mu.Lock()
	withdrawn := r.state == requestDone
	r.state = requestDone
	if !withdrawn {
		w.bytes -= r.size
	}
	w.mu.Unlock()
	if !withdrawn && r.then != nil {
		r.then(results, err)
	}
}

// removeOwnNodes gives back unused places and removes the marker, after the last request.
func (w *writer) removeOwnNodes() {
	if w.marker.session != nil && w.marker.node != "" {
		w.room.returnUnused(w.marker.session)
	}
	w.marker.removeMarker()
}

// readClock sends an empty request: the stamp of its transaction tells the ensemble's time.
func (w *writer) readClock(ctx context.Context, s *framework.Session) error {
	_, err := w.writeAndWait(ctx, &writeRequest{session: s})
	return err
}
