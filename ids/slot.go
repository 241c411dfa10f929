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

// An id has 63 bits. From the highest they are: the time in milliseconds since the epoch, the slot,
// and a count within the millisecond. Slot and count share 22 bits.
const (
	timeBits = 41
	lowBits  = 22
)

// slotClaimer claims a slot for a worker, and reserves times in it. One goroutine at a time may use
// it.
type slotClaimer struct {
	client *framework.Client
	path   string // of the workers
	opts   workerOptions
	clock  recipe.EnsembleClock

	owned    *ownedSlot          // nil if the worker has no slot
	deletion recipe.LastDeletion // of the owner node, by releaseSlot
}

// ownedSlot is a slot with an owner node of this worker.
type ownedSlot struct {
	session *framework.Session // that has created the owner node
	number  int
	owner   string     // the path of the owner node; no other worker uses its name
	record  slotRecord // of the slot's node, as this worker has last written or read it
	version int32      // of the slot's node with that record
	unsure  bool       // the slot's node may have been written since
}

// reservedTimes are times that only this worker may use in its slot, in milliseconds of Unix time.
type reservedTimes struct {
	number     int       // of the slot
	from, till int64     // the first time, and the first one after the last
	now        int64     // the ensemble's time
	at         time.Time // the local time at which now was estimated
}

// claimChoice is how many free slots a worker chooses from at random, so that workers that begin
// together try different slots.
const claimChoice = 16

// reserveTimes reserves a window of times in the slot. The window begins at the latest of the
// ensemble's time, the slot's until, floor and the epoch. If the worker has no slot on this
// session, it claims one first.
//
// Only an answered transaction at the version that was read reserves times: from the slot's former
// until, or later, up to the new one. No other transaction can have reserved these times. This
// holds also when clocks are wrong and sessions are lost. The transaction also checks that the
// owner node exists, so that two workers do not use one slot in turns.
func (o *slotClaimer) reserveTimes(ctx context.Context, s *framework.Session, floor int64,
	window time.Duration) (reservedTimes, error) {
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
	if !o.clock.Known() { // a write of the same until shows the ensemble's time
		if err := o.writeUntil(ctx, s, o.owned.record.Until); err != nil {
			return reservedTimes{}, err
		}
	}
	now := o.clock.Now().UnixMilli()
	from := max(now, o.owned.record.Until, floor, o.opts.epoch)
	till := min(from+window.Milliseconds(), o.opts.epoch+1<<timeBits)
	if till <= from {
		return reservedTimes{}, fmt.Errorf("%w: the slot's times have reached %v", ErrExhausted,
			time.UnixMilli(from).UTC())
	}
	if err := o.writeUntil(ctx, s, till); err != nil {
		return reservedTimes{}, err
	}
	return reservedTimes{o.owned.number, from, till, o.clock.Now().UnixMilli(), time.Now()}, nil
}

// writeUntil sets the slot's until, if the slot's node still has the known version and the owner
// node exists. It records the ensemble's time of the write. After recipe.ErrAgain, or an error of a
// write without an answer, the slot must be claimed or read again.
func (o *slotClaimer) writeUntil(ctx context.Context, s *framework.Session, until int64) error {
	next := o.owned.record
	next.Until = until
	requested := time.Now()
	rs, err := s.Multi(ctx, framework.CheckOp(o.owned.owner, framework.AnyVersion),
		framework.SetOp(o.slotPath(o.owned.number), next.encode(), o.owned.version))
	var tx *framework.TxError
	switch {
	case err == nil:
		stat := rs[1].Stat
		o.owned.record, o.owned.version = next, stat.Version
		o.clock.AddStamp(stat.Mtime, requested)
		return nil
	case errors.As(err, &tx) && errors.Is(err, framework.ErrNoNode):
		o.owned = nil // an operator has deleted the owner node or the slot's node
		return recipe.ErrAgain
	case errors.As(err, &tx) && errors.Is(err, framework.ErrBadVersion):
		o.owned.unsure = true
		return recipe.ErrAgain
	}
	o.owned.unsure = true
	return err
}

// readBack reads the slot's node after a write without an answer or a refused one. The worker does
// not use the times that a write without an answer may have reserved.
func (o *slotClaimer) readBack(ctx context.Context, s *framework.Session) error {
	path := o.slotPath(o.owned.number)
	if err := s.Sync(ctx, path); err != nil {
		return err
	}
	data, stat, err := s.Get(ctx, path)
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
	o.owned.record, o.owned.version, o.owned.unsure = r, stat.Version, false
	return nil
}

// claimSlot claims a free slot: one whose node is missing or has no child. One transaction creates
// the owner node and writes the slot's node, at the version at which that had no child. So only one
// of several workers succeeds; the others get recipe.ErrAgain. The error wraps ErrNoSlot if no slot
// is free, after a sync.
func (o *slotClaimer) claimSlot(ctx context.Context, s *framework.Session) error {
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
	chosen := free[rand.N(min(len(free), claimChoice))]
	path := o.slotPath(chosen.number)
	if !chosen.exists {
		if chosen, err = o.createSlot(ctx, s, chosen.number); err != nil {
			return err
		}
	}
	created, err := primitives.Of(s).CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: path, Name: "owner", Unnumbered: true, Data: ownerRecord{By: o.client.Config().Identity}.encode(),
		With: []framework.Op{framework.SetOp(path, chosen.record.encode(), chosen.version)},
	})
	if errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNoNode) {
		return recipe.ErrAgain
	}
	if err != nil {
		return err
	}
	o.owned = &ownedSlot{session: s, number: chosen.number, owner: created.Nodes[0].Path, record: chosen.record,
		version: chosen.version + 1}
	return nil
}

// createSlot creates a slot's node if it is missing, and reads it: another worker may have created
// and used it meanwhile. It returns recipe.ErrAgain if the slot is not free.
func (o *slotClaimer) createSlot(ctx context.Context, s *framework.Session, number int) (freeSlot, error) {
	path := o.slotPath(number)
	if err := s.CreateIfMissing(ctx, path, slotRecord{}.encode(), framework.Persistent); err != nil {
		return freeSlot{}, err
	}
	data, stat, err := s.Get(ctx, path)
	if errors.Is(err, framework.ErrNoNode) || err == nil && stat.NumChildren > 0 {
		return freeSlot{}, recipe.ErrAgain
	}
	if err != nil {
		return freeSlot{}, err
	}
	r, err := parseSlot(path, data)
	return freeSlot{number, true, r, stat.Version}, err
}

// releaseSlot deletes the owner node, and returns when the node is gone or its session has ended.
func (o *slotClaimer) releaseSlot() {
	if o.owned != nil {
		o.deletion.Await(primitives.Of(o.owned.session).Discard(nil, o.owned.owner))
	}
}

// checkSlots compares this worker's number of slots and epoch with those of the path's node, or
// creates that node. The error wraps framework.ErrMismatch if they differ.
func (o *slotClaimer) checkSlots(ctx context.Context, s *framework.Session) error {
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
		return fmt.Errorf("%w: %s has %d slots and the epoch %v, this worker has %d and %v", errMismatch,
			o.path, r.Slots, time.UnixMilli(r.Epoch).UTC(), own.Slots, time.UnixMilli(own.Epoch).UTC())
	}
	return nil
}

// freeSlot is a slot without an owner, as it was read.
type freeSlot struct {
	number  int
	exists  bool // the slot has a node, with this record and version
	record  slotRecord
	version int32
}

// slotsAtOnce is how many slots with a node are read before the free ones among them are counted.
const slotsAtOnce = 5000

// freeSlots returns the claimChoice free slots with the lowest numbers, or all if there are fewer:
// those without a node, and those whose node has no child. It reads no further than it must. The
// data, version and number of children of a node are of one moment.
func (o *slotClaimer) freeSlots(ctx context.Context, s *framework.Session) (free []freeSlot, err error) {
	names, _, err := s.Children(ctx, o.path)
	if err != nil {
		return nil, err
	}
	existing := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < o.opts.slots && strconv.Itoa(n) == name {
			existing = append(existing, n)
		}
	}
	slices.Sort(existing)
	read, next := 0, []framework.Node(nil) // the nodes of existing[:read] were read; next are those from number n on
	for n := 0; n < o.opts.slots && len(free) < claimChoice; n++ {
		if _, exists := slices.BinarySearch(existing, n); !exists {
			free = append(free, freeSlot{number: n})
			continue
		}
		if len(next) == 0 {
			paths := make([]string, min(slotsAtOnce, len(existing)-read))
			for i := range paths {
				paths[i] = o.slotPath(existing[read+i])
			}
			if next, err = s.GetAll(ctx, paths...); err != nil {
				return nil, err
			}
			read += len(paths)
		}
		node, path := next[0], o.slotPath(n)
		next = next[1:]
		switch {
		case errors.Is(node.Err, framework.ErrNoNode):
			return nil, recipe.ErrAgain
		case node.Err != nil:
			return nil, failure.Wrap("read", path, node.Err)
		case node.Stat.NumChildren == 0:
			r, err := parseSlot(path, node.Data)
			if err != nil {
				return nil, err
			}
			free = append(free, freeSlot{n, true, r, node.Stat.Version})
		}
	}
	return free, nil
}

func (o *slotClaimer) slotPath(number int) string { return znode.Join(o.path, strconv.Itoa(number)) }
