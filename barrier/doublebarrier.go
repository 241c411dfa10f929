package barrier

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// DoubleBarrier lets its members enter together and leave together, round after round on the same
// path. Many goroutines may use it at once. Each call of Enter is one member.
//
//	<path>                 persistent: the number of members, and the name of their directory; its version counts the
//	                       phases: even, members gather; odd, a round is inside
//	<path>/in-<uuid>       persistent
//	<path>/in-<uuid>/m-#   ephemeral sequential: one member, waiting or inside
//	<path>/round           persistent: the members of the last round
//
// One transaction begins a round: it checks that the nodes of all its members exist, and changes
// the phase under its version. One versioned change ends the round once all these nodes are gone.
// So all members see the same begin and the same end of a round, also if some are late or dead. A
// barrier that is deleted and created again has a directory of another name, so nothing that a
// member of the former one sends reaches the new one.
//
// Guarantee: Enter returns a Round in all members of a round, or the round has not begun;
// Round.Leave returns nil once every member has left or is dead, and no member can enter the next
// round before. The number of members may change after the barrier was empty for a session timeout:
// a member with a different number waits for that long, and fails with a *MismatchError if another
// member comes.
type DoubleBarrier struct {
	stored  storedBarrier
	curator bool
	tel     telemetry
	err     error // of the arguments
}

// NewDoubleBarrier returns a double barrier of so many members at path, 1 to 1000 (less if the path
// is longer than some 790 bytes, since one transaction begins a round). It sends no request; the
// first Enter creates the nodes. If an argument is invalid, every call returns an error that says
// so.
func NewDoubleBarrier(client *framework.Client, path string, members int, opts ...Option) *DoubleBarrier {
	b := &DoubleBarrier{stored: storedBarrier{client: client, path: path, size: members}}
	if b.err = recipe.CheckClientAndPath(client, path, "a barrier"); b.err != nil {
		return b
	}
	var o options
	if o, b.err = recipe.ApplyOptions(options{}, opts); b.err == nil {
		b.err = checkSize(members, b.maxSize())
	}
	b.curator, b.tel = o.curator, newTelemetry(client)
	b.stored.round = znode.Join(path, "round")
	return b
}

// maxSize is how many members the barrier may have: one transaction must be able to check all their
// nodes.
func (b *DoubleBarrier) maxSize() int {
	return min(maxMembers, transactionBytes/(nodeBytes+len(b.stored.path)+len(b.stored.client.Config().Root)))
}

// Path is the barrier's path.
func (b *DoubleBarrier) Path() string { return b.stored.path }

// Validate returns what is wrong with the arguments of NewDoubleBarrier, as every call does, or
// nil. It sends no request.
func (b *DoubleBarrier) Validate() error { return b.err }

// Members is the number of members that enter together.
func (b *DoubleBarrier) Members() int { return b.stored.size }

// Enter waits until all members wait, and enters together with the others.
//
// When ctx ends the wait, no node is left and the error is that of ctx. But if the servers answer
// that the round has begun already, Enter returns the round, as it does in the other members. If
// they do not answer within a second, the error wraps framework.ErrSuspended too, and the member's
// node is deleted in the background.
//
// After a lost session the member waits again. If its round may have begun before the loss was
// known, the error wraps framework.ErrSessionLost: for the other members it has died inside. Other
// errors wrap ErrTooMany, framework.ErrMismatch, framework.ErrForeign, framework.ErrNoNode if the
// barrier was deleted, framework.ErrClosed or framework.ErrNoAuth.
func (b *DoubleBarrier) Enter(ctx context.Context) (r *Round, err error) {
	if b.err != nil {
		return nil, failure.Wrap("enter", b.stored.path, b.err)
	}
	ctx, end := b.tel.startWaitSpan(ctx, "barrier.enter", b.stored.path)
	defer func() { end(err) }()
	if ctx.Err() != nil {
		return nil, failure.Wrap("enter", b.stored.path, failure.Ended(ctx))
	}
	extended, cancel := withExtraTime(ctx)
	defer cancel()
	if b.curator {
		r, err = b.stored.enterCurator(ctx, extended)
	} else {
		r, err = b.enterOnSessions(ctx, extended)
	}
	if err != nil {
		return nil, failure.Wrap("enter", b.stored.path, err)
	}
	b.tel.countRound()
	r.path, r.tel = b.stored.path, b.tel
	return r, nil
}

// enterOnSessions enters on session after session.
func (b *DoubleBarrier) enterOnSessions(ctx, extended context.Context) (r *Round, err error) {
	m := &roundMember{b: &b.stored}
	var failed, inside error // of the last attempt; inside is final, although it wraps framework.ErrSessionLost
	err = recipe.OnSession(ctx, b.stored.client, func(s *framework.Session) error {
		r, failed = m.enterOnSession(ctx, extended, s)
		if errors.Is(failed, errMayBeInside) && ctx.Err() == nil {
			inside = failed
			return nil
		}
		return failed
	}, func(err error) bool {
		if errors.Is(err, errMismatch) && m.node.Path == "" && m.data != nil { // the cached state was old
			b.stored.dropCachedState()
			m.data = nil
			return true
		}
		return errors.Is(err, framework.ErrNodeGone)
	})
	switch {
	case inside != nil:
		return nil, inside
	case err != nil && (ctx.Err() != nil || !errors.Is(err, failed)): // failed knows whether the round has begun
		return nil, m.addMayHaveBegun(err)
	}
	return r, err
}

// withExtraTime returns a context that ends extraTime after ctx, so that a round that has begun
// can be found.
func withExtraTime(ctx context.Context) (context.Context, context.CancelFunc) {
	extended, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(extraTime, func() { cancel(failure.Ended(ctx)) })
	})
	return extended, func() { stop(); cancel(nil) }
}
