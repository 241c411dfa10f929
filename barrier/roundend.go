package barrier

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// listInside lists the members of the present round that are still inside.
func (b *storedBarrier) listInside(ctx context.Context, s *framework.Session, st barrierState) ([]int32, framework.Stat, error) {
	there, listed, err := b.listMembers(ctx, s)
	rest := slices.DeleteFunc(there, func(n int32) bool { return !slices.Contains(st.numbers, n) })
	slices.Sort(rest) // so that all waiters watch the same member
	return rest, listed, err
}

// roundChange is what waitForRoundChange waits for: a change of the phase, the end of the member with this number, or the end of the timeout unless that is
// negative.
type roundChange struct {
	phase   *framework.Watch
	number  int32
	timeout time.Duration
}

// waitForRoundChange returns recipe.ErrAgain after a change or the timeout, and another error when one of the two contexts ends.
func (b *storedBarrier) waitForRoundChange(ctx, place context.Context, s *framework.Session, a roundChange) error {
	_, _, gone, err := s.WatchData(ctx, b.memberPath(a.number))
	if errors.Is(err, framework.ErrNoNode) {
		return recipe.ErrAgain
	}
	if err != nil {
		return err
	}
	defer gone.Stop()
	var late <-chan time.Time
	if a.timeout >= 0 {
		t := time.NewTimer(a.timeout)
		defer t.Stop()
		late = t.C
	}
	if _, _, err := recipe.WaitForFirst(ctx, place, recipe.Sources{Watch: a.phase, SecondWatch: gone, Timer: late}); err != nil {
		return err
	}
	return recipe.ErrAgain
}

// endRound ends a round in which no member is left. It returns recipe.ErrAgain when the round has ended, or may have ended.
func (b *storedBarrier) endRound(ctx context.Context, s *framework.Session, st barrierState) error {
	_, err := s.Set(ctx, b.path, st.recordData, st.phase)
	if err == nil {
		b.cacheState(st.afterEnd())
	}
	if err == nil || errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrSuspended) {
		return recipe.ErrAgain
	}
	return err
}
