package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// memberName is what members' nodes are called, before their numbers.
const (
	memberName = "m-"
	memberKind = "member"
)

// numberOf reads a member's number, an int32 that may have wrapped.
func numberOf(node string) (int32, bool) {
	_, name := framework.Split(node)
	digits, ok := strings.CutPrefix(name, memberName)
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), ok && err == nil && name == nameOf(int32(n)) // only what a server would write
}

func nameOf(number int32) string { return fmt.Sprintf("%s%010d", memberName, number) }

// place is the node of a number.
func (b *Double) place(number int32) string {
	return framework.Join(b.in, nameOf(number))
}

func (st state) has(number int32) bool { return st.inside() && slices.Contains(st.numbers, number) }

// gather waits for a round that lets this member in, and begins it when all are there.
func (m *member) gather(ctx context.Context) (state, error) {
	if st := m.b.recall(); st.numbering == m.numbering && !st.inside() && m.number-st.base == int32(m.b.size)-1 {
		if begun, err := m.begin(ctx, st, m.justNow(st)); err == nil || !errors.Is(err, errAgain) {
			return begun, err
		}
	}
	for {
		begun, err := m.turn(ctx)
		if !errors.Is(err, errAgain) {
			return begun, err
		}
	}
}

// justNow are the numbers from the first that can be of the next round to this member's own: who is the n-th by
// its number need not list the others, since the transaction finds out whether they are there.
func (m *member) justNow(st state) []int32 {
	numbers := make([]int32, m.b.size)
	for i := range numbers {
		numbers[i] = st.base + int32(i)
	}
	return numbers
}

// turn looks at the barrier, does what is this member's turn to do, and waits for a change.
func (m *member) turn(ctx context.Context) (state, error) {
	seen, w, err := m.b.watch(ctx, m.s)
	if err != nil {
		return state{}, err
	}
	defer w.Stop()
	if m.made != 0 && seen.made != m.made {
		return state{}, fmt.Errorf("%w: %s was deleted, and made anew without this member", framework.ErrNoNode, m.b.path)
	}
	if begun, ok := m.letIn(m.b.recall(), seen); ok {
		return begun, nil
	}
	st, err := m.b.complete(ctx, m.s, seen)
	if err != nil {
		return state{}, err
	}
	if err := m.b.agrees(st); err != nil {
		return state{}, err
	}
	if st.has(m.number) {
		return st, nil
	}
	if err := m.tooMany(ctx, st); err != nil {
		return state{}, err
	}
	switch {
	case st.inside():
		return state{}, m.outside(ctx, st, w)
	case m.number-st.base >= int32(m.b.size)-1:
		begun, err := m.beginWithListed(ctx, st)
		if !errors.Is(err, errFew) {
			return begun, err
		}
	}
	return m.await(ctx, st, w)
}

// letIn tells from the state before whether the round that was seen has let this member in.
func (m *member) letIn(before, seen state) (state, bool) {
	if begun := before.begun(m.b.size); before.letsIn(m.number, m.b.size) && begun.same(seen) {
		m.b.remember(begun)
		return begun, true
	}
	return state{}, false
}

// await waits while members gather. The change of the phase is the beginning of a round.
func (m *member) await(ctx context.Context, st state, w *framework.Watch) (state, error) {
	select {
	case ev := <-w.C():
		if ev.Kind == framework.NodeChanged && !st.vague && st.letsIn(m.number, m.b.size) {
			begun := st.begun(m.b.size)
			m.b.remember(begun)
			return begun, nil
		}
		return state{}, errAgain
	case <-ctx.Done():
		return state{}, framework.Ended(ctx)
	case <-m.hold.Context().Done():
		return state{}, context.Cause(m.hold.Context())
	}
}

// errFew says that not enough members are there.
var errFew = errors.New("not enough members")

// beginWithListed begins a round with the first members that are there.
func (m *member) beginWithListed(ctx context.Context, st state) (state, error) {
	numbers, listed, err := m.b.list(ctx, m.s)
	if err != nil {
		return state{}, err
	}
	m.rivals = rivals{phase: st.phase + 1, left: listed.Version} // if the next round begins without this member
	numbers = slices.DeleteFunc(numbers, func(n int32) bool { return n-st.base < 0 })
	slices.SortFunc(numbers, func(x, y int32) int { return cmp.Compare(x-y, 0) })
	if len(numbers) < m.b.size {
		return state{}, errFew
	}
	return m.begin(ctx, st, numbers[:m.b.size])
}

// list returns the numbers of those who are there.
func (b *Double) list(ctx context.Context, s *framework.Session) ([]int32, framework.Stat, error) {
	names, st, err := s.Children(ctx, b.in)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, st, b.damaged(ctx, s, b.in)
	}
	if err != nil {
		return nil, st, err
	}
	numbers := make([]int32, 0, len(names))
	for _, name := range names {
		if n, ok := numberOf(name); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers, st, nil
}

// begin begins a round with these members, in the order of their numbers, if all of them are there and the
// barrier is in this state.
func (m *member) begin(ctx context.Context, st state, numbers []int32) (state, error) {
	begun := st.begun(m.b.size)
	begun.base, begun.numbers = numbers[len(numbers)-1]+1, numbers
	ops := make([]framework.Op, 0, len(numbers)+2)
	for _, n := range numbers {
		ops = append(ops, framework.CheckOp(m.b.place(n), framework.AnyVersion))
	}
	ops = append(ops, framework.SetOp(m.b.path, st.data, st.phase), framework.SetOp(m.b.round,
		record{Kind: roundKind, Phase: begun.phase, Origin: begun.origin, Base: begun.base, Numbers: numbers}.encode(), framework.AnyVersion))
	_, err := m.s.Multi(ctx, ops...)
	switch {
	case err == nil:
		m.b.remember(begun)
		if begun.has(m.number) {
			return begun, nil
		}
		return state{}, errAgain
	case errors.Is(err, framework.ErrNoNode): // a server that lags behind lists the dead
		if err := m.s.Sync(ctx, m.b.path); err != nil {
			return state{}, err
		}
		return state{}, errAgain
	case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):
		return state{}, errAgain
	}
	return state{}, err
}
