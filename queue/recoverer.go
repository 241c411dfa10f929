package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// recoverer is the first of the consumers of a parallel queue. It returns the items of consumers that have gone, and wakes
// idle ones for items of the lanes (docs/adr/0038-one-claim-mechanism-for-all-lines.md).
type recoverer struct {
	sh      *consumerSession
	lease   *locks.Lease
	ctx     context.Context // done when the lease or the consumer session has ended
	members []string        // of the line, when it was read last
	missing map[segmentID]map[int64]bool
	woke    int64              // the look that consumers were woken for last
	open    int64              // the last segment of the base line, when it was swept last
	again   chan struct{}      // has a token when there is reason for another sweep
	watched context.CancelFunc // ends the watches for missing numbers
}

// recoverItems serves as the recoverer until the lease ends. It calls ready after the first sweep. Its error ends the consumer session.
func (sh *consumerSession) recoverItems(lease *locks.Lease, ready func()) error {
	ctx, cancel := context.WithCancelCause(lease.Context())
	defer cancel(nil)
	defer context.AfterFunc(sh.ctx, func() { cancel(context.Cause(sh.ctx)) })()
	r := &recoverer{sh: sh, lease: lease, ctx: ctx, again: make(chan struct{}, 1), watched: func() {}}
	sh.tasks.start(func() { sh.end(sh.moveDelayed(ctx)) })
	if sh.q.deadExpiry > 0 {
		sh.tasks.start(func() { sh.end(sh.expireDead(ctx)) })
	}
	err := r.recover(ready)
	r.watched()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// recover sweeps when somebody has left, on a notice, and for a missing number; and wakes idle consumers after a sweep and on a ring.
func (r *recoverer) recover(ready func()) error {
	var members, notices *framework.Watch
	stop := func(w *framework.Watch) {
		if w != nil {
			w.Stop()
		}
	}
	defer func() { stop(members); stop(notices) }()
	for sweep := true; ; {
		var err error
		if members == nil {
			var names []string
			if names, _, members, err = r.sh.s.WatchChildren(r.ctx, r.sh.q.below(lockDir)); err != nil {
				return err
			}
			sweep = r.departed(names) || sweep
		}
		if notices == nil {
			if _, _, notices, err = r.sh.s.WatchData(r.ctx, r.sh.q.below(ticketsDir)); err != nil {
				return err
			}
			sweep = true
		}
		if sweep {
			if err = r.sweep(); err != nil {
				return err
			}
			r.sh.lines.invalidate()
		}
		ready()
		if err = r.sh.lines.refresh(r.ctx); err == nil {
			err = r.wakeIdleConsumers()
		}
		if err != nil {
			return err
		}
		sweep = false
		select {
		case <-members.C():
			members = nil
		case <-notices.C():
			notices = nil
		case <-r.sh.lines.waitForSignal():
			r.sh.lines.invalidate()
		case <-r.sh.lines.rings:
		case <-r.again:
			sweep = true
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// departed reports whether anybody has left the line since it was read last.
func (r *recoverer) departed(names []string) bool {
	before := r.members
	r.members = slices.Clone(names)
	return slices.ContainsFunc(before, func(name string) bool { return !slices.Contains(names, name) })
}

func (r *recoverer) sweepAgain() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// segmentContents is the state of a segment.
type segmentContents struct {
	at      segmentID
	drawn   int64            // tickets ever
	changed int64            // the transaction that has changed the list of tickets last
	tickets map[int64]string // those that are there: their nodes by their numbers
	put     int64            // items ever
	items   []int64          // that are there
	closed  bool
}

// inspect reads the number of tickets, then the tickets, then the number of items, then the items: a ticket below the first number that is not
// there has gone for good, and a number that the items have not reached is not used yet.
func (r *recoverer) inspect(at segmentID) (in segmentContents, err error) {
	s, tickets := r.sh.s, at.line.ticketsOf(at.seg)
	in.at, in.tickets = at, map[int64]string{}
	nodes, err := s.GetAll(r.ctx, tickets, at.line.segment(at.seg))
	if err != nil {
		return in, err
	}
	for _, n := range nodes {
		if n.Err != nil {
			return in, n.Err
		}
	}
	in.drawn, in.put, in.closed = childrenEver(nodes[0].Stat), childrenEver(nodes[1].Stat), nodes[1].Stat.Version > 0
	if in.drawn == 0 || nodes[1].Stat.NumChildren == 0 && in.drawn <= in.put {
		return in, nil // nothing to be done with tickets
	}
	names, st, err := s.Children(r.ctx, tickets)
	if err != nil {
		return in, err
	}
	in.changed = st.Pzxid
	for _, name := range names {
		if k, ok := ticketNumber(name); ok {
			in.tickets[k] = framework.Join(tickets, name)
		}
	}
	if st, err = s.Exists(r.ctx, at.line.segment(at.seg)); err != nil {
		return in, err
	}
	in.put, in.closed = childrenEver(st), st.Version > 0
	in.items, err = at.line.items(r.ctx, s, at.seg)
	return in, err
}

// missingNumbers are the numbers from one to another whose tickets were drawn and are not there.
func (in segmentContents) missingNumbers(from, to int64) (numbers []int64) {
	for k := from; k < to; k++ {
		if in.tickets[k] == "" {
			numbers = append(numbers, k)
		}
	}
	return numbers
}

// sweep looks at all segments in which tickets were drawn.
func (r *recoverer) sweep() error {
	lanes, err := r.sh.q.listLanes(r.ctx, r.sh.s)
	if err != nil {
		return err
	}
	r.watched()
	ctx, cancel := context.WithCancel(r.ctx)
	before := r.missing
	r.watched, r.missing = cancel, map[segmentID]map[int64]bool{}
	for _, l := range append(lanes, r.sh.q.base) {
		segments, err := l.segments(r.ctx, r.sh.s)
		if err != nil {
			return err
		}
		for _, seg := range segments {
			in, err := r.inspect(segmentID{l, seg})
			if errors.Is(err, framework.ErrNoNode) {
				continue // it was removed
			}
			if err != nil {
				return err
			}
			if l == r.sh.q.base {
				r.open = seg
			}
			if in.drawn == 0 && (!in.closed || in.put > 0) {
				break // no consumer has come so far: they pass a segment without a ticket only if it was closed without items
			}
			if err := r.recoverSegment(ctx, in, before[in.at]); err != nil {
				return err
			}
		}
	}
	return nil
}

// recoverSegment returns a segment's orphans and deals with its missing numbers, or removes the segment.
func (r *recoverer) recoverSegment(ctx context.Context, in segmentContents, missed map[int64]bool) error {
	var orphans []int64
	for _, k := range in.items {
		if k < in.drawn && in.tickets[k] == "" {
			orphans = append(orphans, k)
		}
	}
	if err := r.returnOrphans(in, orphans, missed); err != nil {
		return err
	}
	if in.closed {
		if len(in.items) == len(orphans) {
			r.sh.removeIfDone(in.at)
		}
		return nil
	}
	missing := in.missingNumbers(in.put, in.drawn)
	if len(missing) == 0 {
		return nil
	}
	r.missing[in.at] = map[int64]bool{}
	for _, k := range missing {
		r.missing[in.at][k] = true
	}
	head := in.put
	for len(missing) > 0 && missing[0] == head {
		missing, head = missing[1:], head+1
	}
	if err := r.voidNumbers(in, in.put, head); err != nil {
		return err
	}
	if len(missing) > 0 {
		r.sh.tasks.start(func() { r.watchFor(ctx, in.at, missing[0]) })
	}
	return nil
}

// returnOrphans moves items without tickets to the lane redo, in order. It counts an attempt for each, unless its ticket had
// gone before the item was put, as far as is known. It is no error if an item has gone elsewhere.
func (r *recoverer) returnOrphans(in segmentContents, orphans []int64, missed map[int64]bool) error {
	for some := range slices.Chunk(orphans, 100) {
		var done sync.WaitGroup
		outcomes := make([]error, len(some))
		var parts []*writeRequest
		for i, k := range some {
			item := in.at.line.item(in.at.seg, k)
			data, st, err := r.sh.s.Get(r.ctx, item)
			if errors.Is(err, framework.ErrNoNode) {
				continue
			}
			if err != nil {
				return err
			}
			claims := 1
			if missed[k] || st.Czxid > in.changed {
				claims = 0
			}
			p := &writeRequest{session: r.sh.s, ops: []framework.Op{framework.DeleteOp(item, st.Version), r.sh.q.signalLanesOp()},
				puts: []itemPut{{line: r.sh.q.laneNamed(redoLane), data: withClaims(data, st, claims)}}}
			done.Add(1)
			p.then = func(_ []framework.OpResult, err error) {
				outcomes[i] = err
				done.Done()
			}
			parts = append(parts, p)
		}
		r.sh.q.writer.add(parts...)
		done.Wait()
		for _, err := range outcomes {
			var refused *framework.TxError
			switch {
			case errors.Is(err, framework.ErrBadVersion):
				r.sweepAgain()
			case err != nil && (!errors.As(err, &refused) || errors.Is(err, framework.ErrNoAuth)):
				return err
			}
		}
	}
	return nil
}

// withClaims is an item as it is returned, with its claims counted. What cannot be read is kept as it is.
func withClaims(data []byte, st framework.Stat, claims int) []byte {
	e, err := decodeItem(data, st)
	if err != nil {
		return data
	}
	if e.header.Unseen > 0 {
		claims = 1 // it is made up for
	}
	e.header.Attempts += int(st.Version) + claims - e.header.Unseen
	e.header.Unseen = 0
	if again, err := e.encode(); err == nil {
		return again
	}
	return data
}

// watchFor sweeps again when the items come near a missing number, which waiting tickets are before, or when the connection was replaced.
func (r *recoverer) watchFor(ctx context.Context, at segmentID, missing int64) {
	defer func() {
		if ctx.Err() == nil {
			r.sweepAgain()
		}
	}()
	_, there, err := r.sh.s.WatchExists(ctx, at.line.item(at.seg, missing-1))
	if there != nil {
		defer there.Stop()
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return
	}
	if st, err := r.sh.s.Exists(ctx, at.line.segment(at.seg)); err != nil || childrenEver(st) >= missing {
		return // it has come, and is done with
	}
	select {
	case <-there.C():
	case <-ctx.Done():
	}
}

// wakeIdleConsumers wakes as many idle consumers as the lanes have items without tickets, the first ones first. These find their tickets
// void, and look at the lanes.
func (r *recoverer) wakeIdleConsumers() error {
	spare, look := r.sh.lines.unclaimedInLanes()
	if spare == 0 || look == r.woke {
		return nil
	}
	r.woke = look // those who are woken may not have drawn yet
	in, err := r.listIdleTickets()
	if err != nil {
		return err
	}
	end := in.put
	for k := in.put; k < in.drawn && spare > 0; k++ {
		if in.tickets[k] != "" {
			end = k + 1
			spare--
		}
	}
	return r.voidNumbers(in, in.put, end)
}

// listIdleTickets reads the tickets of the open segment of the base line, and then how many items it has had.
func (r *recoverer) listIdleTickets() (in segmentContents, err error) {
	base, s := r.sh.q.base, r.sh.s
	for {
		in = segmentContents{at: segmentID{base, r.open}, tickets: map[int64]string{}}
		dir := base.ticketsOf(r.open)
		names, st, err := s.Children(r.ctx, dir)
		if err == nil {
			in.drawn = childrenEver(st)
			for _, name := range names {
				if k, ok := ticketNumber(name); ok {
					in.tickets[k] = framework.Join(dir, name)
				}
			}
			st, err = s.Exists(r.ctx, base.segment(r.open))
		}
		if err == nil && st.Version == 0 {
			in.put = childrenEver(st)
			return in, nil
		}
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return in, err
		}
		segments, err := base.segments(r.ctx, s) // it was closed
		if err != nil {
			return in, err
		}
		if len(segments) == 0 || segments[len(segments)-1] <= r.open {
			return segmentContents{}, nil
		}
		r.open = segments[len(segments)-1]
	}
}

// voidNumbers makes the servers count numbers of an open segment as put. If that is refused, an item has come or a ticket has gone, and
// there is another sweep.
func (r *recoverer) voidNumbers(in segmentContents, from, to int64) error {
	for ; from < to; from += voidAtOnce {
		ops := []framework.Op{in.at.line.checkOpen(in.at.seg)}
		for k := from; k < min(to, from+voidAtOnce); k++ {
			if ticket := in.tickets[k]; ticket != "" {
				ops = append(ops, framework.SetOp(ticket, nil, 0))
			}
			item := in.at.line.item(in.at.seg, k)
			ops = append(ops, framework.CreateOp(item, nil, framework.Persistent), framework.DeleteOp(item, 0))
		}
		_, err := r.sh.q.writer.do(context.Background(), &writeRequest{session: r.sh.s, guard: r.lease, ops: ops})
		var refused *framework.TxError
		switch {
		case errors.As(err, &refused) && refused.Path == r.lease.Guard().Path():
			return fmt.Errorf("%w: %w", errSessionReplaced, err)
		case errors.As(err, &refused) && !errors.Is(err, framework.ErrNoAuth):
			r.sweepAgain()
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// voidAtOnce is how many numbers a transaction voids at most.
const voidAtOnce = 200
