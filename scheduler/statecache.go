package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// stateCache is a job's stored state as a member knows it. It keeps the state as it is stored, which takes the least
// memory, and writes by its version, so that a write is refused if another member has changed the state.
type stateCache struct {
	turn       chan struct{} // taken from reading until what follows from it is written; a channel, since it is held while waiting
	node       string
	known      bool
	data       []byte
	version    int32
	registered time.Time // when the node was created
	created    int64     // the transaction that created it
}

func newStateCache(node string) *stateCache {
	return &stateCache{node: node, turn: make(chan struct{}, 1)}
}

// lock waits for the cache; the function that it returns gives it back.
func (b *stateCache) lock() (back func()) {
	b.turn <- struct{}{}
	return func() { <-b.turn }
}

// readState returns the state, which may be a tombstone, and asks the servers only if it is not known. Its error wraps
// ErrUnknownJob, ErrBadState or ErrNewerState.
func (b *stateCache) readState(ctx context.Context, session *framework.Session) (jobState, error) {
	if !b.known {
		data, st, err := session.Get(ctx, b.node)
		if errors.Is(err, framework.ErrNoNode) {
			_, name := framework.Split(b.node)
			return jobState{}, fmt.Errorf("%w %q", ErrUnknownJob, name)
		}
		if err != nil {
			return jobState{}, err
		}
		b.known, b.data, b.version, b.registered, b.created = true, data, st.Version, st.Ctime.UTC(), st.Czxid
	}
	state, err := decodeState(b.data)
	if err != nil {
		b.invalidate()
		return jobState{}, framework.Wrap("state", b.node, err)
	}
	if state.Registered = state.Reregistered; state.Registered.IsZero() {
		state.Registered = b.registered
	}
	return state, nil
}

// invalidate makes the next read ask the servers.
func (b *stateCache) invalidate() { b.known, b.data = false, nil }

// writeState writes a state, if it still has the version that was read, in one transaction with other
// operations, those before it and those after. When the write fails, the next read asks the servers.
func (b *stateCache) writeState(ctx context.Context, session *framework.Session, state jobState, before, after []tolerantOp) (framework.Stat, error) {
	data, err := state.encode()
	if err != nil {
		return framework.Stat{}, err
	}
	at := len(before)
	ops := slices.Concat(before, []tolerantOp{{op: framework.SetOp(b.node, data, b.version)}}, after)
	results, err := multiTolerant(ctx, session, ops)
	if err != nil {
		b.invalidate()
		return framework.Stat{}, err
	}
	st := results[at].Stat
	b.data, b.version = data, st.Version
	return st, nil
}
