package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
)

// shift is a consumer's time on one session.
type shift struct {
	c      *consumer
	q      *core
	s      *framework.Session
	id     string
	ctx    context.Context // done when the shift is over, with the session at the latest
	cancel context.CancelCauseFunc
	tasks  tasks
	owed   tasks // parts on their way
	place  place
	gate   gate
	reads  *lookups
	stock  stock
	desk   *desk      // of a strict queue's consumer that has the lock; guarded by c.mu
	lines  *lineViews // of a parallel queue

	// Guarded by c.mu.
	making  int                // claims on their way
	ready   []*delivery        // claimed, and not handed out
	held    map[*delivery]bool // handed out, and not settled
	ending  int                // being settled
	largest int                // bytes of the largest item of lately, or 0
	hopes   int                // calls of Take that are expected, since deliveries were settled
	spell   spell
	waiting map[string]bool // the items that tickets wait for
	inLine  bool            // the consumer stands in the queue's line, and claims
	leads   bool            // and is the first there
}

func newShift(c *consumer, s *framework.Session) *shift {
	sh := &shift{c: c, q: c.q, s: s, id: uuid.NewString()[:8], held: map[*delivery]bool{}, waiting: map[string]bool{}, stock: stock{n: map[shelf]int{}}}
	sh.ctx, sh.cancel = context.WithCancelCause(c.q.work)
	sh.spell = newSpell(sh.ctx)
	sh.place.ctx, sh.place.leave = context.WithCancel(s.Context())
	sh.gate.init(func() { c.resume(sh) })
	sh.reads = newLookups(sh)
	sh.lines = newLineViews(c.q, s, sh.id, sh.left)
	return sh
}

// run works until the session or the Queue ends, or nobody calls Take any more.
func (sh *shift) run() error {
	stop := context.AfterFunc(sh.s.Context(), func() { sh.cancel(context.Cause(sh.s.Context())) })
	defer stop()
	sh.tasks.start(func() { sh.end(sh.gate.watch(sh.ctx, sh.s, sh.q.below(pausedNode))) })
	sh.tasks.start(func() { sh.end(sh.q.watchRecord(sh.ctx, sh.s)) })
	err := sh.serve()
	sh.end(err)
	<-sh.tasks.done()
	sh.goHome()
	sh.leave()
	return err
}

func (sh *shift) serve() error {
	if sh.q.stored().Order == Strict {
		return sh.strict()
	}
	return sh.parallel()
}

// end ends the shift; only the first error counts.
func (sh *shift) end(err error) {
	if err != nil {
		sh.cancel(err)
	}
}

// begin tells how many claims to begin, up to most, and counts them as begun. On demand means that calls of Take
// wait for them.
func (sh *shift) begin(most int, onDemand bool) (n int) {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	wanted := len(sh.c.waits)
	if !onDemand {
		wanted += max(sh.hopes, sh.ahead(wanted))
	}
	mine := sh.making + len(sh.ready)
	n = max(0, min(most, wanted-mine, sh.q.windowSize()-mine-len(sh.held)))
	sh.making += n
	return n
}

// ahead is how many claims to make ahead of the calls of Take, of which so many wait.
func (sh *shift) ahead(waiting int) int {
	if waiting == 0 && time.Since(sh.c.last) >= sh.q.linger {
		return 0
	}
	if sh.largest == 0 { // nothing is known of the items so far
		return min(sh.q.prefetch, firstLookups)
	}
	return min(sh.q.prefetch, max(1, sh.q.prefetchBytes/sh.largest))
}

// busy tells whether a claim is on its way or a delivery is open.
func (sh *shift) busy() bool {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	return sh.making+len(sh.ready)+len(sh.held) > 0
}

// gaveUp counts a claim that came to nothing.
func (sh *shift) gaveUp() {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	sh.making--
	sh.c.kick()
}

// offer hands a delivery out, or keeps it until somebody takes it. An item that cannot be read, or has used up its
// attempts, goes to the dead letters instead.
func (sh *shift) offer(d *delivery) {
	err := d.bad
	if most := sh.q.maxAttempts; err == nil && most > 0 && d.attempt > most {
		d.attempt--
		err = fmt.Errorf("%w: attempt %d ended without an answer", ErrLost, d.attempt)
	}
	sh.c.mu.Lock()
	sh.making--
	sh.largest = max(1, len(d.env.payload), sh.largest-sh.largest/8)
	if err == nil {
		sh.ready = append(sh.ready, d)
		sh.c.serve(sh)
	} else {
		sh.held[d] = true
	}
	sh.c.mu.Unlock()
	d.settleWhenLost()
	if err != nil && d.begin(ErrSettled) == nil {
		d.bury(err, func(error) {})
	}
	sh.c.kick()
}

// settling makes room for another delivery: this one is on its way out.
func (sh *shift) settling(d *delivery) {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	sh.ready = slices.DeleteFunc(sh.ready, func(other *delivery) bool { return other == d })
	if !sh.held[d] {
		return
	}
	delete(sh.held, d)
	d.leaves = true
	sh.ending++
	sh.used(d)
}

// hope expects another call of Take, as mostly follows an acknowledgement.
func (sh *shift) hope() {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	if sh.desk == nil {
		sh.hopes = min(sh.hopes+1, sh.q.windowSize())
	}
}

// hopeLess expects one call of Take less.
func (sh *shift) hopeLess() {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	sh.hopes = max(0, sh.hopes-1)
}

// closed takes in that a delivery was settled, or could not be.
func (sh *shift) closed(d *delivery) {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	if d.leaves {
		sh.ending--
	}
	sh.used(d)
	sh.c.kick()
}

// used notes that somebody needs the shift, unless nobody has seen the delivery. c.mu is held.
func (sh *shift) used(d *delivery) {
	if !d.unseen {
		sh.c.last = time.Now()
	}
}

// idle tells whether nobody has needed the shift for a while, or else when to ask again.
func (sh *shift) idle() (bool, time.Duration) {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	left := sh.q.linger - time.Since(sh.c.last)
	if len(sh.c.waits) > 0 || len(sh.held) > 0 || sh.ending > 0 {
		left = sh.q.linger
	}
	return left <= 0, left
}

// attend calls work whenever something may have changed, and rested when nothing has for the linger time, until the
// shift ends.
func (sh *shift) attend(work, rested func()) error {
	sh.c.mu.Lock()
	sh.inLine = true
	sh.c.mu.Unlock()
	for sh.ctx.Err() == nil {
		work()
		idle, left := sh.idle()
		if idle {
			return errIdle
		}
		timer := time.NewTimer(left)
		select {
		case <-sh.c.kicked:
		case <-timer.C:
			rested()
		case <-sh.ctx.Done():
		}
		timer.Stop()
	}
	return context.Cause(sh.ctx)
}

// errStale ends a shift that another one has to take the place of.
var errStale = fmt.Errorf("the place in line was lost: %w", framework.ErrSessionLost)

// errTakenBack is why a delivery cannot be settled after its Queue was closed.
var errTakenBack = fmt.Errorf("%w: %w", ErrLost, ErrClosed)

// next are the parts of claims that can begin at once, to share a transaction with what makes room for them.
func (sh *shift) next() []*part {
	if sh.ctx.Err() != nil {
		return nil
	}
	if d := sh.deskOf(); d != nil {
		return d.nextParts()
	}
	if sh.q.stored().Order == Strict {
		return nil
	}
	return sh.drawNext()
}
