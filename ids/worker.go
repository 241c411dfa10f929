package ids

import (
	"context"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// The first window has the length minWindow; a later one has at most maxWindow. The next window is
// reserved when half of the present one is used up.
const (
	minWindow = 3 * time.Second
	maxWindow = time.Hour
)

// busyInterval is the time between two reservations below which the next window is longer.
const busyInterval = time.Second

// Worker gives ids of 63 bits that rise roughly with time. Each consists of a time, a slot and a
// count, as in Twitter's Snowflake. It is safe for concurrent use.
//
//	<path>                          persistent: the number of slots and the epoch, as JSON
//	<path>/<slot>                   persistent: until, the time from which on no id of the slot was reserved, as JSON
//	<path>/<slot>/_c_<uuid>-owner   ephemeral: the worker that uses the slot
//
// Guarantee: the workers of a path give an id at most once, also when clocks are set back or
// processes stand still, unless somebody deletes nodes or sets them back by hand. A worker gives
// only ids with reserved times. A reservation is an answered transaction that raises the slot's
// until past these times, at the version that the worker has read. The next user of the slot begins
// at that until, or later. A process that stood still can give ids with the rest of its reserved
// times, and no others. The ids of one Worker rise.
//
// Not guaranteed: that the time in an id is exact. The worker estimates the ensemble's time from
// its latest reservation. The time in an id is later than that in three cases: the worker gives
// more ids in a millisecond than there is room for (2^22 divided by the number of slots, rounded up
// to a power of two); the ensemble's clock was set back; or the slot's former user has reserved
// later times: a few seconds, or up to an hour if it was very busy.
//
// Next gives ids of a reserved window from memory, also while the session is suspended or lost. A
// window has the times of three seconds or more. A worker that gives more ids in a millisecond than
// there is room for uses it up sooner. An idle worker sends no requests. A slot is free again when
// its worker was closed or the worker's session has ended; a worker whose session was lost claims a
// slot again.
type Worker struct {
	path string
	err  error // of the arguments

	slotBits, countBits int
	epoch               int64 // in milliseconds of Unix time

	window atomic.Pointer[timeWindow] // the present window; nil before the first, and after Close

	reservations
	reservedAt time.Time     // when the latest window was reserved; guarded by mu
	length     time.Duration // of the latest window, or 0 before the first one; guarded by mu

	client *framework.Client
	slot   slotClaimer // used only by the reservation under way, and by Close after the last one
}

// timeWindow is a window of times that only this worker may use in its slot. A position in it is a
// time in milliseconds since the epoch, and in its lower bits a count within the millisecond.
type timeWindow struct {
	slot int64 // the slot's number
	// the position that is given next; windows of one slot that follow each other without a gap
	// share it
	next          *atomic.Int64
	until         int64       // the first position after the last
	reserveAt     int64       // the position from which on the next window is reserved
	nextRequested atomic.Bool // the reservation of the next window was begun at reserveAt
	clock         int64       // the ensemble's time since the epoch, in nanoseconds, at clockAt
	clockAt       time.Time
}

// NewWorker returns a worker that uses one of the slots at path. The number of slots is 1 to 65536,
// and the same for all workers of the path; its node stores it. NewWorker sends no request; the
// first Next claims a slot. If an argument is invalid, Next and Fill return an error that says so.
func NewWorker(client *framework.Client, path string, slots int, opts ...WorkerOption) *Worker {
	w := &Worker{path: path, client: client}
	o, err := recipe.ApplyOptions(workerDefaults(slots), opts)
	w.err = err
	if err := checkSlotCount(slots); err != nil {
		w.err, slots = err, 1 // with a number that is too large, Parse would panic
	}
	if err := recipe.CheckClientAndPath(client, path, "a worker"); err != nil {
		w.err = err
	}
	if w.err == nil {
		w.tel = newReserveTelemetry(client, "worker")
	}
	w.slotBits = bits.Len(uint(slots - 1))
	w.countBits, w.epoch = lowBits-w.slotBits, o.epoch
	w.slot.client, w.slot.path, w.slot.opts = client, path, o
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Path is the path of the workers.
func (w *Worker) Path() string { return w.path }

// Validate returns what is wrong with the arguments of NewWorker, as every call does, or nil. It
// sends no request.
func (w *Worker) Validate() error { return w.err }

// Next returns the next id. It takes an id of a reserved window from memory, also when ctx has
// ended. Without a window it waits for a reservation until ctx ends. The error is that of ctx or
// wraps ErrNoSlot, framework.ErrMismatch, framework.ErrForeign, framework.ErrNewer, ErrExhausted,
// framework.ErrClosed, framework.ErrInvalid or framework.ErrNoAuth. Next may be called again after
// any error.
func (w *Worker) Next(ctx context.Context) (int64, error) {
	for {
		window := w.window.Load()
		if window != nil {
			if p, n := window.takePositions(1, w.countBits); n > 0 {
				if p >= window.reserveAt && window.nextRequested.CompareAndSwap(false, true) {
					w.reserveAhead()
				}
				return w.idOf(window.slot, p), nil
			}
		}
		if err := w.waitForWindow(ctx, window); err != nil {
			return 0, failure.Wrap("take an id of", w.path, err)
		}
	}
}

// Fill fills a slice with rising ids, and reads the clock once for many of them, so that it is
// faster than Next. Its errors are those of Next. After an error, do not use the ids in the slice.
func (w *Worker) Fill(ctx context.Context, ids []int64) error {
	for len(ids) > 0 {
		window := w.window.Load()
		if window != nil {
			if p, n := window.takePositions(int64(len(ids)), w.countBits); n > 0 {
				if p+n > window.reserveAt && window.nextRequested.CompareAndSwap(false, true) {
					w.reserveAhead()
				}
				for i := range ids[:n] {
					ids[i] = w.idOf(window.slot, p+int64(i))
				}
				ids = ids[n:]
				continue
			}
		}
		if err := w.waitForWindow(ctx, window); err != nil {
			return failure.Wrap("take ids of", w.path, err)
		}
	}
	return nil
}

// ID is the parts of a worker's id.
type ID struct {
	// Time is when the id was given, by the worker's estimate of the ensemble's clock, to the
	// millisecond. It may be later; see Worker.
	Time time.Time
	// Slot is the number of the worker's slot.
	Slot int
	// Count differs for the ids of one time and slot.
	Count int
}

// Parse splits an id of a worker of this path into its parts. It sends no request. If the worker's
// number of slots was refused, the parts are meaningless.
func (w *Worker) Parse(id int64) ID {
	return ID{time.UnixMilli(id>>lowBits + w.epoch).UTC(), int(id >> w.countBits & (1<<w.slotBits - 1)),
		int(id & (1<<w.countBits - 1))}
}

// Close ends a reservation that is under way and deletes the owner node, which frees the slot. It
// returns nil when the servers have confirmed that; else the error wraps framework.ErrUnconfirmed
// and the reason. It is a cleanup (framework.Client.CleanupContext): it also waits if ctx has
// ended. After that the deletion goes on in the background. Later calls of Next return
// framework.ErrClosed.
func (w *Worker) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.window.Store(nil)
	w.cancel()
	w.mu.Unlock()
	released := make(chan struct{})
	go func() {
		<-w.tasks.Done()
		w.slot.releaseSlot()
		close(released)
	}()
	return failure.Wrap("close", w.path, recipe.FinishCleanup(ctx, w.client, released, w.slot.deletion.Err))
}

// idOf returns the id of a position in a slot.
func (w *Worker) idOf(slot, position int64) int64 {
	countMask := int64(1)<<w.countBits - 1
	return position>>w.countBits<<lowBits | slot<<w.countBits | position&countMask
}

// takePositions takes up to n positions that follow each other: the first ones from the present
// time on that were not taken yet. given is 0 if the window is used up.
func (window *timeWindow) takePositions(n int64, countBits int) (first, given int64) {
	present := int64(time.Duration(window.clock)+time.Since(window.clockAt)) / int64(time.Millisecond) << countBits
	for {
		next := window.next.Load()
		first = max(next, present)
		given = min(n, window.until-first)
		if given <= 0 {
			return 0, 0
		}
		if window.next.CompareAndSwap(next, first+given) {
			return first, given
		}
	}
}

// waitForWindow waits until the window after usedUp is reserved. usedUp is nil before the first
// window.
func (w *Worker) waitForWindow(ctx context.Context, usedUp *timeWindow) error {
	if w.err != nil {
		return w.err
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	if w.window.Load() != usedUp { // the next window was reserved meanwhile
		w.mu.Unlock()
		return nil
	}
	next := w.beginReservation()
	w.mu.Unlock()
	return w.waitFor(ctx, next)
}

// reserveAhead begins to reserve the next window before the present one is used up. If that fails,
// the next caller that needs the window tries again.
func (w *Worker) reserveAhead() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.beginReservation()
	}
}

// beginReservation begins to reserve the next window, unless a reservation is under way. Guarded by
// mu.
func (w *Worker) beginReservation() *pendingReservation {
	length := w.nextLength()
	return w.begin(func() error { return w.reserveInNode(length) }, func(err error) {
		if err == nil {
			w.length, w.reservedAt = length, time.Now()
		}
	})
}

// nextLength returns the length for the next window. It doubles while reservations follow each
// other within a second, as when a worker gives more ids than a millisecond has room for, and
// halves when they are more than two seconds apart. Guarded by mu.
func (w *Worker) nextLength() time.Duration {
	switch lasted := time.Since(w.reservedAt); {
	case w.length == 0:
		return minWindow
	case lasted < busyInterval:
		return min(2*w.length, maxWindow)
	case lasted > 2*busyInterval:
		return max(w.length/2, minWindow)
	}
	return w.length
}

// reserveInNode reserves a window of this length, and makes it the present one.
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
		next := &timeWindow{slot: int64(r.number), next: new(atomic.Int64), until: till,
			reserveAt: till - (till-from)/2,
			clock:     (r.now - w.epoch) * int64(time.Millisecond), clockAt: r.at}
		if before != nil && before.slot == next.slot && before.until == from {
			next.next = before.next
		} else {
			next.next.Store(from)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.closed {
			return errClosed
		}
		w.window.Store(next)
		return nil
	}, failure.IsTransient, isUnknown)
}
