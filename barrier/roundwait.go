package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// roundWait is a member's wait for its round, on one session.
type roundWait struct {
	b      *storedBarrier
	s      *framework.Session
	node   memberNode
	exists context.Context // done when the member's node is gone
	// the full round without this member that is inside, or the next round in case it begins
	// without this member
	missed missedRound
}

// waitForRound waits for a round with this member. It begins the round itself if it finds enough
// members.
func (m *roundWait) waitForRound(ctx context.Context) (barrierState, error) {
	if state := m.b.cachedState(); state.memberDirectory == m.node.memberDirectory && !state.roundIsInside() &&
		m.node.number-state.base == int32(m.b.size)-1 {
		begun, err := m.beginRound(ctx, state, m.expectedNumbers(state))
		if err == nil || !errors.Is(err, recipe.ErrAgain) {
			return begun, err
		}
	}
	for {
		begun, err := m.waitOneStep(ctx)
		if !errors.Is(err, recipe.ErrAgain) {
			return begun, err
		}
	}
}

// expectedNumbers are the numbers from the lowest of the next round to this member's own, if no
// number is missing. So the last of n members need not list the others: the transaction checks that
// they exist.
func (m *roundWait) expectedNumbers(state barrierState) []int32 {
	numbers := make([]int32, m.b.size)
	for i := range numbers {
		numbers[i] = state.base + int32(i)
	}
	return numbers
}

// waitOneStep reads the barrier, does this member's part, and waits for a change.
func (m *roundWait) waitOneStep(ctx context.Context) (barrierState, error) {
	seen, w, err := m.b.watchBarrier(ctx, m.s)
	if err != nil {
		return barrierState{}, err
	}
	defer w.Stop()
	if seen.czxid != m.node.czxid {
		return barrierState{}, fmt.Errorf("%w: %s was deleted and created again without this member",
			framework.ErrNoNode, m.b.path)
	}
	if begun, ok := m.admittedBy(m.b.cachedState(), seen); ok {
		return begun, nil
	}
	state, err := m.b.fillFromCache(ctx, m.s, seen)
	if err != nil {
		return barrierState{}, err
	}
	if err := m.b.checkSizeOf(state); err != nil {
		return barrierState{}, err
	}
	if state.isInsideAs(m.node.memberDirectory, m.node.number) {
		return state, nil
	}
	if err := m.checkPassedRound(ctx, state); err != nil {
		return barrierState{}, err
	}
	switch {
	case state.roundIsInside():
		return barrierState{}, m.waitForRoundInside(ctx, state, w)
	case m.node.number-state.base >= int32(m.b.size)-1:
		begun, err := m.beginRoundWithListed(ctx, state)
		if !errors.Is(err, errTooFewMembers) {
			return begun, err
		}
	}
	return m.waitWhileGathering(ctx, state, w)
}

// admittedBy reports whether the round that was seen has let this member in. It needs only the
// state before.
func (m *roundWait) admittedBy(before, seen barrierState) (barrierState, bool) {
	if begun := before.afterBegin(m.b.size); before.admitsNumber(m.node.number, m.b.size) && begun.equals(seen) {
		m.b.cacheState(begun)
		return begun, true
	}
	return barrierState{}, false
}

// waitWhileGathering waits while members gather. When the phase changes, a round has begun.
func (m *roundWait) waitWhileGathering(ctx context.Context, state barrierState,
	w *framework.Watch) (barrierState, error) {
	_, event, err := recipe.WaitForFirst(ctx, m.exists, recipe.Sources{Watch: w})
	switch {
	case err != nil:
		return barrierState{}, err
	case event.Kind == framework.NodeChanged && !state.staleWatch && state.admitsNumber(m.node.number, m.b.size):
		begun := state.afterBegin(m.b.size)
		m.b.cacheState(begun)
		return begun, nil
	}
	return barrierState{}, recipe.ErrAgain
}

// errTooFewMembers is returned when too few members are listed.
var errTooFewMembers = errors.New("not enough members")

// beginRoundWithListed begins a round with the first members that are listed.
func (m *roundWait) beginRoundWithListed(ctx context.Context, state barrierState) (barrierState, error) {
	numbers, listed, err := m.b.listMembers(ctx, m.s, state.in)
	if err != nil {
		return barrierState{}, err
	}
	// if the next round begins without this member
	m.missed = missedRound{phase: state.phase + 1, leftBefore: listed.Version}
	numbers = slices.DeleteFunc(numbers, func(n int32) bool { return n-state.base < 0 })
	slices.SortFunc(numbers, func(x, y int32) int { return cmp.Compare(x-y, 0) })
	if len(numbers) < m.b.size {
		return barrierState{}, errTooFewMembers
	}
	return m.beginRound(ctx, state, numbers[:m.b.size])
}

// beginRound begins a round with these members, in the order of their numbers, if all of them exist
// and the barrier is in this state.
func (m *roundWait) beginRound(ctx context.Context, state barrierState, numbers []int32) (barrierState, error) {
	begun := state.afterBegin(m.b.size)
	begun.base, begun.numbers = numbers[len(numbers)-1]+1, numbers
	ops := make([]framework.Op, 0, len(numbers)+2)
	for _, n := range numbers {
		ops = append(ops, framework.CheckOp(state.memberPath(n), framework.AnyVersion))
	}
	ops = append(ops, framework.SetOp(m.b.path, state.recordData, state.phase), framework.SetOp(m.b.round,
		nodeRecord{Kind: roundKind, Phase: begun.phase, Base: begun.base, Numbers: numbers}.encode(),
		framework.AnyVersion))
	_, err := m.s.Multi(ctx, ops...)
	var refused *framework.TxError
	switch {
	case err == nil:
		m.b.cacheState(begun)
		if begun.isInsideAs(m.node.memberDirectory, m.node.number) {
			return begun, nil
		}
		return barrierState{}, recipe.ErrAgain
	case errors.Is(err, framework.ErrNoNode): // a server that lags behind has listed dead members
		if err := m.s.Sync(ctx, m.b.path); err != nil {
			return barrierState{}, err
		}
		if errors.As(err, &refused) && refused.Index == len(ops)-1 {
			m.b.dropCachedState()
			return barrierState{}, m.b.partIsMissing(ctx, m.s, m.b.round)
		}
		return barrierState{}, recipe.ErrAgain
	case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):
		return barrierState{}, recipe.ErrAgain
	}
	return barrierState{}, err
}

// missedRound is a full round without this member, while this member was waiting. If all members of
// the round leave alive, this member is one too many. If one of them has died, this member may be
// that one after a restart.
type missedRound struct {
	phase      int32     // of their round; 0 if none is known
	leftBefore int32     // the number of members that had left the barrier alive before any of this round
	since      time.Time // when this member first saw all of them inside
}

// checkPassedRound returns ErrTooMany if a full round has passed without this member. It returns
// nil if this member was not waiting all the time, or if another round has begun.
func (m *roundWait) checkPassedRound(ctx context.Context, state barrierState) error {
	if m.missed.phase == 0 || state.phase-m.missed.phase <= 0 {
		return nil
	}
	next := state.phase == m.missed.phase+1
	m.missed.phase = 0
	if !next {
		return nil
	}
	in, err := m.s.Exists(ctx, state.in)
	if err == nil && int(in.Version-m.missed.leftBefore) >= m.b.size {
		err = m.tooManyError()
	}
	return err
}

func (m *roundWait) tooManyError() error {
	return fmt.Errorf("%w: a round of %d members has taken place without this member", ErrTooMany, m.b.size)
}

// waitForRoundInside waits while a round without this member is inside. The member has come early
// for the next round, one of the members inside is dead, or this member is one too many.
func (m *roundWait) waitForRoundInside(ctx context.Context, state barrierState, w *framework.Watch) error {
	rest, listed, err := m.b.listInside(ctx, m.s, state)
	switch {
	case err != nil:
		return err
	case len(rest) == 0: // the round's last member has not ended it yet, or is dead
		return m.b.endRound(ctx, m.s, state)
	}
	timeout := time.Duration(-1)
	if len(rest) == m.b.size {
		if m.missed.phase != state.phase {
			m.missed = missedRound{phase: state.phase, leftBefore: listed.Version}
		}
		if m.missed.since.IsZero() {
			m.missed.since = time.Now()
		}
		if timeout = m.s.Timeout()*3/2 - time.Since(m.missed.since); timeout <= 0 {
			// the nodes of the dead are gone by then
			return fmt.Errorf("%w: all %d members are inside", ErrTooMany, m.b.size)
		}
	}
	return m.b.waitForRoundChange(ctx, m.exists, m.s, roundChange{w, state.memberPath(rest[0]), timeout})
}
