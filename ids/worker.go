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

// A window is at first this long, and at most maxWindow. Its second half is reserved again when the first is used up.
const (
	minWindow = 3 * time.Second
	maxWindow = time.Hour
)

// Worker gives ids of 63 bits that rise about with time. Each consists of a time, a slot and a count, as in Twitter's Snowflake. It is safe for
// concurrent use.
//
//	<path>                  persistent: the number of slots and the epoch, as JSON
//	<path>/<slot>           persistent: until, the time from which on no id of the slot was reserved, as JSON
//	<path>/<slot>/…-owner   ephemeral: the worker that uses the slot
//
// Guarantee: the workers of a path give an id at most once, also when clocks are set back or processes stand still, unless somebody deletes nodes or sets them
// back by hand. A worker gives only ids of reserved times. A reservation is an answered transaction that moves the slot's until past these times, at the
// version that the worker has read. The next user of the slot begins at that until, or later. A process that stood still can give the rest of its
// reserved times, and no others. The ids of one Worker rise.
//
// Not guaranteed: that the time within an id is exact. The worker estimates the ensemble's time from its latest reservation. The time in an id is later if
// the worker gives more ids in a millisecond than fit, 2^22 divided by the slots, or if the ensemble's clock was set back.
//
// Next gives ids of a reserved window from memory, also while the session is suspended or lost. A window lasts for three seconds or longer. An idle worker
// sends no requests.
type Worker struct {
	path string
	tel  reserveTelemetry
	err  error // of the arguments

	slotBits, countBits int
	epoch               int64 // in milliseconds of Unix time

	window atomic.Pointer[timeWindow] // the present window; nil before the first, and after Close

	mu         sync.Mutex
	reserving  *pendingReservation // under way
	reservedAt time.Time
	length     time.Duration // of the latest window
	closed     bool
	ctx        context.Context
	cancel     context.CancelFunc
	tasks      background.Tasks

	client *framework.Client
	slot   workerSlot // of the reservation under way alone, and of Close
}

// timeWindow is times that this worker alone may use. A position in it is a time since the epoch, followed by a count within the millisecond.
type timeWindow struct {
	number  int64
	next    *atomic.Int64 // the position that is given next; windows of one slot that follow each other share it
	until   int64         // the position behind the last
	ahead   int64         // the position from which on the next window is reserved
	asked   atomic.Bool   // the next window was requested
	clock   int64         // the ensemble's time since the epoch, in nanoseconds,
	clockAt time.Time     // at this moment
}

// NewWorker returns a worker that uses one of the slots at path, 1 to 65536. All workers of the path must have the same number of slots, which the path's
// node stores. NewWorker sends no request; the first Next does. If an argument is invalid, every call returns an error that says so.
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

// Next returns the next id. It takes an id of a reserved window from memory, also when ctx has ended. Without a window it waits for a reservation until ctx
// ends. The error is that of ctx or wraps ErrNoSlot, ErrMismatch, ErrForeign, ErrNewer, ErrExhausted, ErrClosed, framework.ErrClosed or framework.ErrNoAuth.
// Next may be called again after any error.
func (w *Worker) Next(ctx context.Context) (int64, error) {
	for {
		now := w.window.Load()
		if now != nil {
			if p, n := now.takePositions(1, w.countBits); n > 0 {
				if p >= now.ahead && now.asked.CompareAndSwap(false, true) {
					w.reserveAhead()
				}
				return w.idOf(now.number, p), nil
			}
		}
		if err := w.waitForWindow(ctx, now); err != nil {
			return 0, failure.Wrap("take an id of", w.path, err)
		}
	}
}

// Fill fills a slice with rising ids, and reads the clock once for many of them. Its errors are those of Next. After an error, do not use the ids in the slice.
func (w *Worker) Fill(ctx context.Context, ids []int64) error {
	for len(ids) > 0 {
		now := w.window.Load()
		if now != nil {
			if p, n := now.takePositions(int64(len(ids)), w.countBits); n > 0 {
				if p+n > now.ahead && now.asked.CompareAndSwap(false, true) {
					w.reserveAhead()
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

// ID is the parts of a worker's id.
type ID struct {
	// Time is when the id was given, by the ensemble's clock, to the millisecond.
	Time time.Time
	// Slot is the worker's slot.
	Slot int
	// Count tells ids of one time and slot apart.
	Count int
}

// Parse splits an id into its parts.
func (w *Worker) Parse(id int64) ID {
	return ID{time.UnixMilli(id>>lowBits + w.epoch).UTC(), int(id >> w.countBits & (1<<w.slotBits - 1)), int(id & (1<<w.countBits - 1))}
}

// Close gives the slot back: it ends a reservation that is under way and deletes the owner node. It waits for both until ctx ends.
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

// waitForWindow waits until the window after usedUp is reserved.
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

// reserveAhead reserves the next window before the present one is used up. After a failure, the next caller that needs the window tries again.
func (w *Worker) reserveAhead() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.beginReservation()
	}
}

// beginReservation begins to reserve the next window, unless that is under way. Guarded by mu.
func (w *Worker) beginReservation() *pendingReservation {
	if w.reserving != nil {
		return w.reserving
	}
	r, length := &pendingReservation{done: make(chan struct{})}, w.nextLength()
	w.reserving = r
	w.tasks.Start(func() {
		err := w.reserveInNode(length)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil && w.ctx.Err() != nil {
			err = ErrClosed
		}
		w.tel.countReservation(err)
		w.length, w.reservedAt = length, time.Now()
		r.err, w.reserving = err, nil
		close(r.done)
	})
	return r
}

// nextLength is the length of the next window. It grows while a worker gives more ids than a millisecond has room for. Guarded by mu.
func (w *Worker) nextLength() time.Duration {
	switch lasted := time.Since(w.reservedAt); {
	case w.length == 0:
		return minWindow
	case lasted < shortLasting:
		return min(2*w.length, maxWindow)
	case lasted > 2*shortLasting:
		return max(w.length/2, minWindow)
	}
	return w.length
}

// reserveInNode reserves a window, and shows it to the callers that take ids.
func (w *Worker) reserveInNode(length time.Duration) error {
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
