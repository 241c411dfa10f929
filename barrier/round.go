package barrier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Round is one round of a double barrier, for one of its members.
//
// Guarantee: Context ends before the servers can let the others leave without this member, as long
// as this process is scheduled (see package framework).
type Round struct {
	hold   primitives.Hold
	node   string
	phase  int32
	leaver roundLeaver
	path   string // of the barrier
	tel    telemetry

	mu   sync.Mutex
	left bool
}

// roundLeaver lets a member leave, by its barrier's layout.
type roundLeaver interface {
	// removeNode deletes the member's node, as a cleanup. If that fails, the node is deleted in the
	// background, and the error wraps framework.ErrUnconfirmed.
	removeNode(ctx context.Context) error
	// waitForOthers waits until no member is left.
	waitForOthers(ctx context.Context) error
}

// Context ends when the member has left, or counts as dead. Its cause wraps locks.ErrReleased,
// framework.ErrSessionLost, framework.ErrNodeGone or framework.ErrClosed. It carries the values of
// the context given to Enter, but not its end.
func (r *Round) Context() context.Context { return r.hold.Context() }

// Err is nil while the member is inside. Afterwards it is the cause of the end of Context. It reads
// the clock, so it is right at once in a process that was stopped and continued.
func (r *Round) Err() error { return r.hold.Err() }

// Number counts the barrier's rounds from 1, the same for all members. It is 0 with Curator's
// layout.
func (r *Round) Number() int64 { return (int64(r.phase) + 1) / 2 }

// Node is the path of the member's own node.
func (r *Round) Node() string { return r.node }

// Guard is an operation for a transaction (Client.Multi). The servers refuse the transaction unless
// the member is inside.
func (r *Round) Guard() framework.Op {
	return primitives.When(framework.CheckOp(r.node, framework.AnyVersion), r.Err)
}

// Leave leaves the round, and waits until all other members have left or are dead.
//
// The member has left even if Leave returns an error. To delete its node is a cleanup
// (framework.Client.CleanupContext), which goes on also if ctx has ended. If the servers do not
// confirm that, the error wraps framework.ErrUnconfirmed, and the node is deleted in the
// background. Any other error says that the node is gone, and that the others no longer wait for
// this member. If ctx ends the wait for the others, the error is that of ctx. A second call waits
// again. A session loss during Leave has no effect. If the member counted as dead before, the error
// is the cause of the end of Context.
func (r *Round) Leave(ctx context.Context) (err error) {
	ctx, end := r.tel.startWaitSpan(ctx, "barrier.leave", r.path)
	defer func() { end(err) }()
	err = r.leaveOnce(ctx)
	if err == nil {
		err = r.leaver.waitForOthers(ctx)
	}
	return failure.Wrap("leave", r.path, err)
}

// leaveOnce leaves on the first call.
func (r *Round) leaveOnce(ctx context.Context) error {
	again, err := r.endContext()
	if again || err != nil {
		return err
	}
	return r.leaver.removeNode(ctx)
}

// endContext ends the round's context. It returns true if an earlier call has done so.
func (r *Round) endContext() (again bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left {
		return true, nil
	}
	if err := r.hold.Err(); err != nil {
		return false, err
	}
	r.left = true
	r.hold.End(errLeft)
	return false, nil
}

// lockstepLeaver leaves a double barrier of Lockstep's layout.
type lockstepLeaver struct {
	b     *storedBarrier
	s     *framework.Session
	node  string
	state barrierState // of the round
}

// removeNode deletes the node, and ends the round if no other member is left. The same transaction
// counts this member among those that have left alive, and its result has the number of members
// that are still inside.
func (d *lockstepLeaver) removeNode(ctx context.Context) error {
	ctx, cancel := d.b.client.CleanupContext(ctx)
	defer cancel()
	for {
		rs, err := d.s.Multi(ctx, framework.DeleteOp(d.node, framework.AnyVersion),
			framework.SetOp(d.state.in, nil, framework.AnyVersion))
		switch {
		case err == nil && rs[1].Stat.NumChildren == 0:
			// if that fails, waitForOthers finds the round without members, and ends it
			_ = d.b.endRound(ctx, d.s, d.state)
			return nil
		case err == nil, errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrSessionLost):
			return nil // gone
		case errors.Is(err, framework.ErrSuspended):
		default:
			primitives.Of(d.s).Discard(nil, d.node)
			return failure.Unconfirmed(err)
		}
	}
}

// waitForOthers waits for the end of the round, on session after session.
func (d *lockstepLeaver) waitForOthers(ctx context.Context) error {
	if d.b.hasSeenRoundEnd(d.state) {
		return nil
	}
	return recipe.OnSession(ctx, d.b.client, func(s *framework.Session) error {
		for {
			if err := d.waitForRoundEnd(ctx, s); !errors.Is(err, recipe.ErrAgain) {
				return err
			}
		}
	})
}

// hasSeenRoundEnd reports whether a member of this process has seen the end of a round.
func (b *storedBarrier) hasSeenRoundEnd(state barrierState) bool {
	known := b.cachedState()
	return known.czxid == state.czxid && known.phase-state.phase > 0
}

// deadMemberCheckDelay is how long a member that has left waits for the last member to end the
// round, before it checks whether the members that are still inside are dead.
const deadMemberCheckDelay = 50 * time.Millisecond

// waitForRoundEnd waits for the end of the round on one session.
func (d *lockstepLeaver) waitForRoundEnd(ctx context.Context, s *framework.Session) error {
	seen, w, err := d.b.watchBarrier(ctx, s)
	if err != nil {
		return err
	}
	defer w.Stop()
	if over := d.state.afterEnd(); over.equals(seen) {
		d.b.cacheState(over)
		return nil
	}
	if seen.czxid != d.state.czxid || seen.phase-d.state.phase > 0 {
		return nil
	}
	t := time.NewTimer(deadMemberCheckDelay)
	defer t.Stop()
	source, event, err := recipe.WaitForFirst(ctx, s.Context(), recipe.Sources{Watch: w, Timer: t.C})
	switch {
	case err != nil:
		return err
	case source == recipe.FromTimer:
		return d.endRoundIfEmpty(ctx, s, w, seen)
	case event.Kind != framework.NodeChanged || seen.staleWatch || seen.phase != d.state.phase:
		// the event may be that of an earlier change
		return recipe.ErrAgain
	}
	d.b.cacheState(d.state.afterEnd())
	return nil
}

// endRoundIfEmpty ends the round if no member is left: some may have died. Otherwise it waits for
// the end of one member.
func (d *lockstepLeaver) endRoundIfEmpty(ctx context.Context, s *framework.Session, w *framework.Watch,
	seen barrierState) error {
	state, err := d.b.fillFromCache(ctx, s, seen)
	if err != nil {
		return err
	}
	if state.phase != d.state.phase {
		return recipe.ErrAgain
	}
	rest, _, err := d.b.listInside(ctx, s, state)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		return d.b.endRound(ctx, s, state)
	}
	return d.b.waitForRoundChange(ctx, s.Context(), s, roundChange{w, state.memberPath(rest[0]), -1})
}
