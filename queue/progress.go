package queue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// progress is how far the lines of a strict queue have been claimed: all items up to there were claimed once, by the
// holder of the lock, who writes it with each claim. So a claim costs nothing for each item.
type progress struct {
	V int `json:"v"`
	// Lines are the positions by the lines' names.
	Lines map[string]position `json:"lines"`
}

// position is a segment and a number in it.
type position [2]int64

const progressVersion = 1

// decodeProgress is the one reader of what progress.encode has written. Its errors wrap ErrNotQueue or ErrNewer.
func decodeProgress(data []byte) (p progress, err error) {
	if len(data) == 0 {
		return progress{V: progressVersion, Lines: map[string]position{}}, nil
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

func (p progress) encode() []byte {
	data, err := json.Marshal(p)
	if err != nil {
		panic("queue: numbers cannot be written: " + err.Error())
	}
	return data
}

// covers tells whether an item was claimed before.
func (p progress) covers(at shelf, k int64) bool {
	to, known := p.Lines[at.line.name()]
	return known && (at.seg < to[0] || at.seg == to[0] && k <= to[1])
}

// reach notes that an item is claimed, and with it all before it.
func (p progress) reach(at shelf, k int64) { p.Lines[at.line.name()] = position{at.seg, k} }

// lower says of an item that neither it nor any behind it is claimed.
func (p progress) lower(at shelf, k int64) {
	if p.covers(at, k) {
		p.reach(at, k-1)
	}
}

// load reads how far the queue was claimed, and what tells whether it was purged since. It comes after the last holder's
// last claim: this server has seen the end of that one's place in the lock's line.
func (d *desk) load() error {
	for {
		nodes, err := d.s.GetAll(d.ctx, d.q.below(itemsDir), d.q.below(claimedNode))
		if err != nil {
			return err
		}
		items, claimed := nodes[0], nodes[1]
		if items.Err == nil && errors.Is(claimed.Err, framework.ErrNoNode) {
			_, err := d.s.Multi(d.ctx, d.q.present(), framework.CreateOp(d.q.below(claimedNode), nil, framework.Persistent))
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
		d.reached = progress{V: d.before.V, Lines: maps.Clone(d.before.Lines)}
		d.purges = items.Stat.Version
		return nil
	}
}

// claiming are the operations that first claims share: the items that were read are still there, and this is how far the
// claims go.
func (d *desk) claiming() []framework.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return []framework.Op{framework.CheckOp(d.q.below(itemsDir), d.purges),
		framework.SetOp(d.q.below(claimedNode), d.reached.encode(), framework.AnyVersion)}
}

// purging is the operation that goes with the removal of items that were not claimed: who has read them must not
// claim them any more.
func (q *core) purging() []framework.Op {
	if q.stored().Order != Strict {
		return nil
	}
	return []framework.Op{framework.SetOp(q.below(itemsDir), nil, framework.AnyVersion)}
}

// unclaim takes back the claims of what nobody was handed: the next holder of the lock is not to count them as attempts.
// What the desk claimed of a line and nobody has had is the end of what it claimed of that line.
func (d *desk) unclaim() {
	d.c.mu.Lock()
	ready := slices.Clone(d.ready)
	d.c.mu.Unlock()
	d.mu.Lock()
	changed := len(ready)+len(d.again) > 0
	for _, got := range ready {
		if got.version == 0 {
			_, name := framework.Split(got.item)
			k, _ := parseNumber(name, itemPrefix)
			d.reached.lower(d.q.shelfOf(got.item), k)
			continue
		}
		if p := got.uncount(); p != nil {
			d.write(p)
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
		d.write(&part{session: d.s, guard: d.lease, ops: []framework.Op{framework.SetOp(d.q.below(claimedNode), data, framework.AnyVersion)}})
	}
}

// uncount is the part that has the item's last claim count as no attempt; nil if the item cannot be written.
func (d *delivery) uncount() *part {
	e := d.env
	e.header.Unseen += 2 // the claim has raised the version, and so does this
	data, err := e.encode()
	if err != nil {
		return nil
	}
	return d.part([]framework.Op{framework.SetOp(d.item, data, d.version)})
}
