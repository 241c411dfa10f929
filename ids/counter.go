package ids

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// markerAge is how long a writer's write marker stays after its last write. Another writer may
// delete an older marker.
const markerAge = 24 * time.Hour

// Counter is a number that many processes change. It is safe for concurrent use. The node's bytes
// are those of Apache Curator's DistributedAtomicLong (8 bytes, big endian), or of its SharedCount
// (4 bytes) with WithSharedCount, so that Java programs use it, too; with WithText they are those
// of kazoo's Counter.
//
//	<path>                  persistent: the number; a missing node is 0
//	<path>~writers/<name>   persistent: this writer's write marker; its version counts the
//	                        writer's transactions, its data is the number before the latest one
//
// Guarantee: a change that returns without an error has taken effect exactly once, also when
// replies and sessions were lost: each write of the number is one transaction with a write of the
// writer's marker, at the versions of both that were read. The marker shows whether a transaction
// without an answer was applied. The changes of one Counter that wait at the same time are made in
// one transaction. After an error that wraps framework.ErrOutcomeUnknown, the change may have been
// made, or may still be made. After any other error it was not made, and will not be.
//
// The outcome is unknown when the context ends, the counter is closed or the client is closed while
// the change is under way, and when the marker was deleted before this process has read it again:
// by hand, or by other writers when this process was cut off for more than a day.
//
// Not guaranteed: the number when the node is deleted: it is 0 then.
type Counter struct {
	client *framework.Client
	path   string
	width  int // bytes of the node, or 0 for decimal text
	tel    counterTelemetry
	err    error // of the arguments of NewCounter

	mu      sync.Mutex
	waiting []*counterChange // for a transaction
	running bool             // runChanges is running
	closed  bool
	ctx     context.Context // done after Close
	cancel  context.CancelFunc
	tasks   background.Tasks

	// Used only by the goroutine of runChanges. After its end Close uses marker with mu.
	marker string // the marker's path, or "" if there is none
	// the marker was created, and version is known; otherwise another marker takes its place
	markerUsable bool
	version      int32            // of the marker, before the transaction of sentBatch
	sentBatch    []*counterChange // the changes of the transaction under way
	// the transaction of sentBatch has no answer: it may have been applied, or may still be
	transactionUnanswered bool
}

// counterChange is one call of Add, Set or CompareAndSet.
type counterChange struct {
	apply     func(int64) (int64, error) // returns the number after the change, or why it is refused
	maybeSent bool                       // its transaction may have been sent; guarded by Counter.mu
	done      chan struct{}
	value     int64 // the result; valid after done is closed, as is err
	err       error
}

// NewCounter returns the counter at path. It sends no request before the first call. If an argument
// is invalid, every call returns an error that says so.
func NewCounter(client *framework.Client, path string, opts ...CounterOption) *Counter {
	c := &Counter{client: client, path: path}
	o, err := recipe.ApplyOptions(counterOptions{width: 8}, opts)
	c.width, c.err = o.width, err
	if err := recipe.CheckClientAndPath(client, path, "a counter"); err != nil {
		c.err = err
	}
	if c.err == nil {
		c.tel = newCounterTelemetry(client)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Path is the counter's path.
func (c *Counter) Path() string { return c.path }

// Validate returns what is wrong with the arguments of NewCounter, as every call does, or nil. It
// sends no request.
func (c *Counter) Validate() error { return c.err }

// Get reads the number after a sync. A missing node counts as 0. The error is that of ctx, or wraps
// framework.ErrForeign if the node does not hold a number of this kind, framework.ErrInvalid,
// framework.ErrClosed or framework.ErrNoAuth. Get works after Close, too.
func (c *Counter) Get(ctx context.Context) (value int64, err error) {
	if c.err != nil {
		return 0, failure.Wrap("read", c.path, c.err)
	}
	err = recipe.OnSession(ctx, c.client, func(s *framework.Session) error {
		if err := s.Sync(ctx, c.path); err != nil {
			return err
		}
		value, _, _, err = c.readNumber(ctx, s)
		return err
	}, failure.IsTransient)
	return value, failure.Wrap("read", c.path, err)
}

// Add adds delta, which may be negative, and returns the sum. The error is that of ctx, or wraps
// ErrExhausted if the sum is outside the counter's range, framework.ErrForeign,
// framework.ErrClosed, framework.ErrInvalid or framework.ErrNoAuth, and also
// framework.ErrOutcomeUnknown if the change may have been made.
func (c *Counter) Add(ctx context.Context, delta int64) (int64, error) {
	return c.applyChange(ctx, "add to", func(value int64) (int64, error) {
		sum := value + delta
		if (sum > value) != (delta > 0) && delta != 0 || !c.hasRoom(sum) {
			return value, fmt.Errorf("%w: %d + %d", errOverflow, value, delta)
		}
		return sum, nil
	})
}

// Set writes a number in place of the present one. The node must hold a number of this kind or be
// missing. The error is as that of Add.
func (c *Counter) Set(ctx context.Context, value int64) error {
	_, err := c.applyChange(ctx, "set", func(int64) (int64, error) { return value, c.checkRoom(value) })
	return err
}

// CompareAndSet writes a number if the present one is old. If it is not, the error wraps
// framework.ErrConflict. Other errors are as those of Add.
func (c *Counter) CompareAndSet(ctx context.Context, old, value int64) error {
	_, err := c.applyChange(ctx, "set", func(present int64) (int64, error) {
		if present != old {
			return present, fmt.Errorf("%w: it is %d, %d was expected", errChanged, present, old)
		}
		return value, c.checkRoom(value)
	})
	return err
}

// Close ends the calls under way, waits for their end, and deletes this writer's marker. It is a
// cleanup (framework.Client.CleanupContext): it does so also if ctx has ended. If the servers do
// not confirm it in time, or refuse it, the error wraps framework.ErrUnconfirmed, and the marker
// may stay: call Close again, or another writer deletes the marker after a day.
func (c *Counter) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.cancel()
	c.mu.Unlock()
	if err := recipe.FinishCleanup(ctx, c.client, c.tasks.Done(), nil); err != nil {
		return failure.Wrap("close", c.path, err)
	}
	c.mu.Lock() // another call of Close may be here, too
	marker := c.marker
	c.mu.Unlock()
	if marker == "" {
		return nil
	}
	ctx, cancel := c.client.CleanupContext(ctx)
	defer cancel()
	err := c.client.DeleteIfPresent(ctx, marker)
	if err == nil {
		c.mu.Lock()
		c.marker = ""
		c.mu.Unlock()
	}
	return failure.Wrap("close", c.path, failure.Unconfirmed(err))
}

// applyChange makes one change, and returns the number after it. op names the change in errors.
func (c *Counter) applyChange(ctx context.Context, op string,
	apply func(int64) (int64, error)) (value int64, err error) {
	if c.err != nil {
		return 0, failure.Wrap(op, c.path, c.err)
	}
	defer func() { c.tel.countChange(err) }()
	if ctx.Err() != nil {
		return 0, failure.Wrap(op, c.path, failure.Ended(ctx))
	}
	own := &counterChange{apply: apply, done: make(chan struct{})}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, failure.Wrap(op, c.path, errClosed)
	}
	c.waiting = append(c.waiting, own)
	if !c.running {
		c.running = c.tasks.Start(c.runChanges)
	}
	c.mu.Unlock()
	select {
	case <-own.done:
		return own.value, failure.Wrap(op, c.path, own.err)
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err = failure.Ended(ctx)
	select {
	case <-own.done:
		return own.value, failure.Wrap(op, c.path, own.err)
	default:
	}
	if own.maybeSent {
		err = fmt.Errorf("%w: %w", framework.ErrOutcomeUnknown, err)
	} else {
		c.waiting = slices.DeleteFunc(c.waiting, func(other *counterChange) bool { return other == own })
	}
	return 0, failure.Wrap(op, c.path, err)
}

// runChanges makes the changes that wait, until there is none.
func (c *Counter) runChanges() {
	for {
		err := recipe.OnSession(c.ctx, c.client, c.writeOrFindOutcome, failure.IsTransient, isUnknown)
		c.mu.Lock()
		if err != nil {
			c.failAllLocked(err)
		}
		if len(c.waiting) == 0 {
			c.running = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// failAllLocked ends all changes with an error. Guarded by mu.
func (c *Counter) failAllLocked(err error) {
	if c.ctx.Err() != nil {
		err = errClosed
	}
	for _, one := range c.waiting {
		one.err = err
		close(one.done)
	}
	c.waiting = nil
	if c.transactionUnanswered {
		c.failSentLocked(err)
	}
}

// failWithUnknownOutcome ends the changes of a transaction without an answer, because the marker
// does not show the outcome.
func (c *Counter) failWithUnknownOutcome(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failSentLocked(err)
}

// failSentLocked ends the changes of a transaction without an answer with
// framework.ErrOutcomeUnknown, and gives the marker up, since its version is not known. Guarded by
// mu.
func (c *Counter) failSentLocked(err error) {
	for _, one := range c.sentBatch {
		one.err = fmt.Errorf("%w: %w", framework.ErrOutcomeUnknown, err)
		close(one.done)
	}
	c.sentBatch, c.transactionUnanswered, c.markerUsable = nil, false, false
}

// writeOrFindOutcome makes one transaction of all changes that wait. If the former transaction has
// no answer, it finds out first whether that was applied, and sends its changes again if not. It
// returns nil when a transaction's changes have ended.
func (c *Counter) writeOrFindOutcome(s *framework.Session) error {
	if c.transactionUnanswered {
		if known, err := c.findOutcome(s); known || err != nil {
			return err
		}
	}
	if !c.markerUsable {
		if err := c.createMarker(s); err != nil {
			return err
		}
	}
	value, version, exists, err := c.readNumber(c.ctx, s)
	if err != nil {
		return err
	}
	batch := c.takeBatch()
	after, refused := applyAll(batch, value)
	if refused > 0 { // the number may be old: the server may lag behind
		if err := s.Sync(c.ctx, c.path); err != nil {
			return c.putBack(batch, err)
		}
		if value, version, exists, err = c.readNumber(c.ctx, s); err != nil {
			return c.putBack(batch, err)
		}
		after, refused = applyAll(batch, value)
	}
	ops := []framework.Op{framework.SetOp(c.marker, strconv.AppendInt(nil, value, 10), c.version)}
	switch {
	case refused == len(batch) && !c.transactionUnanswered:
		c.finishBatch(batch)
		return nil
	case refused == len(batch):
		// only the marker is written: its new version keeps the transaction without an answer from
		// taking effect
	case exists:
		ops = append(ops, framework.SetOp(c.path, c.encodeNumber(after), version))
	default:
		ops = append(ops, framework.CreateOp(c.path, c.encodeNumber(after), framework.Persistent))
	}
	rs, err := s.Multi(c.ctx, ops...)
	if err == nil {
		c.version, c.transactionUnanswered = rs[0].Stat.Version, false
		c.tel.countTransaction()
		c.finishBatch(batch)
		return nil
	}
	return c.afterFailedTransaction(s, batch, exists, err)
}

// afterFailedTransaction keeps or returns the changes of a transaction that has failed with err.
// exists says whether the transaction would have written an existing counter's node.
func (c *Counter) afterFailedTransaction(s *framework.Session, batch []*counterChange, exists bool, err error) error {
	var tx *framework.TxError
	switch {
	case isUnknown(err):
		c.sentBatch, c.transactionUnanswered = batch, true
		return err
	case !errors.As(err, &tx):
		return c.putBack(batch, err)
	case tx.Index == 0 && c.transactionUnanswered: // the former transaction was applied, or the marker is gone
		return recipe.ErrAgain
	case tx.Index == 0 && (errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrBadVersion)):
		c.markerUsable = false // another program has deleted or written it
	case errors.Is(err, framework.ErrNoNode) && !exists:
		dir, _ := znode.Split(c.path)
		if err := s.MakeDirs(c.ctx, dir); err != nil {
			return c.putBack(batch, err)
		}
	case !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrNodeExists) &&
		!errors.Is(err, framework.ErrBadVersion):
		return c.putBack(batch, err)
	}
	return c.putBack(batch, recipe.ErrAgain)
}

// findOutcome reads the marker to find out whether the transaction without an answer was
// applied. It returns true when the transaction's changes have ended. It returns false if the
// transaction was not applied: it may still be, until another transaction has raised the marker's
// version.
func (c *Counter) findOutcome(s *framework.Session) (known bool, err error) {
	if err := s.Sync(c.ctx, c.marker); err != nil {
		return false, err
	}
	data, stat, err := s.Get(c.ctx, c.marker)
	switch {
	case err == nil && stat.Version == c.version:
		return false, nil
	case err != nil && !errors.Is(err, framework.ErrNoNode):
		return false, err
	}
	before, corrupt := strconv.ParseInt(string(data), 10, 64)
	if err != nil || corrupt != nil || stat.Version != c.version+1 {
		c.failWithUnknownOutcome(fmt.Errorf("the marker %s was deleted or written by another client", c.marker))
		return true, nil
	}
	batch := c.sentBatch
	applyAll(batch, before)
	c.version, c.transactionUnanswered = stat.Version, false
	c.tel.countTransaction()
	c.finishBatch(batch)
	return true, nil
}

// takeBatch returns the changes of the next transaction: those of a former transaction without an
// answer, or else those that wait.
func (c *Counter) takeBatch() []*counterChange {
	if c.transactionUnanswered {
		return c.sentBatch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.waiting
	for _, one := range batch {
		one.maybeSent = true
	}
	c.waiting, c.sentBatch = nil, batch
	return batch
}

// putBack makes the changes of a transaction that was not applied wait again, before the others.
// The changes of a transaction without an answer stay in sentBatch. It returns err.
func (c *Counter) putBack(batch []*counterChange, err error) error {
	if c.transactionUnanswered {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range batch {
		one.maybeSent, one.value, one.err = false, 0, nil
	}
	c.waiting, c.sentBatch = append(batch, c.waiting...), nil
	return err
}

// finishBatch ends changes with their results.
func (c *Counter) finishBatch(batch []*counterChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range batch {
		close(one.done)
	}
	c.sentBatch = nil
}

// applyAll applies changes to a number, one after the other, sets their results, and returns the
// number after them and how many were refused.
func applyAll(batch []*counterChange, value int64) (after int64, refused int) {
	for _, one := range batch {
		if one.value, one.err = one.apply(value); one.err != nil {
			refused++
			continue
		}
		value = one.value
	}
	return value, refused
}

// createMarker creates this writer's marker, in place of a marker that is not usable, and deletes
// old markers of other writers.
func (c *Counter) createMarker(s *framework.Session) error {
	if c.marker != "" {
		if err := s.DeleteIfPresent(c.ctx, c.marker); err != nil {
			return err
		}
	}
	dir := c.path + "~writers"
	c.marker = znode.Join(dir, rand.Text())
	err := s.CreateIfMissing(c.ctx, c.marker, nil, framework.Persistent)
	if errors.Is(err, framework.ErrNoNode) {
		c.marker = ""
		if err := s.MakeDirs(c.ctx, dir); err != nil {
			return err
		}
		return recipe.ErrAgain
	}
	if err != nil {
		if !errors.Is(err, framework.ErrOutcomeUnknown) && !failure.IsTransient(err) { // it was refused
			c.marker = ""
		}
		return err
	}
	c.version, c.markerUsable = 0, true
	return c.deleteOldMarkers(s, dir)
}

// markersAtOnce is how many markers one transaction deletes.
const markersAtOnce = 100

// deleteOldMarkers deletes the markers that were not written for markerAge, by the ensemble's
// clock: many in a request, since each process that ends without Close leaves one.
func (c *Counter) deleteOldMarkers(s *framework.Session, dir string) error {
	names, _, err := s.Children(c.ctx, dir)
	if err != nil {
		return err
	}
	own, err := s.Exists(c.ctx, c.marker)
	if err != nil {
		return err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.Join(dir, name)
	}
	markers, err := s.GetAll(c.ctx, paths...)
	if err != nil {
		return err
	}
	var deletions []framework.Op
	for i, marker := range markers {
		if marker.Err == nil && own.Ctime.Sub(marker.Stat.Mtime) > markerAge {
			// refused if it was written since
			deletions = append(deletions, framework.DeleteOp(paths[i], marker.Stat.Version))
		}
	}
	for some := range slices.Chunk(deletions, markersAtOnce) {
		if err := c.deleteMarkers(s, some); err != nil {
			return err
		}
	}
	return nil
}

// deleteMarkers deletes markers in one transaction. If it is refused, because another writer has
// written or deleted one of them, it deletes them one by one, and leaves those that are refused.
func (c *Counter) deleteMarkers(s *framework.Session, deletions []framework.Op) error {
	_, err := s.Multi(c.ctx, deletions...)
	var refused *framework.TxError
	if !errors.As(err, &refused) {
		return err
	}
	if len(deletions) == 1 {
		return nil
	}
	for i := range deletions {
		if err := c.deleteMarkers(s, deletions[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// readNumber reads the number and the version of its node. The error wraps framework.ErrForeign if
// the node does not hold a number of this kind.
func (c *Counter) readNumber(ctx context.Context,
	s *framework.Session) (value int64, version int32, exists bool, err error) {
	data, stat, err := s.Get(ctx, c.path)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return 0, 0, false, nil
	case err != nil:
		return 0, 0, false, err
	case c.width == 0:
		if len(data) == 0 { // kazoo creates the node before it writes the number
			return 0, stat.Version, true, nil
		}
		if value, err = strconv.ParseInt(string(data), 10, 64); err != nil {
			err = fmt.Errorf("%w: %s: %w", errForeign, c.path, err)
		}
		return value, stat.Version, true, err
	case len(data) != c.width:
		return 0, 0, false, fmt.Errorf(
			"%w: %s has %d bytes, this counter needs %d (DistributedAtomicLong 8, SharedCount 4)", errForeign, c.path,
			len(data), c.width)
	case c.width == 4:
		return int64(int32(binary.BigEndian.Uint32(data))), stat.Version, true, nil
	}
	return int64(binary.BigEndian.Uint64(data)), stat.Version, true, nil
}

// encodeNumber returns the node's data for a number.
func (c *Counter) encodeNumber(value int64) []byte {
	switch c.width {
	case 0:
		return strconv.AppendInt(nil, value, 10)
	case 4:
		return binary.BigEndian.AppendUint32(nil, uint32(int32(value)))
	}
	return binary.BigEndian.AppendUint64(nil, uint64(value))
}

// hasRoom reports whether the counter's node can hold a number.
func (c *Counter) hasRoom(value int64) bool {
	return c.width != 4 || value >= math.MinInt32 && value <= math.MaxInt32
}

func (c *Counter) checkRoom(value int64) error {
	if !c.hasRoom(value) {
		return fmt.Errorf("%w: %d needs more than %d bytes", errOverflow, value, c.width)
	}
	return nil
}
