package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// desk is what the holder of a strict queue's lock works at.
type desk struct {
	*shift
	lease   *locks.Lease
	ctx     context.Context // done when the lease or the shift has ended
	wg      sync.WaitGroup
	readers []*reader // in the order in which their items go
	heads   map[*reader]*fetched

	claims sync.Mutex     // held while claims are made, so that they are made in order
	over   bool           // no more claims are made; guarded by claims
	onWay  sync.WaitGroup // claims whose outcome is not known yet

	before progress // of the holders before this one
	purges int32    // the version of the items' directory, before they are read

	mu      sync.Mutex
	reached progress
	again   []returned // in order
	waking  time.Time  // that a timer is set to
	solo    bool       // what is open goes alone
}

// returned is an item that was given back and goes first when its time has come.
type returned struct {
	item *fetched
	when time.Time
}

// strict serves when it has the queue's lock.
func (sh *shift) strict() error {
	if err := sh.stand(func(lease *locks.Lease, ready func()) { ready(); sh.newDesk(lease).serve() }); err != nil {
		return err
	}
	return sh.attend(func() {
		if d := sh.deskOf(); d != nil {
			sh.q.writer.add(d.nextParts()...)
		}
	}, func() {})
}

func (sh *shift) newDesk(lease *locks.Lease) *desk {
	d := &desk{shift: sh, lease: lease, heads: map[*reader]*fetched{}}
	ctx, cancel := context.WithCancelCause(lease.Context())
	d.ctx = ctx
	context.AfterFunc(sh.ctx, func() { cancel(context.Cause(sh.ctx)) })
	sh.c.mu.Lock()
	sh.desk = d
	sh.c.mu.Unlock()
	return d
}

func (sh *shift) deskOf() *desk {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	return sh.desk
}

// serve reads until the lease or the shift has ended, and then ends what is open, before the lock is released.
func (d *desk) serve() {
	defer d.wg.Wait()
	if err := d.load(); err != nil {
		d.end(err)
		return
	}
	d.wg.Go(func() { d.end(d.courier(d.ctx)) })
	if d.q.deadExpiry > 0 {
		d.wg.Go(func() { d.end(d.expireDead(d.ctx)) })
	}
	d.end(d.followLanes())
	<-d.ctx.Done()
	d.finishClaims()
	d.unclaim()
	d.goHome()
}

// finishClaims waits for the claims that are on their way, and lets no others begin.
func (d *desk) finishClaims() {
	d.claims.Lock()
	d.over = true
	d.claims.Unlock()
	d.onWay.Wait()
}

// followLanes starts a reader of the queue's line and of each lane, as they appear.
func (d *desk) followLanes() error {
	for {
		_, _, rung, err := d.s.WatchData(d.ctx, d.q.below(lanesDir))
		if err != nil {
			return err
		}
		lanes, err := d.q.lanes(d.ctx, d.s)
		if err != nil {
			rung.Stop()
			return err
		}
		d.read(append(lanes, d.q.base))
		select {
		case <-rung.C():
		case <-d.ctx.Done():
			rung.Stop()
			return context.Cause(d.ctx)
		}
	}
}

// read starts the readers that are missing.
func (d *desk) read(lines []line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range lines {
		if slices.ContainsFunc(d.readers, func(r *reader) bool { return r.line == l }) {
			continue
		}
		r := &reader{sh: d.shift, line: l, before: d.before, out: make(chan *fetched, max(readAhead, d.q.windowSize())),
			less: make(chan struct{}, 1)}
		r.most.Store(int64(max(1, d.q.prefetchBytes/firstLookups)))
		d.readers = append(d.readers, r)
		d.wg.Go(func() { d.end(r.run(d.ctx)) })
	}
	slices.SortFunc(d.readers, func(a, b *reader) int { return strings.Compare(rank(b.line), rank(a.line)) })
}

// nextParts claim what is wanted, in order.
func (d *desk) nextParts() (parts []*part) {
	d.claims.Lock()
	defer d.claims.Unlock()
	for !d.over && d.gate.isOpen() {
		item := d.nextItem()
		if item == nil {
			break
		}
		d.onWay.Add(1)
		parts = append(parts, d.claim(item))
	}
	return parts
}

// nextItem takes the item that goes next, if it is there already and wanted. One that was claimed before goes alone, and
// only when somebody waits for it: if it kills its consumers, it takes no others with it.
func (d *desk) nextItem() *fetched {
	d.mu.Lock()
	defer d.mu.Unlock()
	busy := d.busy()
	if d.solo && busy {
		return nil
	}
	item, take := d.first()
	if item == nil || item.claimed && busy || d.begin(1, item.claimed) == 0 {
		return nil
	}
	take()
	if d.solo = item.claimed; !item.claimed {
		d.reached.reach(item.at, item.k)
	}
	return item
}

// first finds the item that goes next, and how to take it. An item that was given back for a time holds up those behind
// it, and none of a line before its own. d.mu is held.
func (d *desk) first() (item *fetched, take func()) {
	for _, r := range d.readers {
		if len(d.again) > 0 && rank(d.again[0].item.at.line) >= rank(r.line) {
			return d.firstAgain()
		}
		idle := r.idle.Load() // before its items are looked at
		if f := d.head(r); f != nil {
			return f, func() { delete(d.heads, r); r.took(f) }
		}
		if !idle || d.heads[r] != nil {
			return nil, nil // it may have one soon
		}
	}
	return nil, nil
}

// firstAgain is the first item that was given back, if its time has come. d.mu is held.
func (d *desk) firstAgain() (item *fetched, take func()) {
	first := d.again[0]
	if time.Until(first.when) > 0 {
		d.wake(first.when)
		return nil, nil
	}
	return first.item, func() { d.again = d.again[1:] }
}

// wake has the claims looked at again when an item's time has come. d.mu is held.
func (d *desk) wake(at time.Time) {
	if !at.Equal(d.waking) {
		d.waking = at
		time.AfterFunc(time.Until(at), d.c.kick)
	}
}

// head is a reader's first item, if its answer is there.
func (d *desk) head(r *reader) *fetched {
	for {
		f := d.heads[r]
		if f == nil {
			select {
			case f = <-r.out:
				d.heads[r] = f
			default:
				return nil
			}
		}
		select {
		case <-f.done:
		default:
			return nil
		}
		if f.Err == nil {
			return f
		}
		delete(d.heads, r)
		if !errors.Is(f.Err, framework.ErrNoNode) {
			d.end(f.Err)
			return nil
		}
		d.tasks.start(func() { d.settled(f.at) }) // a foreign node's number, or it was purged
	}
}

// claim claims an item under the lock, and hands it out. An item's first claim is that of all up to it; each
// other one raises its version.
func (d *desk) claim(f *fetched) *part {
	p, version := &part{session: d.s, guard: d.lease}, f.Stat.Version
	if f.claimed {
		p.ops = []framework.Op{framework.SetOp(f.path, f.Data, version)}
		version++
	} else {
		p.desk = d
	}
	p.then = func(_ []framework.OpResult, err error) {
		defer d.onWay.Done()
		if err != nil {
			d.settled(f.at)
			d.gaveUp()
			d.refused(f, err)
			return
		}
		got := &delivery{shift: d.shift, item: f.path, version: version, guard: d.lease, data: f.Data, tenure: d.lease.Lifetime().Child(d.lease.Context())}
		got.read(f.Data, f.Stat)
		if d.behind(f) {
			d.gaveUp()
			d.keepBack(got)
			return
		}
		d.offer(got)
	}
	return p
}

// refused deals with a claim that has failed: its item was purged, and perhaps what was read after it; or the lock was
// lost, which ends the shift. A first claim that was refused is none: the next holder of the lock counts no attempt.
func (d *desk) refused(f *fetched, err error) {
	var tx *framework.TxError
	if !f.claimed && errors.As(err, &tx) {
		d.mu.Lock()
		d.reached.lower(f.at, f.k)
		d.mu.Unlock()
	}
	switch {
	case errors.Is(err, framework.ErrNoAuth):
	case f.claimed:
		return
	default:
		err = fmt.Errorf("%w: %w", errStale, err)
	}
	d.end(err)
}

// giveBack makes a delivery's item the first again, once its time has come. What was claimed behind it and handed to nobody
// goes behind it.
func (d *desk) giveBack(got *delivery, after time.Duration) {
	d.c.mu.Lock()
	unseen := d.takeReady()
	d.c.mu.Unlock()
	d.goesAgain(got, true, after)
	for _, other := range unseen {
		d.keepBack(other)
	}
}

// keepBack ends a delivery that nobody was handed. If it was its item's first claim, the next one is so again.
func (d *desk) keepBack(got *delivery) {
	if got.begin(errTakenBack) == nil {
		d.goesAgain(got, got.version > 0, 0)
		got.over(nil)
	}
}

func (d *desk) goesAgain(got *delivery, claimed bool, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := got.stat
	st.Version = got.version
	f := &fetched{path: got.item, at: d.q.shelfOf(got.item), claimed: claimed, Node: framework.Node{Data: got.data, Stat: st}}
	_, name := framework.Split(got.item)
	f.k, _ = parseNumber(name, itemPrefix)
	d.again = append(d.again, returned{f, time.Now().Add(after)})
	d.stock.add(f.at)
	slices.SortFunc(d.again, func(a, b returned) int { return order(a.item, b.item) })
}

// order is that in which items go.
func order(a, b *fetched) int {
	return cmp.Or(strings.Compare(rank(b.at.line), rank(a.at.line)), strings.Compare(a.path, b.path))
}

// behind tells whether something that was given back goes before an item.
func (d *desk) behind(f *fetched) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.again) > 0 && order(d.again[0].item, f) < 0
}

// passed tells whether the reader of a line has left a segment behind.
func (d *desk) passed(at shelf) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.readers, func(r *reader) bool { return r.line == at.line && r.at.Load() > at.seg })
}
