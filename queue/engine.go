package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// engine is a Queue without its type.
type engine struct {
	client *framework.Client
	path   string
	err    error // of the arguments
	record queueRecord
	base   itemLine
	dead   itemLine
	bound  int64

	window        int
	prefetch      int
	prefetchBytes int
	backlog       int  // bytes
	refuses       bool // when it is full
	idleTimeout   time.Duration
	maxAttempts   int
	dropExpired   bool
	deadExpiry    time.Duration // 0: never

	found    atomic.Pointer[queueRecord] // nil before the queue was found
	stale    atomic.Bool                 // the record has to be read again
	clock    serverClock
	tel      telemetry
	writer   *writer
	roomLine waitingPuts
	consumer *consumer

	work  context.Context // done when Close begins: nothing more is taken
	stop  context.CancelCauseFunc
	life  context.Context // done when Close ends: nothing more is written
	kill  context.CancelCauseFunc
	tasks taskGroup

	ending sync.Once
	closed chan struct{}
}

func newEngine(client *framework.Client, path string, opts []Option) *engine {
	q := &engine{client: client, path: path, bound: defaultBound, idleTimeout: DefaultIdleTimeout, prefetchBytes: DefaultPrefetchBytes, backlog: DefaultBacklog,
		record: queueRecord{V: recordVersion, Recipe: recipe}}
	q.work, q.stop = context.WithCancelCause(context.Background())
	q.life, q.kill = context.WithCancelCause(context.Background())
	q.closed = make(chan struct{})
	q.writer, q.consumer = newWriter(q), newConsumer(q)
	q.roomLine.q = q
	if q.err = q.checkArguments(); q.err != nil {
		return q
	}
	q.tel = newTelemetry(client, path)
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(q); err != nil && q.err == nil {
			q.err = err
		}
	}
	q.base = itemLine{dir: q.below(itemsDir), tickets: framework.Join(q.below(ticketsDir), itemsDir)}
	q.dead = itemLine{dir: q.below(deadDir)}
	return q
}

func (q *engine) checkArguments() error {
	if q.client == nil {
		return fmt.Errorf("%w: the client is nil", ErrOption)
	}
	if err := framework.ValidatePath(q.path); err != nil {
		return err
	}
	if q.path == "/" {
		return fmt.Errorf("%w %q: the root cannot be a queue", framework.ErrInvalidPath, q.path)
	}
	return nil
}

// below is a node of the queue's.
func (q *engine) below(name string) string { return framework.Join(q.path, name) }

// usable refuses what was made with bad arguments, or was closed.
func (q *engine) usable() error {
	if q.err != nil {
		return q.err
	}
	return context.Cause(q.work)
}

// close ends the consumer, then what is still to be written.
func (q *engine) close(ctx context.Context) error {
	q.stop(ErrClosed)
	q.ending.Do(func() {
		go func() {
			defer close(q.closed)
			<-q.tasks.done()
			q.kill(ErrClosed)
			q.writer.removeMarker()
		}()
	})
	select {
	case <-q.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("queue: close: %w", framework.Ended(ctx))
	}
}

// windowSize is how many deliveries may be open.
func (q *engine) windowSize() int {
	switch {
	case q.window > 0:
		return q.window
	case q.storedRecord().Order == Strict:
		return 1
	}
	return DefaultMaxInFlight
}

// leaveOps are the operations that count an item that leaves a bounded queue.
func (q *engine) leaveOps() []framework.Op {
	if q.storedRecord().Capacity == 0 {
		return nil
	}
	return []framework.Op{framework.SetOp(q.below(outNode), nil, framework.AnyVersion)}
}

// taskGroup are the goroutines of a Queue.
type taskGroup struct {
	mu      sync.Mutex
	n       int
	closing bool
	ended   chan struct{}
}

// start runs f in the background, unless all has ended.
func (t *taskGroup) start(f func()) bool {
	if !t.begin() {
		return false
	}
	go func() {
		defer t.finish()
		f()
	}()
	return true
}

// begin counts something that ends with finish, unless all has ended.
func (t *taskGroup) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing && t.n == 0 {
		return false
	}
	t.n++
	return true
}

func (t *taskGroup) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.closing && t.n == 0 {
		close(t.ended)
	}
}

// done returns a channel that is closed when all that runs, and what that still starts, has ended.
func (t *taskGroup) done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closing {
		t.closing, t.ended = true, make(chan struct{})
		if t.n == 0 {
			close(t.ended)
		}
	}
	return t.ended
}

// queueRecord is what is stored in the queue's node. Its capacity and its window may be changed (change.go), the rest stays.
type queueRecord struct {
	V        int    `json:"v"`
	Recipe   string `json:"recipe"`
	Order    Order  `json:"order"`
	Capacity int    `json:"capacity,omitempty"`
	// Dedup is how long ids are remembered, in milliseconds.
	Dedup int64 `json:"dedup,omitempty"`
	// Retry is how long items wait that were given back, or nil.
	Retry *storedRetry `json:"retry,omitempty"`
	// Dropped says that the queue is being removed.
	Dropped bool `json:"dropped,omitempty"`

	version int32 // the node's
	born    int64 // the transaction that has created the node, or 0 if it was made here and not read since
}

const (
	recordVersion = 2
	recipe        = "queue"
)

// decodeRecord is the one reader of queues' records. Its errors wrap ErrNotQueue or ErrNewer.
func decodeRecord(data []byte) (queueRecord, error) {
	var r queueRecord
	if err := json.Unmarshal(data, &r); err != nil || r.Recipe != recipe {
		return r, fmt.Errorf("%w: it holds %.40q", ErrNotQueue, data)
	}
	if r.V > recordVersion {
		return r, fmt.Errorf("%w: record of version %d, this release reads %d", ErrNewer, r.V, recordVersion)
	}
	if r.V >= 0 && r.V < recordVersion {
		return r, fmt.Errorf("%w: record of version %d, a layout from before the first release; this one reads %d: drain the queue with the program that made it, or delete it",
			ErrNotQueue, r.V, recordVersion)
	}
	if r.V < 0 || !r.Order.known() || r.Capacity < 0 || r.Dedup < 0 || r.Retry != nil && !r.Retry.usable() {
		return r, fmt.Errorf("%w: its record cannot be read: %.80q", ErrNotQueue, data)
	}
	return r, nil
}

func (r queueRecord) encode() ([]byte, error) { return json.Marshal(r) }

// checkOptions reports whether the stored record is what this Queue was made with. What was not given is as it is stored.
func (r queueRecord) checkOptions(given queueRecord) error {
	switch {
	case given.Order != "" && r.Order != given.Order:
		return &MismatchError{"order", string(r.Order), string(given.Order)}
	case given.Capacity != 0 && r.Capacity != given.Capacity:
		return &MismatchError{mismatchCapacity, orNone(r.Capacity != 0, r.Capacity), orNone(true, given.Capacity)}
	case given.Dedup != 0 && r.Dedup != given.Dedup:
		return &MismatchError{mismatchDedup, orNone(r.Dedup != 0, r.window()), orNone(true, given.window())}
	case given.Retry != nil && (r.Retry == nil || *r.Retry != *given.Retry):
		return &MismatchError{"retry policy", orNone(r.Retry != nil, r.Retry), orNone(true, given.Retry)}
	}
	return nil
}

func (r queueRecord) window() time.Duration { return time.Duration(r.Dedup) * time.Millisecond }

func orNone(given bool, value any) string {
	if !given {
		return "none"
	}
	return fmt.Sprint(value)
}

// queueExistsOp is the operation that goes with each creation of a node below the queue's: it refuses the transaction when the queue
// was dropped. Those who wait for a lock of such a queue have made its node again, without a record.
func (q *engine) queueExistsOp() framework.Op {
	return framework.CheckOp(q.below(itemsDir), framework.AnyVersion)
}

// findOrMake reads the queue's record, or makes the queue.
func (q *engine) findOrMake(ctx context.Context, s *framework.Session) error {
	if q.found.Load() != nil && !q.stale.Load() {
		return nil
	}
	for {
		err := q.readRecord(ctx, s)
		if errors.Is(err, errDropped) {
			if err = q.finishDrop(ctx, s); err == nil {
				err = errAgain
			}
		}
		if errors.Is(err, framework.ErrNoNode) || errors.Is(err, errVacant) {
			err = q.makeQueue(ctx, s, errors.Is(err, errVacant))
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errAgain):
			return err
		}
	}
}

var (
	errVacant  = errors.New("a node without data that can become a queue")
	errAgain   = errors.New("somebody else was faster")
	errDropped = errors.New("the queue is being dropped")
)

// readRecord reads the record. The first time it compares it with what this Queue was made with, later only what cannot be changed.
func (q *engine) readRecord(ctx context.Context, s *framework.Session) error {
	nodes, err := s.GetAll(ctx, q.path, q.below(itemsDir))
	if err != nil {
		return err
	}
	data, st, items := nodes[0].Data, nodes[0].Stat, nodes[1]
	if nodes[0].Err != nil {
		return nodes[0].Err
	}
	if len(data) == 0 {
		return q.readVacant(ctx, s, st.NumChildren)
	}
	r, err := decodeRecord(data)
	if err != nil {
		return err
	}
	if r.Dropped {
		return errDropped
	}
	if errors.Is(items.Err, framework.ErrNoNode) {
		return fmt.Errorf("%w: %s is missing: somebody has deleted a part of the queue; Drop removes the rest", ErrNotQueue, q.below(itemsDir))
	}
	given := q.record
	if q.found.Load() != nil { // what was changed since this Queue has begun counts for it, too
		given.Capacity, given.Dedup = 0, 0
	}
	if err := r.checkOptions(given); err != nil {
		return err
	}
	r.version, r.born = st.Version, st.Czxid
	q.learn(r)
	q.stale.Store(false)
	return nil
}

// learn takes in a record that was read, unless a later one of the same queue was.
func (q *engine) learn(r queueRecord) {
	for {
		known := q.found.Load()
		if known != nil && known.born == r.born && known.version > r.version || q.found.CompareAndSwap(known, &r) {
			return
		}
	}
}

// learnFrom learns the record from its node.
func (q *engine) learnFrom(n framework.Node) error {
	if n.Err != nil {
		return n.Err
	}
	r, err := decodeRecord(n.Data)
	if err != nil {
		return err
	}
	if r.version, r.born = n.Stat.Version, n.Stat.Czxid; !r.Dropped { // else nothing is put any more
		q.learn(r)
	}
	return nil
}

// readVacant is errVacant if the node, which has no data, can become a queue: nothing is below it but the directories of
// locks. Those who wait for a lock of a queue that is dropped make its directory again, and the queue's node above it.
func (q *engine) readVacant(ctx context.Context, s *framework.Session, children int32) error {
	if children == 0 {
		return errVacant
	}
	names, _, err := s.Children(ctx, q.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != lockDir && name != roomDir {
			return fmt.Errorf("%w: it has children and no record", ErrNotQueue)
		}
	}
	return errVacant
}

// storedRecord is the queue's record; the queue was found before.
func (q *engine) storedRecord() queueRecord { return *q.found.Load() }

// makeQueue makes the queue in one transaction, in place of an empty node if there is one.
func (q *engine) makeQueue(ctx context.Context, s *framework.Session, vacant bool) error {
	r := q.record
	if known := q.found.Load(); known != nil { // it was dropped: it agrees with what was given
		r = *known
	}
	r.born = 0
	if r.Order == "" {
		r.Order = Parallel
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	var ops []framework.Op
	if vacant {
		ops = append(ops, framework.SetOp(q.path, data, 0))
		r.version = 1
	} else {
		above, _ := framework.Split(q.path)
		if err := s.MakeDirs(ctx, above); err != nil {
			return err
		}
		ops = append(ops, framework.CreateOp(q.path, data, framework.Persistent))
		r.version = 0
	}
	for _, dir := range []string{itemsDir, ticketsDir, lanesDir, laterDir} {
		ops = append(ops, framework.CreateOp(q.below(dir), nil, framework.Persistent))
	}
	if r.Capacity > 0 {
		ops = append(ops, framework.CreateOp(q.below(inNode), encodeIn(0, false), framework.Persistent),
			framework.CreateOp(q.below(outNode), nil, framework.Persistent),
			framework.CreateOp(q.below(placesDir), nil, framework.Persistent))
	}
	ops = append(ops, framework.CreateOp(q.base.tickets, nil, framework.Persistent))
	ops = append(ops, q.base.openOps(0)...)
	_, err = s.Multi(ctx, ops...)
	switch {
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrBadVersion),
		errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrSuspended):
		return errAgain
	case err == nil:
		q.found.Store(&r)
		q.stale.Store(false)
	}
	return err
}

// Drop removes the queue: its items, also those for later and those that are being worked on, its dead letters, its ids and
// its record. It is no error if there is none. When it returns an error, whoever uses the queue next goes on with the removal.
//
// Whoever uses the path afterwards makes the queue anew, as its options say and else as it was known: also a Take that waits.
// To change what is stored with the queue, close all that use it first, or see SetCapacity and SetDedup. What was on its way may end with ErrUnknown.
func (q *Queue[T]) Drop(ctx context.Context) error {
	err := q.core.usable()
	if err == nil {
		err = q.core.dropQueue(ctx)
	}
	return framework.Wrap("drop", q.core.path, err)
}

// dropQueue marks the record, so that nobody's writer makes a marker any more, and removes the markers in the same transaction:
// nothing is put from then on. Then it removes everything. The mark has a node of its own, which all removals check. So they cannot reach a queue that was
// made anew meanwhile.
func (q *engine) dropQueue(ctx context.Context) error {
	for marked := false; ; {
		s, err := q.client.Session(ctx)
		if err != nil {
			return err
		}
		if err := s.Sync(ctx, q.path); err != nil {
			return err
		}
		data, st, err := s.Get(ctx, q.path)
		if errors.Is(err, framework.ErrNoNode) || err == nil && len(data) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := decodeRecord(data)
		if err != nil {
			return err
		}
		if !r.Dropped {
			if marked {
				return nil // somebody else has finished, and has made the queue anew
			}
			r.Dropped = true
			if data, err = r.encode(); err != nil {
				return err
			}
			var ops []framework.Op
			if ops, err = q.removeMarkers(ctx, s); err != nil {
				return err
			}
			_, err = s.Multi(ctx, append(ops, framework.SetOp(q.path, data, st.Version),
				framework.CreateOp(q.below(droppedNode), nil, framework.Persistent))...)
		}
		if err == nil {
			marked = true
			err = q.finishDrop(ctx, s)
		}
		if err == nil || !errors.Is(err, errAgain) && !framework.IsTransient(err) && !refusedByOthers(err) {
			return err
		}
	}
}

// removeMarkers are the operations that remove the markers of writers, up to some hundred.
func (q *engine) removeMarkers(ctx context.Context, s *framework.Session) (ops []framework.Op, err error) {
	writers, _, err := s.Children(ctx, q.below(writersDir))
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	for _, name := range writers[:min(len(writers), 300)] {
		marker := framework.Join(q.below(writersDir), name)
		children, _, err := s.Children(ctx, marker)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			ops = append(ops, framework.DeleteOp(framework.Join(marker, child), framework.AnyVersion))
		}
		ops = append(ops, framework.DeleteOp(marker, framework.AnyVersion))
	}
	return ops, nil
}

// finishDrop removes a queue whose record is marked: errAgain when others have interfered.
func (q *engine) finishDrop(ctx context.Context, s *framework.Session) error {
	q.stale.Store(true)
	names, _, err := s.Children(ctx, q.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	mark := q.below(droppedNode)
	names = slices.DeleteFunc(names, func(name string) bool { return name == droppedNode })
	slices.SortFunc(names, func(a, b string) int { return rankOf(b) - rankOf(a) })
	for _, name := range names {
		if err := removeTree(ctx, s, framework.Join(q.path, name), framework.CheckOp(mark, framework.AnyVersion)); err != nil {
			return asInterference(err)
		}
	}
	_, err = s.Multi(ctx, framework.DeleteOp(mark, framework.AnyVersion), framework.DeleteOp(q.path, framework.AnyVersion))
	return asInterference(err)
}

// rankOf puts the markers of writers first.
func rankOf(name string) int {
	if name == writersDir {
		return 1
	}
	return 0
}

// asInterference is errAgain if somebody else has interfered.
func asInterference(err error) error {
	if refusedByOthers(err) {
		return errAgain
	}
	return err
}

func refusedByOthers(err error) bool {
	return errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNotEmpty) || errors.Is(err, framework.ErrBadVersion) ||
		errors.Is(err, framework.ErrNodeExists)
}

// afterMissing is what a consumer session ends with that has missed something: errSessionReplaced if the queue that it began with, born then, was
// made anew. The record's watch may have read the new one already.
func (q *engine) afterMissing(s *framework.Session, born int64, missed error) error {
	q.stale.Store(true)
	if err := q.findOrMake(q.work, s); err != nil {
		return err
	}
	if now := q.storedRecord().born; now == 0 || now != born { // it is 0 if find has just made the queue
		return fmt.Errorf("%w: %w", errSessionReplaced, missed)
	}
	return missed
}

// watchRecord follows the record until ctx ends: what is stored anew counts from then on. Where the queue was dropped, or
// made anew, it ends the consumer session.
func (q *engine) watchRecord(ctx context.Context, s *framework.Session) error {
	for {
		_, _, changed, err := s.WatchData(ctx, q.path)
		if err == nil {
			err = q.readRecord(ctx, s)
		}
		if err != nil {
			if changed != nil {
				changed.Stop()
			}
			q.stale.Store(true)
			return err
		}
		select {
		case <-changed.C():
		case <-ctx.Done():
			changed.Stop()
			return context.Cause(ctx)
		}
	}
}
