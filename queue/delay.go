package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Items for later are in <path>/later/<hour>/<second>/i-#, by the ensemble's clock, so that no list is long. Both
// directories are containers. The recoverer, or the strict queue's consumer, moves them when they are due. Who adds one
// sets the node <path>/later, which tells the recoverer to look again.

// signalDelayedOp tells the recoverer that there is something for later.
func (q *engine) signalDelayedOp() framework.Op {
	return framework.SetOp(q.below(laterDir), nil, framework.AnyVersion)
}

// serverClock estimates the ensemble's, from the times that writes were given and what has passed here since.
type serverClock struct {
	mu    sync.Mutex
	said  time.Time
	heard time.Time
}

// noteAnswer takes in the time t of a write that was asked for at a time and is answered now. It was given in between, so the
// estimate is moved only as far as that says: a reply that comes late does not set it back.
func (c *serverClock) noteAnswer(t, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch now := time.Now(); {
	case c.heard.IsZero(), c.at(now).Before(t):
		c.said, c.heard = t, now
	case c.at(asked).After(t):
		c.said, c.heard = t, asked
	}
}

// at is the estimate for a moment here. c.mu is held.
func (c *serverClock) at(moment time.Time) time.Time { return c.said.Add(moment.Sub(c.heard)) }

// unset tells that nothing was heard so far.
func (c *serverClock) unset() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard.IsZero()
}

func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(time.Now())
}

// secondDir is the directory of items that are due at a second.
func (q *engine) secondDir(t int64) string {
	return framework.Join(framework.Join(q.below(laterDir), number(t/3600)), number(t))
}

// delayDir is where an item goes that is due at a time: at the next second that is not full.
func (w *writer) delayDir(at time.Time) string {
	due := at.Add(time.Second - 1).Unix()
	for w.seconds[due] {
		due++
	}
	return w.q.secondDir(due)
}

// makeSecond makes the directory of a second, and that of its hour.
func (w *writer) makeSecond(ctx context.Context, s *framework.Session, second string) error {
	hour, _ := framework.Split(second)
	for _, dir := range []string{hour, second} {
		_, err := s.Multi(ctx, w.q.queueExistsOp(), framework.CreateOp(dir, nil, framework.Container))
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// noteFull remembers the seconds that have as many items as a segment.
func (w *writer) noteFull(a *transaction, results []framework.OpResult) {
	for i, o := range a.owners {
		if o.later == "" || i >= len(results) {
			continue
		}
		_, name := framework.Split(results[i].Path)
		_, second := framework.Split(o.later)
		t, err := strconv.ParseInt(second, 10, 64)
		if n, ok := parseNumber(name, itemPrefix); ok && err == nil && n >= w.q.bound-1 {
			if len(w.seconds) > 10_000 {
				clear(w.seconds)
			}
			w.seconds[t] = true
		}
	}
}

// moveDelayed moves items for later when they are due, until ctx ends.
func (sh *consumerSession) moveDelayed(ctx context.Context) error {
	if _, err := sh.q.writer.do(ctx, &writeRequest{session: sh.s}); err != nil { // hears the ensemble's time
		return err
	}
	for {
		_, _, more, err := sh.s.WatchData(ctx, sh.q.below(laterDir))
		if err != nil {
			return err
		}
		wait, err := sh.moveDue(ctx)
		if err != nil {
			more.Stop()
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-more.C():
		case <-timer.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		timer.Stop()
		more.Stop()
		if err != nil {
			return err
		}
	}
}

// idleDelay is how long the mover of delayed items waits when there is nothing for later.
const idleDelay = 24 * time.Hour

// moveDue moves what is due, and tells how long the next has to wait.
func (sh *consumerSession) moveDue(ctx context.Context) (time.Duration, error) {
	hours, err := numbersIn(ctx, sh.s, sh.q.below(laterDir), "")
	if err != nil {
		return 0, err
	}
	for _, hour := range hours {
		dir := framework.Join(sh.q.below(laterDir), number(hour))
		seconds, err := numbersIn(ctx, sh.s, dir, "")
		if err != nil {
			return 0, err
		}
		for _, t := range seconds {
			if wait := time.Unix(t, 0).Sub(sh.q.clock.now()); wait > 0 {
				return wait, nil
			}
			if err := sh.moveSecond(ctx, sh.q.secondDir(t)); err != nil {
				return 0, err
			}
		}
		if err := sh.s.DeleteIfPresent(ctx, dir); !ignoreIfRemoved(err) {
			return 0, err
		}
	}
	return idleDelay, nil
}

// ignoreIfRemoved tells of the removal of a directory that it was done, or that there is no need.
func ignoreIfRemoved(err error) bool {
	return err == nil || errors.Is(err, framework.ErrNotEmpty)
}

// moveSecond moves all items of a second, and removes it.
func (sh *consumerSession) moveSecond(ctx context.Context, dir string) error {
	items, err := numbersIn(ctx, sh.s, dir, itemPrefix)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(items, moveTogether) {
		if err := sh.moveLater(ctx, dir, some); err != nil {
			return err
		}
	}
	if err := sh.s.DeleteIfPresent(ctx, dir); !ignoreIfRemoved(err) {
		return err
	}
	return nil
}

// moveTogether is how many items are read, and moved, at a time.
const moveTogether = 64

// moveLater puts items where they belong now, in order: at the end, into their lanes, or first if they were given back. Those
// that are gone, or are moved by somebody else meanwhile, are passed over.
func (sh *consumerSession) moveLater(ctx context.Context, dir string, items []int64) error {
	found := make([]chan framework.Node, len(items))
	for i, k := range items {
		answer := make(chan framework.Node, 1)
		found[i] = answer
		sh.reads.readAsync(framework.Join(dir, itemPrefix+number(k)), func(n framework.Node) { answer <- n })
	}
	var parts []*writeRequest
	moved := make(chan error, len(items))
	for i, k := range items {
		n := <-found[i] // comes at the end of the consumer session at the latest
		switch {
		case errors.Is(n.Err, framework.ErrNoNode):
			continue
		case n.Err != nil:
			return n.Err
		}
		p := sh.moveRequest(framework.Join(dir, itemPrefix+number(k)), n)
		p.then = func(_ []framework.OpResult, err error) { moved <- err }
		parts = append(parts, p)
	}
	sh.q.writer.add(parts...)
	for range parts {
		select {
		case err := <-moved:
			var tx *framework.TxError
			if err != nil && !(errors.As(err, &tx) && errors.Is(err, framework.ErrNoNode)) {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// moveRequest is the part that moves an item whose time has come.
func (sh *consumerSession) moveRequest(item string, n framework.Node) *writeRequest {
	e, err := decodeItem(n.Data, n.Stat) // what cannot be read goes to the end, and from there to the dead letters
	to, ops := sh.q.putTarget(e.header.Priority, 0)
	if e.header.Attempts > 0 {
		to, ops = itemPut{line: sh.q.laneNamed(redoLane)}, []framework.Op{sh.q.signalLanesOp()}
	}
	to.data = n.Data
	if err == nil {
		if data, err := e.encode(); err == nil {
			to.data = data // with the time of its put
		}
	}
	return &writeRequest{session: sh.s, ops: append(ops, framework.DeleteOp(item, n.Stat.Version)), puts: []itemPut{to}}
}
