package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// listInside lists the members of the present round that are still inside.
func (b *storedBarrier) listInside(ctx context.Context, s *framework.Session,
	state barrierState) ([]int32, framework.Stat, error) {
	there, listed, err := b.listMembers(ctx, s, state.in)
	rest := slices.DeleteFunc(there, func(n int32) bool { return !slices.Contains(state.numbers, n) })
	slices.Sort(rest) // so that all waiters watch the same member
	return rest, listed, err
}

// roundChange is what waitForRoundChange waits for: a change of the phase, the end of a member's
// node, or the end of the timeout unless that is negative.
type roundChange struct {
	phase   *framework.Watch
	member  string
	timeout time.Duration
}

// waitForRoundChange returns recipe.ErrAgain after a change or the timeout, and another error when
// one of the two contexts ends.
func (b *storedBarrier) waitForRoundChange(ctx, exists context.Context, s *framework.Session, a roundChange) error {
	_, stat, gone, err := s.WatchData(ctx, a.member)
	if errors.Is(err, framework.ErrNoNode) {
		return recipe.ErrAgain
	}
	if err != nil {
		return err
	}
	defer gone.Stop()
	if stat.EphemeralOwner == 0 { // it does not go with any session, so the wait for its end may never end
		return fmt.Errorf("%w: %s is persistent, so it is no member's node: delete it", errForeign, a.member)
	}
	var late <-chan time.Time
	if a.timeout >= 0 {
		t := time.NewTimer(a.timeout)
		defer t.Stop()
		late = t.C
	}
	if _, _, err := recipe.WaitForFirst(ctx, exists,
		recipe.Sources{Watch: a.phase, SecondWatch: gone, Timer: late}); err != nil {
		return err
	}
	return recipe.ErrAgain
}

// endRound ends a round in which no member is left. It returns recipe.ErrAgain when the round has
// ended, or may have ended. A barrier that was deleted and created again may have a round of the
// same phase, but not the same directory.
func (b *storedBarrier) endRound(ctx context.Context, s *framework.Session, state barrierState) error {
	_, err := s.Multi(ctx, framework.SetOp(b.path, state.recordData, state.phase),
		framework.CheckOp(state.in, framework.AnyVersion))
	var refused *framework.TxError
	switch {
	case err == nil:
		b.cacheState(state.afterEnd())
		return recipe.ErrAgain
	case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended),
		errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, framework.ErrNoNode):
		return recipe.ErrAgain
	}
	return err
}
