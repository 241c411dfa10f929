package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// strictConsumer is what the holder of a strict queue's lock works at.
type strictConsumer struct {
	*consumerSession
	lease   *locks.Lease
	lockCtx context.Context // done when the lease or the consumer session has ended
	wg      sync.WaitGroup
	readers []*strictReader // in the order in which their items go
	heads   map[*strictReader]*fetched

	claims sync.Mutex     // held while claims are made, so that they are made in order
	over   bool           // no more claims are made; guarded by claims
	onWay  sync.WaitGroup // claims whose outcome is not known yet

	before claimProgress // of the holders before this one
	purges int32         // the version of the items' directory, before they are read

	mu      sync.Mutex
	reached claimProgress
	again   []returned // in order
	waking  time.Time  // that a timer is set to
	solo    bool       // what is open goes alone
}

// returned is an item that was given back and goes first when its time has come.
type returned struct {
	item *fetched
	when time.Time
}

// consumeStrictly serves when it has the queue's lock.
func (sh *consumerSession) consumeStrictly() error {
	if err := sh.standInLine(func(lease *locks.Lease, ready func()) { ready(); sh.newStrictConsumer(lease).serveUntilLost() }); err != nil {
		return err
	}
	return sh.claimLoop(func() {
		if d := sh.currentStrictConsumer(); d != nil {
			sh.q.writer.add(d.nextParts()...)
		}
	}, func() {})
}

func (sh *consumerSession) newStrictConsumer(lease *locks.Lease) *strictConsumer {
	d := &strictConsumer{consumerSession: sh, lease: lease, heads: map[*strictReader]*fetched{}}
	ctx, cancel := context.WithCancelCause(lease.Context())
	d.lockCtx = ctx
	context.AfterFunc(sh.ctx, func() { cancel(context.Cause(sh.ctx)) })
	sh.c.mu.Lock()
	sh.strict = d
	sh.c.mu.Unlock()
	return d
}

func (sh *consumerSession) currentStrictConsumer() *strictConsumer {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	return sh.strict
}

// serveUntilLost reads until the lease or the consumer session has ended, and then ends what is open, before the lock is released.
func (d *strictConsumer) serveUntilLost() {
	defer d.wg.Wait()
	if err := d.loadProgress(); err != nil {
		d.end(err)
		return
	}
	d.wg.Go(func() { d.end(d.moveDelayed(d.lockCtx)) })
	if d.q.deadExpiry > 0 {
		d.wg.Go(func() { d.end(d.expireDead(d.lockCtx)) })
	}
	d.end(d.followLanes())
	<-d.lockCtx.Done()
	d.finishClaims()
	d.takeBackClaims()
	d.returnPrefetched()
}

// finishClaims waits for the claims that are on their way, and lets no others begin.
func (d *strictConsumer) finishClaims() {
	d.claims.Lock()
	d.over = true
	d.claims.Unlock()
	d.onWay.Wait()
}

// followLanes starts a reader of the queue's line and of each lane, as they appear.
func (d *strictConsumer) followLanes() error {
	for {
		_, _, rung, err := d.s.WatchData(d.lockCtx, d.q.below(lanesDir))
		if err != nil {
			return err
		}
		lanes, err := d.q.listLanes(d.lockCtx, d.s)
		if err != nil {
			rung.Stop()
			return err
		}
		d.read(append(lanes, d.q.base))
		select {
		case <-rung.C():
		case <-d.lockCtx.Done():
			rung.Stop()
			return context.Cause(d.lockCtx)
		}
	}
}

// read starts the readers that are missing.
func (d *strictConsumer) read(lines []itemLine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range lines {
		if slices.ContainsFunc(d.readers, func(r *strictReader) bool { return r.line == l }) {
			continue
		}
		r := &strictReader{sh: d.consumerSession, line: l, before: d.before, out: make(chan *fetched, max(readAhead, d.q.windowSize())),
			less: make(chan struct{}, 1)}
		r.most.Store(int64(max(1, d.q.prefetchBytes/firstLookups)))
		d.readers = append(d.readers, r)
		d.wg.Go(func() { d.end(r.readLine(d.lockCtx)) })
	}
	slices.SortFunc(d.readers, func(a, b *strictReader) int { return strings.Compare(lineRank(b.line), lineRank(a.line)) })
}

// nextParts claim what is wanted, in order.
func (d *strictConsumer) nextParts() (parts []*writeRequest) {
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
func (d *strictConsumer) nextItem() *fetched {
	d.mu.Lock()
	defer d.mu.Unlock()
	busy := d.busy()
	if d.solo && busy {
		return nil
	}
	item, take := d.first()
	if item == nil || item.claimed && busy || d.beginClaims(1, item.claimed) == 0 {
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
func (d *strictConsumer) first() (item *fetched, take func()) {
	for _, r := range d.readers {
		if len(d.again) > 0 && lineRank(d.again[0].item.at.line) >= lineRank(r.line) {
			return d.firstAgain()
		}
		idle := r.idle.Load() // before its items are looked at
		if f := d.head(r); f != nil {
			return f, func() { delete(d.heads, r); r.itemTaken(f) }
		}
		if !idle || d.heads[r] != nil {
			return nil, nil // it may have one soon
		}
	}
	return nil, nil
}

// firstAgain is the first item that was given back, if its time has come. d.mu is held.
func (d *strictConsumer) firstAgain() (item *fetched, take func()) {
	first := d.again[0]
	if time.Until(first.when) > 0 {
		d.wake(first.when)
		return nil, nil
	}
	return first.item, func() { d.again = d.again[1:] }
}

// wake has the claims looked at again when an item's time has come. d.mu is held.
func (d *strictConsumer) wake(at time.Time) {
	if !at.Equal(d.waking) {
		d.waking = at
		time.AfterFunc(time.Until(at), d.c.kick)
	}
}

// head is a reader's first item, if its answer is there.
func (d *strictConsumer) head(r *strictReader) *fetched {
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
		d.tasks.start(func() { d.itemSettled(f.at) }) // a foreign node's number, or it was purged
	}
}

// claim claims an item under the lock, and hands it out. An item's first claim is that of all up to it; each
// other one raises its version.
func (d *strictConsumer) claim(f *fetched) *writeRequest {
	p, version := &writeRequest{session: d.s, guard: d.lease}, f.Stat.Version
	if f.claimed {
		p.ops = []framework.Op{framework.SetOp(f.path, f.Data, version)}
		version++
	} else {
		p.desk = d
	}
	p.then = func(_ []framework.OpResult, err error) {
		defer d.onWay.Done()
		if err != nil {
			d.itemSettled(f.at)
			d.claimFailed()
			d.refused(f, err)
			return
		}
		got := &delivery{session: d.consumerSession, item: f.path, version: version, guard: d.lease, data: f.Data, tenure: d.lease.Lifetime().Child(d.lease.Context())}
		got.readItem(f.Data, f.Stat)
		if d.behind(f) {
			d.claimFailed()
			d.returnUnseen(got)
			return
		}
		d.offerDelivery(got)
	}
	return p
}

// refused deals with a claim that has failed: its item was purged, and perhaps what was read after it; or the lock was
// lost, which ends the consumer session. A first claim that was refused is none: the next holder of the lock counts no attempt.
func (d *strictConsumer) refused(f *fetched, err error) {
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
		err = fmt.Errorf("%w: %w", errSessionReplaced, err)
	}
	d.end(err)
}

// returnFirst makes a delivery's item the first again, once its time has come. What was claimed behind it and handed to nobody
// goes behind it.
func (d *strictConsumer) returnFirst(got *delivery, after time.Duration) {
	d.c.mu.Lock()
	unseen := d.takeReady()
	d.c.mu.Unlock()
	d.goesAgain(got, true, after)
	for _, other := range unseen {
		d.returnUnseen(other)
	}
}

// returnUnseen ends a delivery that nobody was handed. If it was its item's first claim, the next one is so again.
func (d *strictConsumer) returnUnseen(got *delivery) {
	if got.markSettled(errTakenBack) == nil {
		d.goesAgain(got, got.version > 0, 0)
		got.endDelivery(nil)
	}
}

func (d *strictConsumer) goesAgain(got *delivery, claimed bool, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := got.stat
	st.Version = got.version
	f := &fetched{path: got.item, at: d.q.segmentOf(got.item), claimed: claimed, Node: framework.Node{Data: got.data, Stat: st}}
	_, name := framework.Split(got.item)
	f.k, _ = parseNumber(name, itemPrefix)
	d.again = append(d.again, returned{f, time.Now().Add(after)})
	d.stock.addRef(f.at)
	slices.SortFunc(d.again, func(a, b returned) int { return order(a.item, b.item) })
}

// order is that in which items go.
func order(a, b *fetched) int {
	return cmp.Or(strings.Compare(lineRank(b.at.line), lineRank(a.at.line)), strings.Compare(a.path, b.path))
}

// behind reports whether something that was given back goes before an item.
func (d *strictConsumer) behind(f *fetched) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.again) > 0 && order(d.again[0].item, f) < 0
}

// linePassed reports whether the reader of a line has left a segment behind.
func (d *strictConsumer) linePassed(at segmentID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.readers, func(r *strictReader) bool { return r.line == at.line && r.at.Load() > at.seg })
}

// claimProgress is how far the lines of a strict queue have been claimed: all items up to there were claimed once, by the
// holder of the lock, who writes it with each claim. So a claim costs nothing for each item.
type claimProgress struct {
	V int `json:"v"`
	// Lines are the positions by the lines' names.
	Lines map[string]position `json:"lines"`
}

// position is a segment and a number in it.
type position [2]int64

const progressVersion = 1

// decodeProgress is the one reader of what progress.encode has written. Its errors wrap ErrNotQueue or ErrNewer.
func decodeProgress(data []byte) (p claimProgress, err error) {
	if len(data) == 0 {
		return claimProgress{V: progressVersion, Lines: map[string]position{}}, nil
	}
	if err := json.Unmarshal(data, &p); err != nil || p.V < 1 {
		return p, fmt.Errorf("%w: its %s cannot be read: %.80q", ErrNotQueue, claimedNode, data)
	}
	if p.V > progressVersion {
		return p, fmt.Errorf("%w: %s of version %d, this release reads %d", ErrNewer, claimedNode, p.V, progressVersion)
	}
	if p.Lines == nil {
		p.Lines = map[string]position{}
	}
	return p, nil
}

func (p claimProgress) encode() []byte {
	data, err := json.Marshal(p)
	if err != nil {
		panic("queue: numbers cannot be written: " + err.Error())
	}
	return data
}

// covers reports whether an item was claimed before.
func (p claimProgress) covers(at segmentID, k int64) bool {
	to, known := p.Lines[at.line.name()]
	return known && (at.seg < to[0] || at.seg == to[0] && k <= to[1])
}

// reach notes that an item is claimed, and with it all before it.
func (p claimProgress) reach(at segmentID, k int64) { p.Lines[at.line.name()] = position{at.seg, k} }

// lower says of an item that neither it nor any behind it is claimed.
func (p claimProgress) lower(at segmentID, k int64) {
	if p.covers(at, k) {
		p.reach(at, k-1)
	}
}

// loadProgress reads how far the queue was claimed, and what reports whether it was purged since. It comes after the last holder's
// last claim: this server has seen the end of that one's place in the lock's line.
func (d *strictConsumer) loadProgress() error {
	for {
		nodes, err := d.s.GetAll(d.lockCtx, d.q.below(itemsDir), d.q.below(claimedNode))
		if err != nil {
			return err
		}
		items, claimed := nodes[0], nodes[1]
		if items.Err == nil && errors.Is(claimed.Err, framework.ErrNoNode) {
			_, err := d.s.Multi(d.lockCtx, d.q.queueExistsOp(), framework.CreateOp(d.q.below(claimedNode), nil, framework.Persistent))
			if err != nil && !errors.Is(err, framework.ErrNodeExists) {
				return err
			}
			continue
		}
		if err := cmp.Or(items.Err, claimed.Err); err != nil {
			return err
		}
		if d.before, err = decodeProgress(claimed.Data); err != nil {
			return err
		}
		d.reached = claimProgress{V: d.before.V, Lines: maps.Clone(d.before.Lines)}
		d.purges = items.Stat.Version
		return nil
	}
}

// firstClaimOps are the operations that first claims share: the items that were read are still there, and this is how far the
// claims go.
func (d *strictConsumer) firstClaimOps() []framework.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return []framework.Op{framework.CheckOp(d.q.below(itemsDir), d.purges),
		framework.SetOp(d.q.below(claimedNode), d.reached.encode(), framework.AnyVersion)}
}

// purgeMarkOps is the operation that goes with the removal of items that were not claimed: who has read them must not
// claim them any more.
func (q *engine) purgeMarkOps() []framework.Op {
	if q.storedRecord().Order != Strict {
		return nil
	}
	return []framework.Op{framework.SetOp(q.below(itemsDir), nil, framework.AnyVersion)}
}

// takeBackClaims takes back the claims of what nobody was handed: the next holder of the lock is not to count them as attempts.
// What the strict consumer claimed of a line and nobody has had is the end of what it claimed of that line.
func (d *strictConsumer) takeBackClaims() {
	d.c.mu.Lock()
	ready := slices.Clone(d.ready)
	d.c.mu.Unlock()
	d.mu.Lock()
	changed := len(ready)+len(d.again) > 0
	for _, got := range ready {
		if got.version == 0 {
			_, name := framework.Split(got.item)
			k, _ := parseNumber(name, itemPrefix)
			d.reached.lower(d.q.segmentOf(got.item), k)
			continue
		}
		if p := got.uncountRequest(); p != nil {
			d.writeTracked(p)
		}
	}
	for _, r := range d.again {
		if !r.item.claimed {
			d.reached.lower(r.item.at, r.item.k)
		}
	}
	data := d.reached.encode()
	d.mu.Unlock()
	if changed {
		d.writeTracked(&writeRequest{session: d.s, guard: d.lease, ops: []framework.Op{framework.SetOp(d.q.below(claimedNode), data, framework.AnyVersion)}})
	}
}

// uncountRequest is the part that has the item's last claim count as no attempt; nil if the item cannot be written.
func (d *delivery) uncountRequest() *writeRequest {
	e := d.env
	e.header.Unseen += 2 // the claim has raised the version, and so does this
	data, err := e.encode()
	if err != nil {
		return nil
	}
	return d.newRequest([]framework.Op{framework.SetOp(d.item, data, d.version)})
}
