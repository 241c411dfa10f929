package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// capacityCounter is what a Queue may still add to a bounded queue (docs/adr/0040-room-in-blocks.md):
//
//	<path>/in              how many places were given out, and " line" while producers stand in line for more
//	<path>/out             its version counts the items that have left
//	<path>/places/<uuid>   places that were given to a writer and are not used so far
//
// A put counts its writer's places down in its own transaction, so producers meet at <path>/in only when they take a block of
// places. Who finds no room takes back what others have not used. Never is more given out than has left, and the capacity.
// Both counts are modulo 2^32; since out only grows, a count of it that is old errs on the safe side.
type capacityCounter struct {
	known   bool
	in      uint32
	line    bool // producers stand in line: only their first takes places
	version int32
	out     uint32
	own     reservedPlaces
	there   bool // the node of own exists
	looked  bool // for places that dead writers have left
	peers   int  // writers with a node of places, as far as is known
}

// reservedPlaces are those of a writer's node.
type reservedPlaces struct {
	path    string
	left    int
	version int32
}

// maxAhead is how many places are taken beyond what is needed at once.
const maxAhead = 63

// useOps is the operation that goes with a put of n items.
func (r *capacityCounter) useOps(n int) framework.Op {
	return framework.SetOp(r.own.path, strconv.AppendInt(nil, int64(r.own.left-n), 10), r.own.version)
}

// noteUsed takes in that a transaction has put n items.
func (r *capacityCounter) noteUsed(n int) {
	if r.known && n > 0 {
		r.own.left -= n
		r.own.version++
	}
}

// reserve takes places for parts, and tells which have some. Once there are none for a part there are none for those behind
// it, and none for any while others of this Queue wait, but for these.
func (w *writer) reserve(ctx context.Context, s *framework.Session, parts []*writeRequest) (map[*writeRequest]bool, error) {
	r, waiting := &w.room, w.q.roomLine.any()
	_, name := framework.Split(w.marker)
	if path := framework.Join(w.q.below(placesDir), name); path != r.own.path {
		*r = capacityCounter{own: reservedPlaces{path: path}}
	}
	var wanted []*writeRequest
	for _, p := range parts {
		if p.adds > 0 && (p.first || !waiting) {
			wanted = append(wanted, p)
		}
	}
	for {
		if !r.known {
			if err := r.readState(ctx, s, w.q); err != nil {
				return nil, err
			}
		}
		missing := itemsAdded(wanted) - r.own.left
		if missing <= 0 {
			break
		}
		free, err := r.reservePlaces(ctx, s, w.q, missing, wanted[0].first)
		if err != nil {
			return nil, err
		}
		for r.known && itemsAdded(wanted) > r.own.left+free {
			wanted = wanted[:len(wanted)-1]
		}
	}
	fits := map[*writeRequest]bool{}
	for _, p := range wanted {
		fits[p] = true
	}
	return fits, nil
}

// readState reads out before in, so that what left meanwhile is not counted; the places of its own; and the record after in, which
// is written when the capacity is changed.
func (r *capacityCounter) readState(ctx context.Context, s *framework.Session, q *engine) error {
	st, err := s.Exists(ctx, q.below(outNode))
	if err != nil {
		return err
	}
	r.out = uint32(st.Version)
	nodes, err := s.GetAll(ctx, q.below(inNode), cmp.Or(r.own.path, q.below(inNode)), q.path)
	if err != nil {
		return err
	}
	in, own, record := nodes[0], nodes[1], nodes[2]
	if in.Err != nil {
		return in.Err
	}
	if r.in, r.line, err = decodeIn(in.Data); err != nil {
		return framework.Wrap("read", q.below(inNode), err)
	}
	r.version = in.Stat.Version
	if err := q.learnFrom(record); err != nil {
		return err
	}
	if r.own.path == "" {
		return nil // somebody else's look
	}
	r.there, r.own.left, r.own.version = own.Err == nil, 0, own.Stat.Version
	switch {
	case r.there:
		if r.own.left, err = decodePlaces(own.Data); err != nil {
			return framework.Wrap("read", r.own.path, err)
		}
	case !errors.Is(own.Err, framework.ErrNoNode):
		return own.Err
	}
	r.known = true
	return nil
}

// reservePlaces takes n places, and more if there are many. If there are fewer it takes none and tells how many there are. If
// somebody else was faster, r is not known afterwards. It is told whether the producer is the first in line.
func (r *capacityCounter) reservePlaces(ctx context.Context, s *framework.Session, q *engine, n int, first bool) (free int, err error) {
	free = r.freeForSure(q)
	if free < n { // as long as nothing was refused, the count may be old
		if err := r.readState(ctx, s, q); err != nil {
			return 0, err
		}
		free = r.freeForSure(q)
	}
	if r.line && !first {
		names, _, err := s.Children(ctx, q.below(roomDir))
		if err != nil && !errors.Is(err, framework.ErrNoNode) || len(names) > 0 {
			return 0, err
		}
	}
	var back []reservedPlaces
	returned := 0
	if free < n || !r.looked {
		others, dead, err := r.unusedByOthers(ctx, s, q)
		if err != nil {
			return 0, err
		}
		if back = dead; free < n {
			back = slices.DeleteFunc(others, func(p reservedPlaces) bool { return p.left == 0 && !slices.Contains(dead, p) })
		}
		back = back[:min(len(back), 200)]
		for _, p := range back {
			returned += p.left
		}
	}
	if free += returned; free < n {
		if first && !r.line {
			err = r.runTransaction(ctx, s, q, []framework.Op{framework.SetOp(q.below(inNode), encodeIn(r.in, true), r.version)})
			r.line = true
			r.version++
		}
		return free, err
	}
	block := n
	if !first {
		block += min(maxAhead, (free-n)/(2*(r.peers+2)))
	}
	in := r.in + uint32(block-returned)
	ops := []framework.Op{framework.SetOp(q.below(inNode), encodeIn(in, first && r.line), r.version)}
	count := strconv.AppendInt(nil, int64(r.own.left+block), 10)
	if r.there {
		ops = append(ops, framework.SetOp(r.own.path, count, r.own.version))
	} else {
		ops = append(ops, framework.CreateOp(r.own.path, count, framework.Persistent))
	}
	for _, p := range back {
		ops = append(ops, framework.DeleteOp(p.path, p.version))
	}
	if err := r.runTransaction(ctx, s, q, ops); err != nil || !r.known {
		return 0, err
	}
	if r.there {
		r.own.version++
	}
	r.in, r.line, r.there, r.looked = in, first && r.line, true, true
	r.version++
	r.own.left += block
	return 0, nil
}

// freeForSure is how many places there are for sure: out may be older than in.
func (r *capacityCounter) freeForSure(q *engine) int {
	return max(0, q.storedRecord().Capacity-int(int32(r.in-r.out)))
}

// runTransaction runs a transaction. If it was refused, or its outcome is not known, all has to be read again.
func (r *capacityCounter) runTransaction(ctx context.Context, s *framework.Session, q *engine, ops []framework.Op) error {
	_, err := s.Multi(ctx, ops...)
	if err == nil {
		return nil
	}
	r.known = false
	var refused *framework.TxError
	if !errors.As(err, &refused) || errors.Is(err, framework.ErrNoAuth) {
		return err
	}
	if refused.Op == "create" && errors.Is(err, framework.ErrNoNode) {
		err = s.Create(ctx, q.below(placesDir), nil, framework.Persistent)
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// unusedByOthers are the places that others have not used, and of these those whose writers are dead.
func (r *capacityCounter) unusedByOthers(ctx context.Context, s *framework.Session, q *engine) (all, dead []reservedPlaces, err error) {
	names, _, err := s.Children(ctx, q.below(placesDir))
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	writers, _, err := s.Children(ctx, q.below(writersDir)) // after the places, which a writer has after its marker
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, nil, err
	}
	r.peers = len(names)
	for some := range slices.Chunk(names, 100) {
		paths := make([]string, len(some))
		for i, name := range some {
			paths[i] = framework.Join(q.below(placesDir), name)
		}
		nodes, err := s.GetAll(ctx, paths...)
		if err != nil {
			return nil, nil, err
		}
		for i, n := range nodes {
			left, err := decodePlaces(n.Data)
			if n.Err != nil || err != nil || paths[i] == r.own.path {
				continue // it is gone, or somebody else's
			}
			p := reservedPlaces{paths[i], left, n.Stat.Version}
			all = append(all, p)
			if !slices.Contains(writers, some[i]) {
				dead = append(dead, p)
			}
		}
	}
	return all, dead, nil
}

// returnUnused gives back what was not used, at the end. What cannot be given back is taken by who needs it.
func (r *capacityCounter) returnUnused(s *framework.Session, q *engine) {
	for range 10 {
		if !r.known && r.readState(s.Context(), s, q) != nil || !r.there {
			return
		}
		ops := []framework.Op{framework.DeleteOp(r.own.path, r.own.version)}
		if r.own.left > 0 {
			ops = append(ops, framework.SetOp(q.below(inNode), encodeIn(r.in-uint32(r.own.left), r.line), r.version))
		}
		if r.runTransaction(s.Context(), s, q, ops) != nil || r.known {
			return
		}
	}
}

// lineMark ends the data of <path>/in while producers stand in line.
const lineMark = " line"

func encodeIn(in uint32, line bool) []byte {
	data := strconv.AppendUint(nil, uint64(in), 10)
	if line {
		data = append(data, lineMark...)
	}
	return data
}

// decodeIn is the one reader of what encodeIn has written.
func decodeIn(data []byte) (in uint32, line bool, err error) {
	text, line := strings.CutSuffix(string(data), lineMark)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, false, errCount
	}
	return uint32(n), line, nil
}

// decodePlaces is the one reader of a number of places.
func decodePlaces(data []byte) (int, error) {
	n, err := strconv.ParseUint(string(data), 10, 31)
	if err != nil {
		return 0, errCount
	}
	return int(n), nil
}

// waitingPuts are a Queue's puts that wait for room, in order. One goroutine stands in line for them all at <path>/room,
// with one for each other Queue. While anybody stands there only the first takes places, so nobody is overtaken for ever.
type waitingPuts struct {
	q *engine

	mu      sync.Mutex
	puts    []*waitingPut
	running bool
	stop    context.CancelFunc // ends the standing in line
	trying  int                // puts that are at the writer
	tried   chan struct{}      // closed when none is any more
}

// waitingPut is one of them.
type waitingPut struct {
	part   *writeRequest
	trying bool
	done   chan error // has room
}

// turn is how many puts of a Queue go when it is first in line.
const turn = 64

// any reports whether puts wait.
func (l *waitingPuts) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.puts) > 0
}

// put waits for room, behind those that wait, and puts.
func (l *waitingPuts) put(ctx context.Context, p *writeRequest) error {
	wait := &waitingPut{part: p, done: make(chan error, 1)}
	l.mu.Lock()
	l.puts = append(l.puts, wait)
	start := !l.running
	l.running = true
	l.mu.Unlock()
	if start && !l.q.tasks.start(l.run) {
		l.fail(ErrClosed)
	}
	select {
	case err := <-wait.done:
		return err
	case <-ctx.Done():
		if l.giveUp(wait) {
			return framework.Ended(ctx)
		}
		return fmt.Errorf("%w: %w", framework.Ended(ctx), ErrUnknown)
	}
}

// giveUp takes a put back; false if it is on its way.
func (l *waitingPuts) giveUp(wait *waitingPut) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := !wait.trying || l.q.writer.withdraw(wait.part)
	if back && wait.trying {
		l.ended(wait)
	}
	l.remove(wait)
	return back
}

// remove forgets a put. l.mu is held.
func (l *waitingPuts) remove(wait *waitingPut) {
	l.puts = slices.DeleteFunc(l.puts, func(other *waitingPut) bool { return other == wait })
	if len(l.puts) == 0 && l.stop != nil {
		l.stop()
	}
}

// ended takes in that the writer has a put no more. l.mu is held.
func (l *waitingPuts) ended(wait *waitingPut) {
	wait.trying = false
	if l.trying--; l.trying == 0 {
		close(l.tried)
	}
}

// fail ends all puts with an error.
func (l *waitingPuts) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, wait := range l.puts {
		wait.done <- err
	}
	l.puts, l.running = nil, false
}

// run stands in line again and again until no put waits.
func (l *waitingPuts) run() {
	back := l.q.client.Backoff()
	for {
		ctx, cancel := context.WithCancel(l.q.work)
		l.mu.Lock()
		l.stop = cancel
		if len(l.puts) == 0 {
			l.running = false
			l.mu.Unlock()
			cancel()
			return
		}
		l.mu.Unlock()
		err := l.stand(ctx)
		given := ctx.Err() != nil && l.q.work.Err() == nil // nobody waits any more, or somebody else does
		cancel()
		switch {
		case err == nil, given:
			back.Reset()
		case l.q.work.Err() != nil:
			l.fail(context.Cause(l.q.work))
			return
		case framework.IsTransient(err) || errors.Is(err, framework.ErrNodeGone):
			_ = back.Pause(l.q.work) // the next step sees it
		default:
			l.fail(err)
			return
		}
	}
}

// stand stands in line until some puts had their turn.
func (l *waitingPuts) stand(ctx context.Context) error {
	lease, err := locks.NewMutex(l.q.client, l.q.below(roomDir)).Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }() // never fails
	for {
		s, err := l.q.client.Session(ctx)
		if err != nil {
			return err
		}
		_, _, left, err := s.WatchData(ctx, l.q.below(outNode))
		if framework.IsTransient(err) && lease.Err() == nil && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		if l.try() {
			left.Stop()
			return nil
		}
		select {
		case <-left.C():
		case <-lease.Context().Done():
			err = context.Cause(lease.Context())
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		left.Stop()
		if err != nil {
			return err
		}
	}
}

// try tries to put what waits, and reports whether there was room for all of it.
func (l *waitingPuts) try() bool {
	l.mu.Lock()
	some := slices.Clone(l.puts[:min(len(l.puts), turn)])
	l.trying, l.tried = len(some), make(chan struct{})
	tried, full := l.tried, false
	parts := make([]*writeRequest, len(some))
	for i, wait := range some {
		wait.part, wait.trying = wait.part.retryCopy(), true
		wait.part.first = true
		wait.part.then = func(_ []framework.OpResult, err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.ended(wait); errors.Is(err, ErrFull) {
				full = true
				return
			}
			wait.done <- err
			l.remove(wait)
		}
		parts[i] = wait.part
	}
	l.mu.Unlock()
	if len(parts) == 0 {
		return true
	}
	l.q.writer.add(parts...)
	<-tried
	l.mu.Lock()
	defer l.mu.Unlock()
	return !full
}
