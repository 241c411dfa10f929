package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// segmentList is what a consumer has listed of a line's segments. It holds while the directory's last change is the same.
type segmentList struct {
	line     itemLine
	changed  int64 // the transaction of the directory's last change
	segments []int64
}

// lineState is what a line holds.
type lineState struct {
	line  itemLine
	items int
	spare int // items that no ticket was drawn for
}

// queueState is what a look at a whole queue has seen, after a sync.
type queueState struct {
	paused   bool
	standing int  // consumers in the line for the lock
	due      bool // an item for later is due, or may be
	arrived  int  // of the items that were asked for, those that are there
	lines    []lineState
}

func (s queueState) items() (n int) {
	for _, l := range s.lines {
		n += l.items
	}
	return n
}

// inspectQueue reads what the queue holds, and which of some items are there. It costs one read if no segment was made or
// removed since the last time, and no item is kept for later. It writes nothing. c.inspecting is held.
func (c *consumer) inspectQueue(ctx context.Context, s *framework.Session, items []string) (state queueState, err error) {
	q := c.q
	for {
		paths := append([]string{q.below(lockDir), q.below(pausedNode), q.below(laterDir), q.below(lanesDir)}, items...)
		fixed := len(paths)
		for _, list := range c.lists {
			paths = append(paths, list.line.dir)
			for _, seg := range list.segments {
				paths = append(paths, list.line.segment(seg), list.line.ticketsOf(seg))
			}
		}
		nodes := make([]framework.Node, 0, len(paths))
		for some := range slices.Chunk(paths, 500) {
			got, err := s.GetAll(ctx, some...)
			if err != nil {
				return state, err
			}
			nodes = append(nodes, got...)
		}
		for _, n := range nodes {
			if n.Err != nil && !errors.Is(n.Err, framework.ErrNoNode) {
				return state, n.Err
			}
		}
		lock, paused, later, lanes := nodes[0], nodes[1], nodes[2], nodes[3]
		state = queueState{paused: paused.Err == nil, standing: int(lock.Stat.NumChildren)}
		for _, n := range nodes[4:fixed] {
			if n.Err == nil {
				state.arrived++
			}
		}
		current := c.lists != nil && lanes.Stat.Pzxid == c.lanesChanged
		next := nodes[fixed:]
		for _, list := range c.lists {
			dir := next[0]
			next = next[1:]
			current = current && dir.Stat.Pzxid == list.changed
			l := lineState{line: list.line}
			for range list.segments {
				segment, tickets := next[0].Stat, next[1].Stat
				next = next[2:]
				l.items += int(segment.NumChildren)
				if segment.NumChildren > 0 {
					l.spare += max(0, int(childrenEver(segment)-childrenEver(tickets)))
				}
			}
			state.lines = append(state.lines, l)
		}
		if current {
			if later.Stat.NumChildren > 0 {
				state.due, err = q.mayBeDue(ctx, s)
			}
			return state, err
		}
		if err := c.listSegments(ctx, s); err != nil {
			return state, err
		}
	}
}

// listSegments lists the segments of all lines.
func (c *consumer) listSegments(ctx context.Context, s *framework.Session) error {
	q := c.q
	lanes, st, err := s.Children(ctx, q.below(lanesDir))
	if err != nil {
		return err
	}
	var lines []itemLine
	for _, name := range lanes {
		lines = append(lines, q.laneNamed(name))
	}
	lists := make([]segmentList, 0, len(lines)+1)
	for _, l := range append(lines, q.base) {
		names, at, err := s.Children(ctx, l.dir)
		if err != nil {
			return err
		}
		list := segmentList{line: l, changed: at.Pzxid}
		for _, name := range names {
			if n, err := strconv.ParseInt(name, 10, 64); err == nil && number(n) == name {
				list.segments = append(list.segments, n)
			}
		}
		lists = append(lists, list)
	}
	c.lists, c.lanesChanged = lists, st.Pzxid
	return nil
}

// mayBeDue reports whether the time of an item for later has come. It is so as long as the ensemble's time is not known: a
// consumer learns it with its first write.
func (q *engine) mayBeDue(ctx context.Context, s *framework.Session) (bool, error) {
	hours, err := numbersIn(ctx, s, q.below(laterDir), "")
	if err != nil || len(hours) == 0 {
		return false, err
	}
	seconds, err := numbersIn(ctx, s, framework.Join(q.below(laterDir), number(hours[0])), "")
	if err != nil || len(seconds) == 0 {
		return false, err
	}
	return q.clock.unset() || !time.Unix(seconds[0], 0).After(q.clock.now()), nil
}

// claimable tells how many items the consumer could claim at a moment of the call, after a sync, and whether claims of its own
// are on their way whose outcome is to be seen. It may be too many, since others claim at the same time. It writes nothing. A
// caller who need not know if the consumer is running says so: then the number is 1.
func (c *consumer) claimable(ctx context.Context, unlessRunning bool) (n int, undecided bool, err error) {
	q := c.q
	select {
	case c.inspecting <- struct{}{}:
		defer func() { <-c.inspecting }()
	case <-ctx.Done():
		return 0, false, framework.Ended(ctx)
	}
	if unlessRunning && c.isRunning() {
		return 1, false, nil
	}
	s, err := q.lookSession(ctx)
	if errors.Is(err, errAbsent) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	waited := c.waitingItems()
	state, err := c.inspectQueue(ctx, s, waited)
	if errors.Is(err, framework.ErrNoNode) { // it is being dropped
		q.stale.Store(true)
		return 0, false, nil
	}
	if err != nil || state.paused {
		return 0, false, err
	}
	held := c.heldUp()
	c.mu.Lock()
	defer c.mu.Unlock()
	sh, others := c.session, state.standing
	if c.running {
		others = max(0, others-1) // this consumer stands there, or is about to
	}
	stands := sh != nil && sh.inLine && sh.ctx.Err() == nil
	if stands && len(sh.held) >= q.windowSize() {
		return 0, false, nil
	}
	first := others == 0 || stands && sh.leads
	if first && state.due {
		n++
	}
	strict := q.storedRecord().Order == Strict
	switch {
	case strict && !first:
		return 0, false, nil
	case !stands && first: // whatever dead consumers had is there
		return n + state.items(), false, nil
	case !strict:
		n += state.spare()
		if !stands {
			return n, false, nil
		}
		making := sh.making
		for _, item := range waited { // the others may have come since their tickets were looked at
			if sh.waiting[item] {
				making--
			}
		}
		return n, making > 0 || state.arrived > 0 || len(sh.ready) > 0, nil
	case sh.strict == nil:
		return n + state.items(), false, nil
	case sh.making+sh.ending+len(sh.ready) > 0:
		return n, true, nil
	}
	return n + held.claimable(state, sh.held), false, nil
}

func (s queueState) spare() (n int) {
	for _, l := range s.lines {
		n += l.spare
	}
	return n
}

// waitingItems are the items that this consumer has tickets for, and which have not come so far as it knows.
func (c *consumer) waitingItems() (items []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil {
		for item := range c.session.waiting {
			items = append(items, item)
		}
	}
	return items
}

// claimable tells how many items the holder of a strict queue's lock may get now: those in the lines that are not open, and
// which nothing holds up.
func (h heldUp) claimable(state queueState, open map[*delivery]bool) (n int) {
	if len(open) > 0 && h.alone {
		return 0
	}
	for _, l := range state.lines {
		if lineRank(l.line) > h.above {
			n += l.items
		}
	}
	for d := range open {
		if lineRank(d.session.q.segmentOf(d.item).line) > h.above {
			n--
		}
	}
	return max(0, n)
}

// heldUp is what keeps the holder of a strict queue's lock from claiming items.
type heldUp struct {
	alone bool   // the next item, or what is open, was claimed before: it goes alone
	above string // only items of lines with a higher rank can be claimed
}

func (c *consumer) heldUp() (h heldUp) {
	c.mu.Lock()
	sh := c.session
	c.mu.Unlock()
	if sh == nil {
		return h
	}
	d := sh.currentStrictConsumer()
	if d == nil {
		return h
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	next, _ := d.first()
	h.alone = d.solo || next != nil && next.claimed
	if len(d.again) > 0 && time.Until(d.again[0].when) > 0 {
		h.above = lineRank(d.again[0].item.at.line)
	}
	return h
}

// Times of calls that look before they claim.
const (
	// idlePoll is how long a call of Take waits before it joins the line of a queue in which there was nothing to claim.
	idlePoll = 100 * time.Millisecond
	// mostTry is how long TryTake waits at most for items that seemed to be there, once it stands in line.
	mostTry = time.Second
)

// lookFirst returns when there is something to claim, or when the call of Take has waited for a while. It does so only for the
// first call of a consumer that does not stand in line: such a call would write a place, a ticket and more for nothing.
func (c *consumer) lookFirst(ctx context.Context) error {
	if c.isRunning() {
		return nil
	}
	during, cancel := c.untilClosed(ctx)
	defer cancel()
	n, _, err := c.claimable(during, true)
	if err == nil && n == 0 {
		timer := time.NewTimer(idlePoll)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-during.Done():
		}
	}
	return c.whyEnded(ctx) // what else has failed fails again, or not, when the consumer begins
}

// untilClosed is a context that ends with ctx, and when Close begins.
func (c *consumer) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	during, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.q.work, cancel)
	return during, func() { stop(); cancel() }
}

func (c *consumer) whyEnded(ctx context.Context) error {
	if err := context.Cause(c.q.work); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return framework.Ended(ctx)
	}
	return nil
}

// takeNow takes up to n items that can be claimed now; ErrEmpty if there is none.
func (c *consumer) takeNow(ctx context.Context, n int) (got []*delivery, err error) {
	during, cancel := c.untilClosed(ctx)
	defer cancel()
	var calls []*takeCall // that wait
	defer func() {
		for _, t := range calls {
			if d := c.removeCall(t); d != nil {
				got = append(got, d)
			}
		}
		switch {
		case len(got) > 0:
			err = nil
		case err == nil:
			err = ErrEmpty
		}
		if len(calls) > 0 {
			c.releaseTickets()
		}
	}()
	back, waited := c.q.client.Backoff(), time.Duration(0)
	for pause := 2 * time.Millisecond; len(got) < n; pause = min(2*pause, 100*time.Millisecond) {
		if len(calls) == 0 {
			if got = append(got, c.takeReady(n-len(got))...); len(got) == n {
				return got, nil
			}
		}
		can, undecided, err := c.claimable(during, false)
		if framework.IsTransient(err) && during.Err() == nil {
			_ = back.Pause(during)
			continue
		}
		if ended := c.whyEnded(ctx); ended != nil {
			return got, ended
		}
		if err != nil || can == 0 && !undecided || waited >= mostTry {
			return got, err
		}
		for len(calls) < min(can, n-len(got)) {
			t := &takeCall{got: make(chan takeResult, 1)}
			if err := c.addCall(t); err != nil {
				return got, err
			}
			calls = append(calls, t)
		}
		if c.inLine() {
			waited += pause
		}
		for timer := time.After(pause); timer != nil && len(got) < n; {
			var first chan takeResult
			if len(calls) > 0 {
				first = calls[0].got
			}
			select {
			case t := <-first:
				calls = calls[1:]
				if t.err != nil {
					return got, t.err
				}
				got = append(got, t.d)
				if len(calls) == 0 {
					timer = nil
				}
			case <-timer:
				timer = nil
			case <-during.Done():
				timer = nil
			}
		}
	}
	return got, nil
}

// takeReady takes up to n deliveries that were claimed ahead.
func (c *consumer) takeReady(n int) (got []*delivery) {
	for range n {
		t := &takeCall{got: make(chan takeResult, 1)}
		c.mu.Lock()
		if c.session != nil && len(c.session.ready) > 0 && len(c.waits) == 0 {
			c.waits = append(c.waits, t)
			c.last = time.Now()
			c.handOut(c.session)
		}
		c.mu.Unlock()
		if d := c.removeCall(t); d != nil {
			got = append(got, d)
		}
	}
	return got
}

func (c *consumer) isRunning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

func (c *consumer) inLine() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session != nil && c.session.inLine
}

// releaseTickets gives back what was claimed for calls that have ended, unless others wait.
func (c *consumer) releaseTickets() {
	c.mu.Lock()
	sh := c.session
	c.mu.Unlock()
	if sh != nil && sh.q.prefetch == 0 {
		sh.giveBackAhead(0)
	}
}
