package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
)

// writer does all that a Queue writes: one transaction at a time, in which everything shares that was asked for
// since the last one. Its marker reports whether a transaction was applied whose reply was lost
// (docs/adr/0022-one-writer-and-its-marker.md).
type writer struct {
	q *engine

	mu      sync.Mutex
	queue   []*writeRequest
	bytes   int // of the parts whose outcome is not known yet
	running bool

	// Of the goroutine that writes.
	marker     string // its path, or ""
	nextMarker string // of a marker that may have been made already, or ""
	version    int32
	lively     *framework.Session // that the marker's child was made in
	count      int64
	tails      map[string]int64 // the last segment of each line, as far as is known
	seconds    map[int64]bool   // that are full
	room       capacityCounter
	ids        dedup
}

func newWriter(q *engine) *writer {
	return &writer{q: q, tails: map[string]int64{}, seconds: map[int64]bool{}}
}

// add queues parts, which share a transaction if they fit in. The then of each is called in any case.
func (w *writer) add(parts ...*writeRequest) {
	if len(parts) == 0 {
		return
	}
	for _, p := range parts {
		p.measureSize()
	}
	w.mu.Lock()
	start := w.enqueue(parts)
	w.mu.Unlock()
	if start && !w.q.tasks.start(w.run) {
		w.refuse()
	}
}

// addWithin is add, or ErrBacklog if more than so many bytes would wait then.
func (w *writer) addWithin(p *writeRequest, most int) error {
	p.measureSize()
	w.mu.Lock()
	if w.bytes > 0 && w.bytes+p.size > most {
		w.mu.Unlock()
		return fmt.Errorf("%w: %d bytes, at most %d", ErrBacklog, w.bytes+p.size, most)
	}
	start := w.enqueue([]*writeRequest{p})
	w.mu.Unlock()
	if start && !w.q.tasks.start(w.run) {
		w.refuse()
	}
	return nil
}

// enqueue queues parts, and reports whether the writer has to be started. w.mu is held.
func (w *writer) enqueue(parts []*writeRequest) (start bool) {
	w.queue = append(w.queue, parts...)
	for _, p := range parts {
		w.bytes += p.size
	}
	start, w.running = !w.running, true
	return start
}

// refuse ends what was queued after the end.
func (w *writer) refuse() {
	for parts := w.next(); len(parts) > 0; parts = w.next() {
		w.end(parts, ErrClosed)
	}
}

// do adds a part and waits for its outcome. When ctx ends first the part is taken back, or its outcome is not
// known: ErrUnknown.
func (w *writer) do(ctx context.Context, p *writeRequest) ([]framework.OpResult, error) {
	type outcome struct {
		results []framework.OpResult
		err     error
	}
	done := make(chan outcome, 1)
	p.then = func(results []framework.OpResult, err error) { done <- outcome{results, err} }
	w.add(p)
	select {
	case o := <-done:
		return o.results, o.err
	case <-ctx.Done():
		if w.withdraw(p) {
			return nil, framework.Ended(ctx)
		}
		return nil, fmt.Errorf("%w: %w", framework.Ended(ctx), ErrUnknown)
	}
}

// withdraw takes a part back that is not on its way, and keeps nothing of it.
func (w *writer) withdraw(p *writeRequest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.state != partQueued {
		return false
	}
	p.state, p.ops, p.puts = partDone, nil, nil
	w.bytes -= p.size
	w.queue = slices.DeleteFunc(w.queue, func(other *writeRequest) bool { return other == p })
	return true
}

// run writes until nothing is queued.
func (w *writer) run() {
	for {
		parts := w.next()
		if len(parts) == 0 {
			return
		}
		w.write(parts)
	}
}

// next takes as many parts as may share a transaction.
func (w *writer) next() (parts []*writeRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	size := 0
	for len(w.queue) > 0 && len(parts) < maxParts {
		p := w.queue[0]
		if len(parts) > 0 && size+p.size > maxTransaction {
			break
		}
		size += p.size
		parts = append(parts, p)
		w.queue[0] = nil
		w.queue = w.queue[1:]
	}
	w.running = len(parts) > 0
	return parts
}

// sending drops the parts that were withdrawn and marks the others as being on their way, or as queued again.
func (w *writer) sending(parts []*writeRequest, sent bool) []*writeRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts = slices.DeleteFunc(parts, func(p *writeRequest) bool { return p.state == partDone })
	for _, p := range parts {
		p.state = partQueued
		if sent {
			p.state = partSent
		}
	}
	return parts
}

// finish tells a part's outcome, unless nobody waits for it.
func (w *writer) finish(p *writeRequest, results []framework.OpResult, err error) {
	w.mu.Lock()
	over := p.state == partDone
	p.state = partDone
	if !over {
		w.bytes -= p.size
	}
	w.mu.Unlock()
	if !over && p.then != nil {
		p.then(results, err)
	}
}

// end ends parts with one outcome, which is success if err is nil.
func (w *writer) end(parts []*writeRequest, err error) {
	for _, p := range parts {
		w.finish(p, nil, err)
	}
}

// write writes parts, in as many transactions as it takes, until each has its outcome.
func (w *writer) write(parts []*writeRequest) {
	back := w.q.client.Backoff()
	ctx, missing := w.q.life, 0
	for len(parts) > 0 {
		s, err := w.q.client.Session(ctx)
		if err == nil {
			parts = w.dropForeign(parts, s)
			err = w.prepareQueueAndMarker(ctx, s)
		}
		if err == nil {
			parts, err = w.try(ctx, s, parts)
		}
		switch {
		case err == nil:
			back.Reset()
		case ctx.Err() != nil:
			w.end(parts, context.Cause(ctx))
			return
		case framework.IsTransient(err):
			_ = back.Pause(ctx) // the next step sees it
		case (errors.Is(err, framework.ErrNoNode) || errors.Is(err, ErrNotQueue)) && !w.q.stale.Load() && missing < mostMissing:
			missing++ // was it dropped? The next step finds out
			w.forgetMarker()
			_ = back.Pause(ctx)
		case errors.Is(err, framework.ErrTooLarge) && len(parts) > 1: // paths and ids weigh, too
			half := len(parts) / 2
			w.write(parts[:half:half])
			parts = parts[half:]
		default:
			w.end(parts, err)
			return
		}
	}
}

// mostMissing is how often a queue is looked for anew when something of it is missing.
const mostMissing = 10

// dropForeign fails the parts that belong to another session.
func (w *writer) dropForeign(parts []*writeRequest, s *framework.Session) (ours []*writeRequest) {
	for _, p := range parts {
		if p.session != nil && p.session != s {
			w.finish(p, nil, framework.ErrSessionLost)
			continue
		}
		ours = append(ours, p)
	}
	return ours
}

// try sends one transaction and returns the parts that have to be sent again.
func (w *writer) try(ctx context.Context, s *framework.Session, parts []*writeRequest) (again []*writeRequest, err error) {
	if parts, err = w.admit(ctx, s, parts); err != nil {
		return parts, err
	}
	if parts = w.sending(parts, true); len(parts) == 0 {
		return nil, nil
	}
	a := w.assemble(parts)
	asked := time.Now()
	results, err := s.Multi(ctx, a.ops...)
	var refused *framework.TxError
	switch {
	case err == nil:
		w.q.clock.noteAnswer(results[0].Stat.Mtime, asked)
		w.applied(ctx, s, a, parts, results)
		return nil, nil
	case errors.As(err, &refused):
		parts = w.sending(parts, false)
		return w.refused(ctx, s, a, parts, refused)
	case framework.IsTransient(err):
		return w.resolveLostReply(ctx, parts, err)
	case ctx.Err() != nil, errors.Is(err, framework.ErrClosed): // it was on its way as all ended
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
		w.end(parts, err)
		return nil, err
	}
	return w.sending(parts, false), err
}

// applied tells the outcome and rolls the lines that are full.
func (w *writer) applied(ctx context.Context, s *framework.Session, a *transaction, parts []*writeRequest, results []framework.OpResult) {
	w.version++
	w.count++
	w.room.noteUsed(itemsAdded(parts))
	own := a.results(results)
	for _, p := range parts {
		w.finish(p, own[p], nil)
	}
	w.noteFull(a, results)
	for _, l := range a.fullSegments(results, w.q.bound) {
		n := w.tails[l.dir]
		if _, err := s.Multi(ctx, l.rollOps(n)...); err == nil {
			w.tails[l.dir] = n + 1
		} // else somebody else has rolled it, or will
	}
}

// refused deals with the operation that a transaction was refused by.
func (w *writer) refused(ctx context.Context, s *framework.Session, a *transaction, parts []*writeRequest, tx *framework.TxError) ([]*writeRequest, error) {
	o := a.owners[tx.Index]
	switch {
	case o.guard != nil:
		return w.without(parts, func(p *writeRequest) bool { return p.guard == o.guard }, tx), nil
	case o.desk != nil:
		return w.without(parts, func(p *writeRequest) bool { return p.desk == o.desk }, tx), nil
	case o.with:
		own := &framework.TxError{Index: o.index, Op: tx.Op, Path: tx.Path, Err: tx.Err}
		return w.without(parts, func(p *writeRequest) bool { return p == o.part }, fmt.Errorf("%w: %w", ErrRefused, own)), nil
	case o.line != nil && lostTail(tx.Err):
		return parts, w.findTail(ctx, s, *o.line)
	case o.later != "" && errors.Is(tx.Err, framework.ErrNoNode):
		return parts, w.makeSecond(ctx, s, o.later)
	case o.ids && o.part == nil, o.room:
		w.ids.known, w.room.known = false, false
		return parts, nil
	case o.ids && errors.Is(tx.Err, framework.ErrNodeExists):
		return w.without(parts, func(p *writeRequest) bool { return p == o.part }, ErrDuplicate), nil
	case o.part != nil:
		return w.without(parts, func(p *writeRequest) bool { return p == o.part }, tx), nil
	case errors.Is(tx.Err, framework.ErrNoNode), errors.Is(tx.Err, framework.ErrBadVersion):
		w.forgetMarker()
		return parts, nil
	}
	return parts, tx
}

// lostTail reports whether a segment was closed or removed.
func lostTail(err error) bool {
	return errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNoNode)
}

// without fails the parts that match.
func (w *writer) without(parts []*writeRequest, match func(*writeRequest) bool, err error) (others []*writeRequest) {
	for _, p := range parts {
		if match(p) {
			w.finish(p, nil, err)
			continue
		}
		others = append(others, p)
	}
	return others
}

// findTail looks for a line's last segment, and makes the line if it has none.
func (w *writer) findTail(ctx context.Context, s *framework.Session, l itemLine) error {
	if err := s.Sync(ctx, l.dir); err != nil {
		return err
	}
	segments, err := l.segments(ctx, s)
	if err != nil {
		return err
	}
	if len(segments) > 0 {
		last := segments[len(segments)-1]
		w.tails[l.dir] = last
		st, err := s.Exists(ctx, l.segment(last))
		if err == nil && st.Version > 0 { // who closes a segment opens the next, unless it was an operator
			err = l.openAfter(ctx, s, last)
		}
		if errors.Is(err, framework.ErrNoNode) {
			return nil // it was removed: the next try finds another
		}
		return err
	}
	if l.dir == w.q.base.dir {
		return fmt.Errorf("%w: %s has no segments", ErrNotQueue, l.dir)
	}
	ops := []framework.Op{w.q.queueExistsOp(), framework.CreateOp(l.dir, nil, framework.Persistent)}
	if l.tickets != "" {
		ops = append(ops, framework.CreateOp(l.tickets, nil, framework.Persistent))
	}
	_, err = s.Multi(ctx, append(ops, l.openOps(0)...)...)
	if errors.Is(err, framework.ErrNodeExists) {
		return nil
	}
	w.tails[l.dir] = 0
	return err
}

// admit makes sure of what a transaction with these parts has to know, and refuses parts that there is no room for, and ids that
// the queue would not remember.
func (w *writer) admit(ctx context.Context, s *framework.Session, parts []*writeRequest) ([]*writeRequest, error) {
	named := slices.ContainsFunc(parts, func(p *writeRequest) bool { return p.id != "" })
	if named && !w.remembers() { // has it begun to, meanwhile?
		if err := w.q.readRecord(ctx, s); err != nil {
			return parts, err
		}
	}
	if !w.remembers() { // before a producer relies on it
		parts = w.without(parts, func(p *writeRequest) bool { return p.id != "" }, errNoDedup)
	} else if named {
		if err := w.ids.refresh(ctx, s, w.q); err != nil {
			return parts, err
		}
	}
	if !w.bounded() || itemsAdded(parts) == 0 {
		return parts, nil
	}
	fits, err := w.reserve(ctx, s, parts)
	if err != nil {
		return parts, err
	}
	return w.without(parts, func(p *writeRequest) bool { return p.adds > 0 && !fits[p] }, ErrFull), nil
}

func (w *writer) bounded() bool { return w.q.storedRecord().Capacity > 0 }

func (w *writer) remembers() bool { return w.q.storedRecord().Dedup > 0 }

// prepareQueueAndMarker makes the queue and the marker where they are missing.
func (w *writer) prepareQueueAndMarker(ctx context.Context, s *framework.Session) error {
	if err := w.q.findOrMake(ctx, s); err != nil {
		return err
	}
	for w.marker == "" || w.lively != s {
		if w.marker == "" {
			if err := w.makeMarker(ctx, s); err != nil {
				return err
			}
		}
		asked := time.Now()
		err := s.Create(ctx, w.sessionChild(s), nil, framework.Ephemeral)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			w.forgetMarker()
			if err := w.q.findOrMake(ctx, s); err != nil {
				return err
			}
		case err != nil && !errors.Is(err, framework.ErrNodeExists):
			return err
		default:
			st, there := s.Exists(ctx, w.sessionChild(s))
			if there != nil {
				return there
			}
			if err == nil || w.q.clock.unset() { // one that was there may be older than the question
				w.q.clock.noteAnswer(st.Ctime, asked)
			}
			w.lively = s
		}
	}
	return nil
}

// makeMarker makes the marker of a queue that is as it was found, and is not being dropped.
func (w *writer) makeMarker(ctx context.Context, s *framework.Session) error {
	if w.nextMarker == "" {
		w.nextMarker = framework.Join(w.q.below(writersDir), uuid.NewString())
	}
	for {
		record := framework.CheckOp(w.q.path, w.q.storedRecord().version)
		_, err := s.Multi(ctx, record, framework.CreateOp(w.nextMarker, nil, framework.Container))
		var refused *framework.TxError
		switch {
		case err == nil, errors.Is(err, framework.ErrNodeExists): // a lost reply's
			w.marker, w.nextMarker, w.version = w.nextMarker, "", 0
			return nil
		case !errors.As(err, &refused) || errors.Is(err, framework.ErrNoAuth):
			return err
		case refused.Index == 1: // there are no markers
			_, err = s.Multi(ctx, record, framework.CreateOp(w.q.below(writersDir), nil, framework.Container))
			if err == nil || errors.Is(err, framework.ErrNodeExists) {
				continue
			}
		}
		w.q.stale.Store(true)
		if !refusedByOthers(err) {
			return err
		}
		if err := w.q.findOrMake(ctx, s); err != nil {
			return err
		}
	}
}

// forgetMarker forgets the marker, which the servers have reaped, or which went with the queue; and all else that is known of that.
func (w *writer) forgetMarker() {
	w.marker, w.room, w.ids = "", capacityCounter{}, dedup{}
	clear(w.tails)
	clear(w.seconds)
	w.q.stale.Store(true)
}

// nextMark is what the next transaction writes into the marker.
func (w *writer) nextMark() []byte { return strconv.AppendInt(nil, w.count+1, 10) }

// resolveLostReply finds out whether a transaction was applied whose reply was lost, by a fence: it writes the marker at the
// version from before. If that is possible the transaction can never be applied any more.
func (w *writer) resolveLostReply(ctx context.Context, parts []*writeRequest, lost error) ([]*writeRequest, error) {
	back := w.q.client.Backoff()
	w.room.known = false
	for {
		s, err := w.q.client.Session(ctx)
		if err == nil {
			var applied bool
			if applied, err = w.writeFence(ctx, s); err == nil && applied {
				w.count++
				w.end(parts, nil)
				return nil, nil
			}
		}
		switch {
		case err == nil:
			return w.sending(parts, false), nil
		case errors.Is(err, framework.ErrNoNode):
			w.forgetMarker()
			w.end(parts, fmt.Errorf("%w: %w", ErrUnknown, lost))
			return nil, nil
		case ctx.Err() != nil || !framework.IsTransient(err):
			w.end(parts, fmt.Errorf("%w: %w", ErrUnknown, err))
			return nil, nil
		}
		if err := back.Pause(ctx); err != nil {
			w.end(parts, fmt.Errorf("%w: %w", ErrUnknown, err))
			return nil, nil
		}
	}
}

// writeFence makes sure that the last transaction was applied or never will be.
func (w *writer) writeFence(ctx context.Context, s *framework.Session) (applied bool, err error) {
	fence := fmt.Appendf(nil, "%d fence", w.count)
	st, err := s.Set(ctx, w.marker, fence, w.version)
	if err == nil {
		w.version = st.Version
		return false, nil
	}
	if !errors.Is(err, framework.ErrBadVersion) {
		return false, err
	}
	data, st, err := s.Get(ctx, w.marker) // the fence of a session that was lost may stand there, too
	if err != nil {
		return false, err
	}
	w.version = st.Version
	return !bytes.Equal(data, fence), nil
}

// removeMarker removes the marker; nothing is written any more.
func (w *writer) removeMarker() {
	if w.marker == "" || w.lively == nil {
		return
	}
	if w.room.own.path != "" {
		w.room.returnUnused(w.lively, w.q)
	}
	own := framework.DeleteOp(w.sessionChild(w.lively), framework.AnyVersion)
	err := w.writeUntilAnswered(own, framework.DeleteOp(w.marker, framework.AnyVersion))
	if errors.Is(err, framework.ErrNotEmpty) { // the servers have not ended a former session yet, and remove the rest then
		_ = w.writeUntilAnswered(own)
	} // else the servers remove both after the session
	w.marker = ""
}

// writeUntilAnswered writes until the servers have answered, or the session has ended. What was done is not there any more.
func (w *writer) writeUntilAnswered(ops ...framework.Op) error {
	ctx, back := w.lively.Context(), w.q.client.Backoff()
	for {
		_, err := w.lively.Multi(ctx, ops...)
		if !errors.Is(err, framework.ErrSuspended) || back.Pause(ctx) != nil {
			return err
		}
	}
}

// sessionChild is the marker's child of a session.
func (w *writer) sessionChild(s *framework.Session) string {
	return framework.Join(w.marker, strconv.FormatInt(s.ID(), 16))
}
