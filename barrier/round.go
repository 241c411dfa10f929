package barrier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Round is one round of a double barrier, as one member that is inside sees it.
//
// Guarantee: Context is done before the servers can let the others leave without this member, as long
// as this process is scheduled (see package framework).
type Round struct {
	hold  *framework.Hold
	node  string
	phase int32
	way   wayOut

	mu   sync.Mutex
	left bool
}

// wayOut is how a member of a layout leaves.
type wayOut interface {
	// leave takes the member's node away, or has it taken away in the background if that fails.
	leave(ctx context.Context) error
	// over waits until no member is left.
	over(ctx context.Context) error
	barrier() *Double
}

// Context is done when the member has left, or is taken for dead; its cause wraps ErrLeft,
// framework.ErrSessionLost, framework.ErrNodeGone or framework.ErrClosed. It carries the values of the
// context given to Enter, but not its end.
func (r *Round) Context() context.Context { return r.hold.Context() }

// Err is nil while the member is inside, else why it is not. It reads the clock, so that it is right at
// once in a process that was stopped and continued.
func (r *Round) Err() error { return r.hold.Err() }

// Number counts the barrier's rounds from 1, the same for all members. It is 0 with Curator's layout.
func (r *Round) Number() int64 { return (int64(r.phase) + 1) / 2 }

// Node is the path of the member's own node.
func (r *Round) Node() string { return r.node }

// Guard is an operation for a transaction (Client.Multi) that lets it happen only while the member is inside.
func (r *Round) Guard() framework.Op {
	return framework.CheckOp(r.node, framework.AnyVersion).When(r.Err)
}

// Leave leaves, and waits until all others have left or are dead.
//
// The member has left whatever Leave returns: when ctx ends first, the error is that of ctx, and the
// others do not wait for this member any more. Calling it again waits again. A session that is lost
// while Leave waits changes nothing; if the member was taken for dead before, the error is the cause of the
// end of Context.
func (r *Round) Leave(ctx context.Context) (err error) {
	b := r.way.barrier()
	ctx, end := b.tel.wait(ctx, "barrier.leave", b.path)
	defer func() { end(err) }()
	err = r.depart(ctx)
	if err == nil {
		err = r.way.over(ctx)
	}
	return framework.Wrap("leave", b.path, err)
}

// depart leaves, once.
func (r *Round) depart(ctx context.Context) error {
	again, err := r.end()
	if again || err != nil {
		return err
	}
	err = r.way.leave(ctx)
	if ctx.Err() != nil {
		return framework.Ended(ctx)
	}
	return err
}

// end ends the round's context, and tells whether this was done before.
func (r *Round) end() (again bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left {
		return true, nil
	}
	if err := r.hold.Err(); err != nil {
		return false, err
	}
	r.left = true
	r.hold.End(ErrLeft)
	return false, nil
}

// departure is the way out of a double barrier of the own layout.
type departure struct {
	b    *Double
	s    *framework.Session
	node string
	st   state // of the round
}

func (d *departure) barrier() *Double { return d.b }

// leave takes the node away, and ends the round if nobody else is there. The same transaction counts those
// who have left alive, and tells how many are left.
func (d *departure) leave(ctx context.Context) error {
	for {
		rs, err := d.s.Multi(ctx, framework.DeleteOp(d.node, framework.AnyVersion), framework.SetOp(d.b.in, nil, framework.AnyVersion))
		switch {
		case err == nil && rs[1].Stat.NumChildren == 0:
			err := d.b.finish(ctx, d.s, d.st)
			if errors.Is(err, errAgain) || errors.Is(err, framework.ErrSessionLost) {
				return nil
			}
			return err
		case err == nil, errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrSessionLost):
			return nil // gone
		case errors.Is(err, framework.ErrSuspended):
		default:
			d.s.Discard(d.node)
			return err
		}
	}
}

// over waits for the end of the round, on session after session.
func (d *departure) over(ctx context.Context) error {
	if d.b.ended(d.st) {
		return nil
	}
	for {
		s, err := d.b.client.Session(ctx)
		if err != nil {
			return err
		}
		err = d.await(ctx, s)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return framework.Ended(ctx)
		case !errors.Is(err, errAgain) && !errors.Is(err, framework.ErrSessionLost):
			return err
		}
	}
}

// ended tells whether a member of this Double has seen the end of a round.
func (b *Double) ended(st state) bool {
	known := b.recall()
	return known.made == st.made && known.phase-st.phase > 0
}

// grace is how long a member that has left waits for the last of the others to end the round, before it
// looks whether any of them is dead.
const grace = 50 * time.Millisecond

// await waits for the end of the round on one session.
func (d *departure) await(ctx context.Context, s *framework.Session) error {
	seen, w, err := d.b.watch(ctx, s)
	if err != nil {
		return err
	}
	defer w.Stop()
	if over := d.st.over(); over.same(seen) {
		d.b.remember(over)
		return nil
	}
	if seen.made != d.st.made || seen.phase-d.st.phase > 0 {
		return nil
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case ev := <-w.C():
		if ev.Kind != framework.NodeChanged || seen.vague || seen.phase != d.st.phase { // it may tell of a former change
			return errAgain
		}
		d.b.remember(d.st.over())
		return nil
	case <-t.C:
		return d.settle(ctx, s, w, seen)
	case <-ctx.Done():
		return framework.Ended(ctx)
	case <-s.Done():
		return context.Cause(s.Context())
	}
}

// settle ends the round if nobody is left: some may have died. Else it waits for one of them.
func (d *departure) settle(ctx context.Context, s *framework.Session, w *framework.Watch, seen state) error {
	st, err := d.b.complete(ctx, s, seen)
	if err != nil {
		return err
	}
	if st.phase != d.st.phase {
		return errAgain
	}
	rest, _, err := d.b.remaining(ctx, s, st)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		return d.b.finish(ctx, s, st)
	}
	return d.b.awaitOne(ctx, s.Context(), s, awaited{w, rest[0], -1})
}
