package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// stateCache is a job's stored state as a member knows it. It keeps the state as it is stored,
// which takes the least memory, and writes by its version, so that a write is refused if another
// member has changed the state.
type stateCache struct {
	// has a token from the read of the state until the write that follows from it; a channel, since
	// its holder waits for the servers
	locked     chan struct{}
	node       string
	known      bool
	data       []byte
	version    int32
	registered time.Time // when the node was created
	created    int64     // the transaction that created it
}

func newStateCache(node string) *stateCache {
	return &stateCache{node: node, locked: make(chan struct{}, 1)}
}

// lock waits until no other goroutine uses the cache. The function that it returns unlocks the
// cache.
func (c *stateCache) lock() (back func()) {
	c.locked <- struct{}{}
	return func() { <-c.locked }
}

// readState returns the state, which may be a tombstone. It asks the servers only if the cache does
// not have the state. Its error wraps framework.ErrNotFound, framework.ErrBadRecord or
// framework.ErrNewer.
func (c *stateCache) readState(ctx context.Context, session *framework.Session) (jobState, error) {
	if !c.known {
		data, stat, err := session.Get(ctx, c.node)
		if errors.Is(err, framework.ErrNoNode) {
			_, name := znode.Split(c.node)
			return jobState{}, fmt.Errorf("%w %q", errUnknownJob, name)
		}
		if err != nil {
			return jobState{}, err
		}
		c.known, c.data, c.version, c.registered, c.created = true, data, stat.Version, stat.Ctime.UTC(), stat.Czxid
	}
	state, err := decodeState(c.data)
	if err != nil {
		c.invalidate()
		return jobState{}, failure.Wrap("state", c.node, err)
	}
	if state.Registered = state.Reregistered; state.Registered.IsZero() {
		state.Registered = c.registered
	}
	return state, nil
}

// invalidate makes the next read ask the servers.
func (c *stateCache) invalidate() { c.known, c.data = false, nil }

// writeState writes a state, if it still has the version that was read, in one transaction with
// other operations, those before it and those after. When the write fails, the next read asks the
// servers.
func (c *stateCache) writeState(ctx context.Context, session *framework.Session, state jobState, before,
	after []tolerantOp) (framework.Stat, error) {
	data, err := state.encode()
	if err != nil {
		return framework.Stat{}, err
	}
	at := len(before)
	ops := slices.Concat(before, []tolerantOp{{op: framework.SetOp(c.node, data, c.version)}}, after)
	results, err := multiTolerant(ctx, session, ops)
	if err != nil {
		c.invalidate()
		return framework.Stat{}, err
	}
	stat := results[at].Stat
	c.data, c.version = data, stat.Version
	return stat, nil
}
