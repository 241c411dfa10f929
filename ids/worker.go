package ids

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// A window is at first this long, and at most mostWindow. Its second half is reserved again when the first is used up.
const (
	leastWindow = 3 * time.Second
	mostWindow  = time.Hour
)

// Worker gives ids that are made of a time, a slot and a count, as those of Twitter's Snowflake are: 63 bits that rise about with time. It is safe
// for concurrent use.
//
//	<path>                  persistent: the number of slots and the epoch, as JSON
//	<path>/<slot>           persistent: until, the time from which on no id of the slot was reserved, as JSON
//	<path>/<slot>/…-owner   ephemeral: the worker that uses the slot
//
// Guarantee: no id is given twice by any workers of the path, also when clocks are set back or processes stand still, as long as the nodes are neither
// deleted nor set back by hand. A worker gives ids of times that it has reserved: by a transaction that moved the slot's until past them, at the version that
// it had read, and that was answered. The next user of the slot begins at that until, or later. A process that stood still may use up what it had
// reserved, and no more. The ids of one Worker rise.
//
// Not guaranteed: that the time within an id is exact. It is the ensemble's, as it was told with the latest reservation. It is later when a worker gives more ids
// in a millisecond than fit, 2^22 divided by the slots, or when the ensemble's clock was set back.
//
// Ids of a reserved window are given from memory, also while the session is suspended or lost. A window lasts for three seconds or longer. An idle worker
// sends no requests.
type Worker struct {
	path string
	tel  reserveTelemetry
	err  error // of the arguments

	slotBits, countBits int
	epoch               int64 // in milliseconds of Unix time

	window atomic.Pointer[timeWindow] // what is given now; nil before the first, and after Close

	mu       sync.Mutex
	raising  *pendingReservation // under way
	raisedAt time.Time
	length   time.Duration // of the latest window
	closed   bool
	ctx      context.Context
	cancel   context.CancelFunc
	tasks    background.Tasks

	client *framework.Client
	slot   workerSlot // of the reservation under way alone, and of Close
}

// timeWindow is times that this worker alone may use. Its positions are times since the epoch with a count within the millisecond behind them.
type timeWindow struct {
	number  int64
	next    *atomic.Int64 // the position that is given next; windows of one slot that follow each other share it
	until   int64         // the position behind the last
	ahead   int64         // the position from which on the next window is reserved
	asked   atomic.Bool   // it was asked for
	clock   int64         // the ensemble's time since the epoch, in nanoseconds,
	clockAt time.Time     // at this moment
}

// NewWorker returns a worker that uses one of so many slots at path: 1 to 65536. All workers of the path must have the same number, which is stored there. It needs no request
// until the first id. If an argument is invalid, every call returns an error that says so.
func NewWorker(client *framework.Client, path string, slots int, opts ...WorkerOption) *Worker {
	w := &Worker{path: path, client: client}
	o, err := recipe.ApplyOptions(workerDefaults(slots), opts)
	w.err = err
	if err := checkSlotCount(slots); err != nil {
		w.err = err
	}
	if err := recipe.CheckClientAndPath(client, path, "a worker"); err != nil {
		w.err = err
	}
	if w.err == nil {
		w.tel = newReserveTelemetry(client, "worker")
	}
	w.slotBits = bits.Len(uint(max(slots-1, 0)))
	w.countBits, w.epoch = lowBits-w.slotBits, o.epoch
	w.slot.client, w.slot.path, w.slot.opts = client, path, o
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Path is the worker's path.
func (w *Worker) Path() string { return w.path }

// Next returns the next id. It takes it from memory, also when ctx has ended, unless no window is reserved: then it waits, as long as ctx. The error is that of ctx or wraps
// ErrNoSlot, ErrMismatch, ErrForeign, ErrNewer, ErrExhausted, ErrClosed, framework.ErrClosed or framework.ErrNoAuth. Next may be called again after any error.
func (w *Worker) Next(ctx context.Context) (int64, error) {
	for {
		now := w.window.Load()
		if now != nil {
			if p, n := now.takePositions(1, w.countBits); n > 0 {
				if p >= now.ahead && now.asked.CompareAndSwap(false, true) {
					w.raiseAhead()
				}
				return w.idOf(now.number, p), nil
			}
		}
		if err := w.waitForWindow(ctx, now); err != nil {
			return 0, failure.Wrap("take an id of", w.path, err)
		}
	}
}

// Fill fills a slice with ids, with one look at the clock for many. They rise. Its errors are those of Next; then the ids that the slice has must not be used.
func (w *Worker) Fill(ctx context.Context, ids []int64) error {
	for len(ids) > 0 {
		now := w.window.Load()
		if now != nil {
			if p, n := now.takePositions(int64(len(ids)), w.countBits); n > 0 {
				if p+n > now.ahead && now.asked.CompareAndSwap(false, true) {
					w.raiseAhead()
				}
				for i := range ids[:n] {
					ids[i] = w.idOf(now.number, p+int64(i))
				}
				ids = ids[n:]
				continue
			}
		}
		if err := w.waitForWindow(ctx, now); err != nil {
			return failure.Wrap("take ids of", w.path, err)
		}
	}
	return nil
}

// ID is what a worker's id is made of.
type ID struct {
	// Time is when it was given, by the ensemble's clock, to the millisecond.
	Time time.Time
	// Slot is the worker's.
	Slot int
	// Count tells ids of one time and slot apart.
	Count int
}

// Parse takes an id apart.
func (w *Worker) Parse(id int64) ID {
	return ID{time.UnixMilli(id>>lowBits + w.epoch).UTC(), int(id >> w.countBits & (1<<w.slotBits - 1)), int(id & (1<<w.countBits - 1))}
}

// Close gives the slot back: it ends a reservation that is under way and deletes the owner node, as long as ctx.
func (w *Worker) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.window.Store(nil)
	w.cancel()
	w.mu.Unlock()
	for _, wait := range []func() <-chan struct{}{w.tasks.Done, w.slot.releaseSlot} {
		select {
		case <-wait():
		case <-ctx.Done():
			return failure.Wrap("close", w.path, failure.Ended(ctx))
		}
	}
	return nil
}

func (w *Worker) idOf(number, position int64) int64 {
	count := int64(1)<<w.countBits - 1
	return position>>w.countBits<<lowBits | number<<w.countBits | position&count
}

// takePositions gives up to n positions: those from now on that were not given yet.
func (now *timeWindow) takePositions(n int64, countBits int) (first, given int64) {
	present := int64(time.Duration(now.clock)+time.Since(now.clockAt)) / int64(time.Millisecond) << countBits
	for {
		next := now.next.Load()
		first = max(next, present)
		given = min(n, now.until-first)
		if given <= 0 {
			return 0, 0
		}
		if now.next.CompareAndSwap(next, first+given) {
			return first, given
		}
	}
}

// waitForWindow waits for the window after the one that is used up, and returns nil when there may be an id left.
func (w *Worker) waitForWindow(ctx context.Context, usedUp *timeWindow) error {
	if w.err != nil {
		return w.err
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	if w.window.Load() != usedUp { // another caller was here before
		w.mu.Unlock()
		return nil
	}
	under, began := w.beginReservation(), time.Now()
	w.mu.Unlock()
	err := under.waitForEnd(ctx)
	w.tel.recordWait(began, err)
	return err
}

// raiseAhead reserves the next window before the present one is used up. If that fails, the next caller that needs the window reserves it.
func (w *Worker) raiseAhead() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.beginReservation()
	}
}

// beginReservation begins to reserve the next window, unless that is under way. Guarded by mu.
func (w *Worker) beginReservation() *pendingReservation {
	if w.raising != nil {
		return w.raising
	}
	r, length := &pendingReservation{done: make(chan struct{})}, w.nextLength()
	w.raising = r
	w.tasks.Start(func() {
		err := w.raiseInNode(length)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil && w.ctx.Err() != nil {
			err = ErrClosed
		}
		w.tel.countReservation(err)
		w.length, w.raisedAt = length, time.Now()
		r.err, w.raising = err, nil
		close(r.done)
	})
	return r
}

// nextLength is how long the next window is. It grows while a worker gives more ids than a millisecond has room for. Guarded by mu.
func (w *Worker) nextLength() time.Duration {
	switch lasted := time.Since(w.raisedAt); {
	case w.length == 0:
		return leastWindow
	case lasted < briefly:
		return min(2*w.length, mostWindow)
	case lasted > 2*briefly:
		return max(w.length/2, leastWindow)
	}
	return w.length
}

// raiseInNode reserves a window, and shows it to the callers that take ids.
func (w *Worker) raiseInNode(length time.Duration) error {
	floor := int64(0)
	before := w.window.Load()
	if before != nil {
		floor = before.until>>w.countBits + w.epoch
	}
	return recipe.OnSession(w.ctx, w.client, func(s *framework.Session) error {
		r, err := w.slot.reserveTimes(w.ctx, s, floor, length)
		if err != nil {
			return err
		}
		from, till := (r.from-w.epoch)<<w.countBits, (r.till-w.epoch)<<w.countBits
		next := &timeWindow{number: int64(r.number), next: new(atomic.Int64), until: till, ahead: till - (till-from)/2,
			clock: (r.now - w.epoch) * int64(time.Millisecond), clockAt: r.at}
		if before != nil && before.number == next.number && before.until == from {
			next.next = before.next
		} else {
			next.next.Store(from)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.closed {
			return ErrClosed
		}
		w.window.Store(next)
		return nil
	}, failure.IsTransient, isUnknown)
}
