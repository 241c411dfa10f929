package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// capacityCounter reserves places in a bounded queue for one writer
// (docs/adr/0040-room-in-blocks.md):
//
//	<path>/in              the number of places given out, and " line" while producers stand in line for more
//	<path>/out             its version counts the items that have left
//	<path>/places/<uuid>   places that one writer has reserved and not used yet
//
// A put counts its writer's places down in its own transaction, so producers meet at <path>/in only
// when they reserve a block of places. A producer without room takes back the unused places of
// others. in - out is at most the capacity at any time. Both counts are modulo 2^32. Since out only
// grows, an old reading of it is safe.
type capacityCounter struct {
	store       *store
	known       bool // the fields below were read, and no write has failed since
	in          uint32
	lineMarked  bool  // producers stand in line: only the first of them gets places
	version     int32 // of <path>/in
	out         uint32
	own         reservedPlaces
	exists      bool // the node of own
	deadChecked bool // it has looked for places of dead writers
	peers       int  // writers with a node of places, when they were listed last
}

// reservedPlaces are the places of one writer, and their node.
type reservedPlaces struct {
	path    string
	left    int
	version int32
}

// maxAhead is how many places a block may have beyond those that are needed at once.
const maxAhead = 63

// useOp is the operation that goes with a put of n items.
func (c *capacityCounter) useOp(n int) framework.Op {
	return framework.SetOp(c.own.path, strconv.AppendInt(nil, int64(c.own.left-n), 10), c.own.version)
}

// countUsed counts the n items that a transaction has put.
func (c *capacityCounter) countUsed(n int) {
	if c.known {
		c.own.left -= n
		c.own.version++
	}
}

// reserveFor takes places for requests, and returns those that have places. Requests behind one
// without places get no places. While puts of this Queue stand in line for room, only the first in
// line gets places.
func (c *capacityCounter) reserveFor(ctx context.Context, s *framework.Session, marker string, requests []*writeRequest,
	putsWait bool) (map[*writeRequest]bool, error) {
	_, name := znode.Split(marker)
	if path := znode.Join(c.store.nodes.PlacesDir, name); path != c.own.path {
		*c = capacityCounter{store: c.store, own: reservedPlaces{path: path}}
	}
	var wanted []*writeRequest
	for _, r := range requests {
		if r.adds > 0 && (r.first || !putsWait) {
			wanted = append(wanted, r)
		}
	}
	for {
		if !c.known {
			if err := c.readState(ctx, s); err != nil {
				return nil, err
			}
		}
		missing := itemsAdded(wanted) - c.own.left
		if missing <= 0 {
			break
		}
		switch free, err := c.reserveBlock(ctx, s, missing, wanted[0].first); {
		case errors.Is(err, errConflict): // the next round reads the state again
		case errors.Is(err, errNoRoom):
			for itemsAdded(wanted) > c.own.left+free {
				wanted = wanted[:len(wanted)-1]
			}
		case err != nil:
			return nil, err
		}
	}
	fits := map[*writeRequest]bool{}
	for _, r := range wanted {
		fits[r] = true
	}
	return fits, nil
}

// readState reads the counts, the writer's places if it has a path for them, and the record. It
// reads out before in, so that in - out is not less than the true number; and the record after in,
// since SetCapacity writes both in one transaction.
func (c *capacityCounter) readState(ctx context.Context, s *framework.Session) error {
	stat, err := s.Exists(ctx, c.store.nodes.OutNode)
	if err != nil {
		return err
	}
	c.out = uint32(stat.Version)
	nodes, err := s.GetAll(ctx, c.store.nodes.InNode, cmp.Or(c.own.path, c.store.nodes.InNode),
		c.store.nodes.Path)
	if err != nil {
		return err
	}
	in, own, record := nodes[0], nodes[1], nodes[2]
	if in.Err != nil {
		return in.Err
	}
	if c.in, c.lineMarked, err = queuelayout.DecodeIn(in.Data); err != nil {
		return failure.Wrap("read", c.store.nodes.InNode, err)
	}
	c.version = in.Stat.Version
	if err := c.store.learnFrom(record); err != nil {
		return err
	}
	if c.own.path == "" {
		return nil // SetCapacity has no places of its own
	}
	c.exists, c.own.left, c.own.version = own.Err == nil, 0, own.Stat.Version
	switch {
	case c.exists:
		if c.own.left, err = queuelayout.DecodePlaces(own.Data); err != nil {
			return failure.Wrap("read", c.own.path, err)
		}
	case !errors.Is(own.Err, framework.ErrNoNode):
		return own.Err
	}
	c.known = true
	return nil
}

// errNoRoom says that the queue has fewer places than a producer needs.
var errNoRoom = errors.New("too few places")

// reserveBlock reserves n places, and some ahead if there are many. If there are fewer than n, it
// reserves no places, and returns their number and errNoRoom. It returns errConflict if another
// producer was faster, or may have been. first says that the producer is the first in line.
func (c *capacityCounter) reserveBlock(ctx context.Context, s *framework.Session, n int,
	first bool) (free int, err error) {
	free = c.freeAtLeast()
	if free < n { // the count may be old
		if err := c.readState(ctx, s); err != nil {
			return 0, err
		}
		free = c.freeAtLeast()
	}
	if c.lineMarked && !first {
		names, _, err := s.Children(ctx, c.store.nodes.RoomDir)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return 0, err
		}
		if len(names) > 0 {
			return 0, errNoRoom
		}
	}
	var back []reservedPlaces
	returned := 0
	if free < n || !c.deadChecked {
		others, dead, err := c.unusedByOthers(ctx, s)
		if err != nil {
			return 0, err
		}
		if back = dead; free < n {
			back = slices.DeleteFunc(others,
				func(p reservedPlaces) bool { return p.left == 0 && !slices.Contains(dead, p) })
		}
		back = back[:min(len(back), 200)]
		for _, p := range back {
			returned += p.left
		}
	}
	if free += returned; free < n {
		if first && !c.lineMarked {
			mark := framework.SetOp(c.store.nodes.InNode, queuelayout.EncodeIn(c.in, true), c.version)
			if err := c.runTransaction(ctx, s, mark); err != nil {
				return 0, err
			}
			c.lineMarked = true
			c.version++
		}
		return free, errNoRoom
	}
	block := n
	if !first {
		block += min(maxAhead, (free-n)/(2*(c.peers+2)))
	}
	in := c.in + uint32(block-returned)
	ops := []framework.Op{framework.SetOp(c.store.nodes.InNode, queuelayout.EncodeIn(in, first && c.lineMarked),
		c.version)}
	count := strconv.AppendInt(nil, int64(c.own.left+block), 10)
	if c.exists {
		ops = append(ops, framework.SetOp(c.own.path, count, c.own.version))
	} else {
		ops = append(ops, framework.CreateOp(c.own.path, count, framework.Persistent))
	}
	for _, p := range back {
		ops = append(ops, framework.DeleteOp(p.path, p.version))
	}
	if err := c.runTransaction(ctx, s, ops...); err != nil {
		return 0, err
	}
	if c.exists {
		c.own.version++
	}
	c.in, c.lineMarked, c.exists, c.deadChecked = in, first && c.lineMarked, true, true
	c.version++
	c.own.left += block
	return 0, nil
}

// freeAtLeast is a lower bound of the free places: out may be older than in.
func (c *capacityCounter) freeAtLeast() int {
	return max(0, c.store.record().Capacity-int(int32(c.in-c.out)))
}

// runTransaction runs a transaction. If it is refused, it returns errConflict. After each error the
// state has to be read again.
func (c *capacityCounter) runTransaction(ctx context.Context, s *framework.Session, ops ...framework.Op) error {
	_, err := s.Multi(ctx, ops...)
	if err == nil {
		return nil
	}
	c.known = false
	var refused *framework.TxError
	if !errors.As(err, &refused) || errors.Is(err, framework.ErrNoAuth) {
		return err
	}
	if refused.Op == "create" && errors.Is(err, framework.ErrNoNode) {
		err = s.Create(ctx, c.store.nodes.PlacesDir, nil, framework.Persistent)
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			return err
		}
	}
	return errConflict
}

// unusedByOthers lists the unused places of other writers. dead are the ones among them whose
// writers have died.
func (c *capacityCounter) unusedByOthers(ctx context.Context,
	s *framework.Session) (all, dead []reservedPlaces, err error) {
	names, _, err := s.Children(ctx, c.store.nodes.PlacesDir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	// after the places: a writer makes its marker first
	writers, _, err := s.Children(ctx, c.store.nodes.WritersDir)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, nil, err
	}
	c.peers = len(names)
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.Join(c.store.nodes.PlacesDir, name)
	}
	nodes, err := s.GetAll(ctx, paths...)
	if err != nil {
		return nil, nil, err
	}
	for i, n := range nodes {
		left, err := queuelayout.DecodePlaces(n.Data)
		if n.Err != nil || err != nil || paths[i] == c.own.path {
			continue // it is gone, is another program's, or is this writer's own
		}
		p := reservedPlaces{paths[i], left, n.Stat.Version}
		all = append(all, p)
		if !slices.Contains(writers, names[i]) {
			dead = append(dead, p)
		}
	}
	return all, dead, nil
}

// returnUnused gives back the unused places when the Queue is closed. If that fails, a producer
// without room takes them back.
func (c *capacityCounter) returnUnused(s *framework.Session) {
	if c.own.path == "" {
		return
	}
	for range 10 {
		if !c.known && c.readState(s.Context(), s) != nil || !c.exists {
			return
		}
		ops := []framework.Op{framework.DeleteOp(c.own.path, c.own.version)}
		if c.own.left > 0 {
			ops = append(ops, framework.SetOp(c.store.nodes.InNode,
				queuelayout.EncodeIn(c.in-uint32(c.own.left), c.lineMarked), c.version))
		}
		if !errors.Is(c.runTransaction(s.Context(), s, ops...), errConflict) {
			return
		}
	}
}
