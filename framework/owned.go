package framework

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// ownedBytes counts the bytes of the paths of a session's ephemeral nodes, and refuses to create more than servers can delete: the end of a session is one
// transaction that names them all. Counted are the nodes that are there, those that are being created, and those that may have been created.
type ownedBytes struct {
	transport *transport
	clock     clock.Clock
	timeout   func() time.Duration // of the session
	max       int

	mu       sync.Mutex
	paths    map[string]struct{} // full paths that are there, or may be
	bytes    int                 // of paths
	reserved int                 // bytes of creates under way
	doubtful int                 // bytes of creates of an unknown outcome and unknown names

	looking chan struct{}   // closed when the servers have answered; nil while they are not asked
	since   map[string]bool // paths that were added (true) or removed since they were asked
	looked  time.Duration   // when they were asked last
	asked   bool
}

const (
	pathOverhead   = 4  // of a path in a transaction
	sequenceDigits = 10 // that a server adds to a name
)

func (o *ownedBytes) init(t *transport, clock clock.Clock, timeout func() time.Duration) {
	o.transport, o.clock, o.timeout = t, clock, timeout
	o.max, o.paths = t.cfg.MaxEphemeralBytes, map[string]struct{}{}
}

// ownedSize is what a node's path counts, or 0 of a node that is not ephemeral.
func ownedSize(full string, mode Mode) int {
	switch mode {
	case Ephemeral:
		return len(full) + pathOverhead
	case EphemeralSequential:
		return len(full) + pathOverhead + sequenceDigits
	}
	return 0
}

// sizesOf are the bytes of what operations create, and of those that they delete.
func (o *ownedBytes) sizesOf(ops []Op) (created, deleted int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range ops {
		full := o.transport.ns.serverPath(op.path)
		created += ownedSize(full, op.mode)
		if _, there := o.paths[full]; there && op.name == opDelete {
			deleted += ownedSize(full, Ephemeral)
		}
	}
	return created, deleted
}

// reserveFor makes room for creates in a transaction that deletes so many bytes too. When there is none it asks the servers what is really there: others may have
// deleted some. Each reservation ends with settleReservation.
func (o *ownedBytes) reserveFor(ctx context.Context, created, deleted int) error {
	if created == 0 {
		return nil
	}
	for {
		o.mu.Lock()
		sum := o.bytes + o.reserved + o.doubtful
		if created <= deleted || sum+created <= o.max {
			o.reserved += created
			o.mu.Unlock()
			return nil
		}
		looking, first := o.looking, false
		if now := o.clock.Now(); looking == nil && (!o.asked || now-o.looked >= beatInterval(o.timeout())) {
			looking, first = make(chan struct{}), true
			o.looking, o.since, o.looked, o.asked = looking, map[string]bool{}, now, true
		}
		o.mu.Unlock()
		switch {
		case first:
			o.readFromServers(ctx)
		case looking == nil:
			return fmt.Errorf("%w: the paths of this session's ephemeral nodes have %d bytes, %d more would exceed the bound of %d: release some, or use several clients (Config.MaxEphemeralBytes)",
				ErrTooLarge, sum, created, o.max)
		default:
			select {
			case <-looking:
			case <-ctx.Done():
				return o.transport.callEnded(ctx)
			case <-o.transport.session.Done():
				return context.Cause(o.transport.session)
			}
		}
		if ctx.Err() != nil || o.transport.session.Err() != nil {
			return o.transport.callEnded(ctx)
		}
	}
}

// readFromServers asks the servers which ephemeral nodes the session has. What was under way before has been carried out by then, or will not be: the question comes
// behind a sync.
func (o *ownedBytes) readFromServers(ctx context.Context) {
	o.mu.Lock()
	doubtful := o.doubtful
	o.mu.Unlock()
	there, err := repeatUntilKnown(ctx, o.transport, func(a requester) ([]string, error) {
		if err := a.sync("/"); err != nil {
			return nil, err
		}
		return ask(a, wire.OpGetEphemerals, &wire.PathRequest{Path: "/"}, (*wire.Decoder).Strings).read()
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		since := o.since
		o.since, o.paths, o.bytes = nil, make(map[string]struct{}, len(there)), 0
		o.doubtful -= doubtful
		for _, full := range there {
			o.addPath(full)
		}
		for full, added := range since {
			if added {
				o.addPath(full)
			} else {
				o.removePath(full)
			}
		}
	}
	o.since = nil
	close(o.looking)
	o.looking = nil
}

// addPath counts a path once. Guarded by mu.
func (o *ownedBytes) addPath(full string) {
	if _, there := o.paths[full]; !there {
		o.paths[full] = struct{}{}
		o.bytes += ownedSize(full, Ephemeral)
	}
	if o.since != nil {
		o.since[full] = true
	}
}

// removePath counts a path no more. Guarded by mu.
func (o *ownedBytes) removePath(full string) {
	if _, there := o.paths[full]; there {
		delete(o.paths, full)
		o.bytes -= ownedSize(full, Ephemeral)
	}
	if o.since != nil {
		o.since[full] = false
	}
}

// settleReservation ends a reservation: these nodes are there, or may be, and of others, of unknown names, so many bytes may be.
func (o *ownedBytes) settleReservation(reserved, doubtful int, there ...string) {
	if reserved == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserved -= reserved
	o.doubtful += doubtful
	for _, full := range there {
		o.addPath(full)
	}
}

// removeDeleted takes nodes out that are known to be gone.
func (o *ownedBytes) removeDeleted(full ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, path := range full {
		o.removePath(path)
	}
}

// countApplied counts what a transaction has created and deleted. paths are those of its results.
func (o *ownedBytes) countApplied(reserved int, ops []Op, rs []OpResult) {
	var there []string
	for i, op := range ops {
		switch {
		case op.name == opDelete:
			o.removeDeleted(o.transport.ns.serverPath(op.path))
		case ownedSize("", op.mode) > 0 && i < len(rs):
			there = append(there, rs[i].Path)
		}
	}
	o.settleReservation(reserved, 0, there...)
}

// countUnknown counts what a transaction of an unknown outcome may have created.
func (o *ownedBytes) countUnknown(reserved int, ops []Op) {
	var there []string
	doubtful := 0
	for _, op := range ops {
		full := o.transport.ns.serverPath(op.path)
		switch op.mode {
		case Ephemeral:
			there = append(there, full)
		case EphemeralSequential:
			doubtful += ownedSize(full, op.mode)
		}
	}
	o.settleReservation(reserved, doubtful, there...)
}

// totalBytes is the number of bytes that are counted.
func (o *ownedBytes) totalBytes() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes + o.reserved + o.doubtful
}
