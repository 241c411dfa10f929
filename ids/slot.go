package ids

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// An id has 63 bits: the time in milliseconds since the epoch, the slot, and a count within the millisecond. Slot and count share 22.
const (
	timeBits = 41
	lowBits  = 22
)

// workerSlot is the slot of a worker, with the times that the worker has reserved. One goroutine at a time may use it.
type workerSlot struct {
	client *framework.Client
	path   string // the worker's
	opts   workerOptions
	clock  recipe.EnsembleClock

	owned *ownedSlot // nil if there is none
}

// ownedSlot is a slot with an owner node of this worker.
type ownedSlot struct {
	session *framework.Session
	number  int
	owner   string // path of the owner node, whose name no other worker uses
	record  slotRecord
	version int32 // of the slot's node with that record
	unsure  bool  // the node may have been written since
}

// reservedTimes are times that this worker alone may use, in milliseconds of Unix time.
type reservedTimes struct {
	number     int
	from, till int64     // the first, and the first one behind the last
	now        int64     // the ensemble's time
	at         time.Time // when that was
}

// claimChoice is the number of free slots from which a worker picks one at random: workers that begin together try different slots.
const claimChoice = 16

// reserveTimes reserves a window of times in the slot, from the ensemble's time or from floor, whichever is later. If the worker has no slot in this
// session, it claims one first.
//
// Only a transaction at the version that was read, and that was answered with success, reserves times: from the former until to the new one. No other
// transaction can have reserved these times. The argument needs no clock and no session. The check of the owner node keeps two workers from
// alternating in one slot.
func (o *workerSlot) reserveTimes(ctx context.Context, s *framework.Session, floor int64, window time.Duration) (reservedTimes, error) {
	if o.owned == nil || o.owned.session != s {
		if err := o.claimSlot(ctx, s); err != nil {
			return reservedTimes{}, err
		}
	}
	if o.owned.unsure {
		if err := o.readBack(ctx, s); err != nil {
			return reservedTimes{}, err
		}
	}
	if !o.clock.Known() { // a write of the same value tells the ensemble's time
		if err := o.writeUntil(ctx, s, o.owned.record.Until); err != nil {
			return reservedTimes{}, err
		}
	}
	now := o.clock.Now().UnixMilli()
	from := max(now, o.owned.record.Until, floor, o.opts.epoch)
	till := min(from+window.Milliseconds(), o.opts.epoch+1<<timeBits)
	if till <= from {
		return reservedTimes{}, fmt.Errorf("%w: the slot's times have reached %v", ErrExhausted, time.UnixMilli(from).UTC())
	}
	if err := o.writeUntil(ctx, s, till); err != nil {
		return reservedTimes{}, err
	}
	return reservedTimes{o.owned.number, from, till, o.clock.Now().UnixMilli(), time.Now()}, nil
}

// writeUntil sets the slot's until if the slot's node still has the known version and the owner node exists.
func (o *workerSlot) writeUntil(ctx context.Context, s *framework.Session, until int64) error {
	next := o.owned.record
	next.Until = until
	requested := time.Now()
	rs, err := s.Multi(ctx, framework.CheckOp(o.owned.owner, framework.AnyVersion), framework.SetOp(o.slotPath(o.owned.number), next.encode(), o.owned.version))
	var tx *framework.TxError
	switch {
	case err == nil:
		st := rs[1].Stat
		o.owned.record, o.owned.version = next, st.Version
		o.clock.Note(st.Mtime, requested)
		return nil
	case errors.As(err, &tx) && errors.Is(err, framework.ErrNoNode):
		o.owned = nil // an operator has deleted it
		return recipe.ErrAgain
	case errors.As(err, &tx) && errors.Is(err, framework.ErrBadVersion):
		o.owned.unsure = true
		return recipe.ErrAgain
	}
	o.owned.unsure = true
	return err
}

// readBack reads the slot's node after a write without an answer. The worker does not use the times that this write may have reserved.
func (o *workerSlot) readBack(ctx context.Context, s *framework.Session) error {
	path := o.slotPath(o.owned.number)
	if err := s.Sync(ctx, path); err != nil {
		return err
	}
	data, st, err := s.Get(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		o.owned = nil
		return recipe.ErrAgain
	}
	if err != nil {
		return err
	}
	r, err := parseSlot(path, data)
	if err != nil {
		return err
	}
	o.owned.record, o.owned.version, o.owned.unsure = r, st.Version, false
	return nil
}

// claimSlot claims a free slot, whose node has no child. One transaction creates the owner node and writes the slot's node at the version that was read
// without a child, so only one of several workers succeeds.
func (o *workerSlot) claimSlot(ctx context.Context, s *framework.Session) error {
	o.owned = nil
	if err := o.checkSlots(ctx, s); err != nil {
		return err
	}
	free, err := o.freeSlots(ctx, s)
	if err == nil && len(free) == 0 { // the server may lag behind
		if err = s.Sync(ctx, o.path); err == nil {
			free, err = o.freeSlots(ctx, s)
		}
	}
	if err != nil {
		return err
	}
	if len(free) == 0 {
		return fmt.Errorf("%w: %s has %d", ErrNoSlot, o.path, o.opts.slots)
	}
	one := free[rand.N(min(len(free), claimChoice))]
	path := o.slotPath(one.number)
	if !one.exists {
		if one, err = o.createSlot(ctx, s, one.number); err != nil {
			return err
		}
	}
	created, err := s.Primitives().CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: path, Name: "owner", Unnumbered: true, Data: ownerRecord{By: o.client.Config().Identity}.encode(),
		With: []framework.Op{framework.SetOp(path, one.record.encode(), one.version)},
	})
	if errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNoNode) {
		return recipe.ErrAgain
	}
	if err != nil {
		return err
	}
	o.owned = &ownedSlot{session: s, number: one.number, owner: created.Nodes[0].Path, record: one.record, version: one.version + 1}
	return nil
}

// createSlot creates a slot's node and reads it: another worker may have created and used it before.
func (o *workerSlot) createSlot(ctx context.Context, s *framework.Session, number int) (freeSlot, error) {
	path := o.slotPath(number)
	if err := s.CreateIfMissing(ctx, path, slotRecord{}.encode(), framework.Persistent); err != nil {
		return freeSlot{}, err
	}
	data, st, err := s.Get(ctx, path)
	if errors.Is(err, framework.ErrNoNode) || err == nil && st.NumChildren > 0 {
		return freeSlot{}, recipe.ErrAgain
	}
	if err != nil {
		return freeSlot{}, err
	}
	r, err := parseSlot(path, data)
	return freeSlot{number, true, r, st.Version}, err
}

// releaseSlot deletes the owner node in the background, and returns a channel that is closed when that is done.
func (o *workerSlot) releaseSlot() <-chan struct{} {
	if o.owned == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	return o.owned.session.Primitives().Discard(nil, o.owned.owner).Done()
}

// checkSlots compares the number of slots and the epoch with the stored ones, or stores them as the first user of the path.
func (o *workerSlot) checkSlots(ctx context.Context, s *framework.Session) error {
	own := workersRecord{Slots: o.opts.slots, Epoch: o.opts.epoch}
	data, _, err := s.Get(ctx, o.path)
	if errors.Is(err, framework.ErrNoNode) {
		dir, _ := znode.Split(o.path)
		if err := s.MakeDirs(ctx, dir); err != nil {
			return err
		}
		if err := s.CreateIfMissing(ctx, o.path, own.encode(), framework.Persistent); err != nil {
			return err
		}
		return recipe.ErrAgain
	}
	if err != nil {
		return err
	}
	r, err := parseWorkers(o.path, data)
	if err != nil {
		return err
	}
	if r.Slots != own.Slots || r.Epoch != own.Epoch {
		return fmt.Errorf("%w: %s has %d slots and the epoch %v, this worker %d and %v", ErrMismatch,
			o.path, r.Slots, time.UnixMilli(r.Epoch).UTC(), own.Slots, time.UnixMilli(own.Epoch).UTC())
	}
	return nil
}

// freeSlot is a slot without an owner, as it was read.
type freeSlot struct {
	number  int
	exists  bool
	record  slotRecord
	version int32
}

// freeSlots returns the free slots with the lowest numbers, with and without a node. A node's data, version and number of children are of one moment.
func (o *workerSlot) freeSlots(ctx context.Context, s *framework.Session) (free []freeSlot, err error) {
	names, _, err := s.Children(ctx, o.path)
	if err != nil {
		return nil, err
	}
	there := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < o.opts.slots && strconv.Itoa(n) == name {
			there = append(there, n)
		}
	}
	slices.Sort(there)
	paths := make([]string, len(there))
	for i, n := range there {
		paths[i] = o.slotPath(n)
	}
	nodes, err := s.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	for n := 0; n < o.opts.slots && len(free) < claimChoice; n++ {
		i, exists := slices.BinarySearch(there, n)
		if !exists {
			free = append(free, freeSlot{number: n})
			continue
		}
		switch node := nodes[i]; {
		case errors.Is(node.Err, framework.ErrNoNode):
			return nil, recipe.ErrAgain
		case node.Err != nil:
			return nil, failure.Wrap("read", paths[i], node.Err)
		case node.Stat.NumChildren == 0:
			r, err := parseSlot(paths[i], node.Data)
			if err != nil {
				return nil, err
			}
			free = append(free, freeSlot{n, true, r, node.Stat.Version})
		}
	}
	return free, nil
}

func (o *workerSlot) slotPath(number int) string { return znode.Join(o.path, strconv.Itoa(number)) }
