package framework

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// ownedBytes counts the bytes of the paths of a session's ephemeral nodes, and refuses more than
// the servers can delete: they delete all of a session's nodes in one transaction. It counts the
// nodes that exist, those that are being created, and those that may have been created.
type ownedBytes struct {
	caller  *caller
	clock   clock.Clock
	timeout func() time.Duration // of the session
	max     int

	mu       sync.Mutex
	paths    map[string]struct{} // full paths of nodes that exist, or may exist
	bytes    int                 // of paths
	reserved int                 // bytes of creates under way
	doubtful int                 // bytes of sequential creates whose outcome is unknown

	lookupDone   chan struct{}   // closed when the servers have answered; nil while they are not asked
	changedSince map[string]bool // paths that were added (true) or removed since they were asked
	lookedUpAt   time.Duration   // when they were asked last
	everLookedUp bool
}

const (
	pathOverhead   = 4  // of a path in a transaction
	sequenceDigits = 10 // that a server adds to a name
)

func (o *ownedBytes) init(c *caller, clock clock.Clock, timeout func() time.Duration) {
	o.caller, o.clock, o.timeout = c, clock, timeout
	o.max, o.paths = c.cfg.MaxEphemeralBytes, map[string]struct{}{}
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

// sizesOf returns the bytes of the nodes that operations create and delete.
func (o *ownedBytes) sizesOf(ops []Op) (created, deleted int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range ops {
		op := primitives.Fields(ops[i])
		full := o.caller.ns.serverPath(op.Path)
		created += ownedSize(full, Mode(op.Mode))
		if _, there := o.paths[full]; there && op.Kind == primitives.OpDelete {
			deleted += ownedSize(full, Ephemeral)
		}
	}
	return created, deleted
}

// reserveFor reserves bytes for creates, in a transaction that also deletes some. When the bound is
// reached, it asks the servers which nodes really exist, since others may have deleted some. Each
// reservation ends with endReservation.
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
		looking, first := o.lookupDone, false
		if now := o.clock.Now(); looking == nil &&
			(!o.everLookedUp || now-o.lookedUpAt >= heartbeatInterval(o.timeout())) {
			looking, first = make(chan struct{}), true
			o.lookupDone, o.changedSince, o.lookedUpAt, o.everLookedUp = looking, map[string]bool{}, now, true
		}
		o.mu.Unlock()
		tooLarge := func() error {
			return fmt.Errorf("%w: the paths of this session's ephemeral nodes have %d bytes, %d more would exceed "+
				"the bound of %d: release some, or use several clients (Config.MaxEphemeralBytes)",
				ErrTooLarge, sum, created, o.max)
		}
		switch {
		case first:
			if err := o.readFromServers(ctx); err != nil && ctx.Err() == nil && o.caller.session.Err() == nil {
				return fmt.Errorf("%w; the servers do not say which of them there are: %w", tooLarge(), err)
			}
		case looking == nil:
			return tooLarge()
		default:
			select {
			case <-looking:
			case <-ctx.Done():
				return o.caller.callEnded(ctx)
			case <-o.caller.session.Done():
				return context.Cause(o.caller.session)
			}
		}
		if ctx.Err() != nil || o.caller.session.Err() != nil {
			return o.caller.callEnded(ctx)
		}
	}
}

// readFromServers asks the servers which ephemeral nodes the session has. The question comes behind
// a sync, so creates of an unknown outcome before it either have happened or will not happen.
// Without an answer, the next create asks again.
func (o *ownedBytes) readFromServers(ctx context.Context) error {
	o.mu.Lock()
	doubtful := o.doubtful
	o.mu.Unlock()
	there, err := repeatUntilKnown(ctx, o.caller, func(a requester) ([]string, error) {
		if err := a.sync("/"); err != nil {
			return nil, err
		}
		return sendAndWait(a, wire.OpGetEphemerals, &wire.PathRequest{Path: "/"}, (*wire.Decoder).Strings).asRead()
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		since := o.changedSince
		o.changedSince, o.paths, o.bytes = nil, make(map[string]struct{}, len(there)), 0
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
	o.changedSince = nil
	close(o.lookupDone)
	o.lookupDone, o.everLookedUp = nil, err == nil
	return err
}

// addPath counts a path once. Guarded by mu.
func (o *ownedBytes) addPath(full string) {
	if _, there := o.paths[full]; !there {
		o.paths[full] = struct{}{}
		o.bytes += ownedSize(full, Ephemeral)
	}
	if o.changedSince != nil {
		o.changedSince[full] = true
	}
}

// removePath stops counting a path. Guarded by mu.
func (o *ownedBytes) removePath(full string) {
	if _, there := o.paths[full]; there {
		delete(o.paths, full)
		o.bytes -= ownedSize(full, Ephemeral)
	}
	if o.changedSince != nil {
		o.changedSince[full] = false
	}
}

// endReservation ends a reservation. The nodes there exist, or may exist; doubtful are the bytes
// of nodes with unknown names that may exist.
func (o *ownedBytes) endReservation(reserved, doubtful int, there ...string) {
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

// removeDeleted stops counting nodes that are known to be deleted.
func (o *ownedBytes) removeDeleted(full ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, path := range full {
		o.removePath(path)
	}
}

// countApplied counts what a transaction has created and deleted. paths are those of its results.
func (o *ownedBytes) countApplied(reserved int, ops []Op, rs []OpResult) {
	var there, gone []string
	for i := range ops {
		op := primitives.Fields(ops[i])
		switch {
		case op.Kind == primitives.OpDelete:
			gone = append(gone, o.caller.ns.serverPath(op.Path))
		case ownedSize("", Mode(op.Mode)) > 0 && i < len(rs):
			there = append(there, rs[i].Path)
		}
	}
	o.removeDeleted(gone...)
	o.endReservation(reserved, 0, there...)
}

// countUnknown counts what a transaction of an unknown outcome may have created.
func (o *ownedBytes) countUnknown(reserved int, ops []Op) {
	var there []string
	doubtful := 0
	for i := range ops {
		op := primitives.Fields(ops[i])
		full := o.caller.ns.serverPath(op.Path)
		switch Mode(op.Mode) {
		case Ephemeral:
			there = append(there, full)
		case EphemeralSequential:
			doubtful += ownedSize(full, Mode(op.Mode))
		}
	}
	o.endReservation(reserved, doubtful, there...)
}

// totalBytes is the number of bytes that count towards the bound.
func (o *ownedBytes) totalBytes() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes + o.reserved + o.doubtful
}
