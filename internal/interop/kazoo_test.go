package interop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// kazoosOwn are kazoo's locks with kazoo's own names, told of ours by extra_lock_patterns.
var kazoosOwn = []struct {
	role
	ours role
}{
	{role{name: "lock", kazoo: Command{Spec: Spec{Kind: "lock", Patterns: []string{"lock-"}}}}, exclusive[0]},
	{role{name: "write lock", kazoo: Command{Spec: Spec{Kind: "write", Patterns: []string{"__WRIT__", "__READ__"}}}}, writer},
	{role{name: "read lock", kazoo: Command{Spec: Spec{Kind: "read", Patterns: []string{"__WRIT__"}}}}, writer},
}

// TestKazoosOwnNames: kazoo can be told to wait for ours. Whether it was cannot be seen from here, so a
// directory with its names is refused.
func TestKazoosOwnNames(t *testing.T) {
	for _, r := range kazoosOwn {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, r.ours)
			we, they := weTeam.enter(t, r.ours, s.path), kazooTeam.enter(t, r.role, s.path)
			s.hold(we)
			s.refused(they, 0)
			told := s.queue(they, forever)
			s.stand(2)
			s.waits(told)
			_, err := weTeam.enter(t, r.ours, s.path).lock(s.ctx, forever)
			require.ErrorIs(t, err, locks.ErrKindMixed, "kazoo waits")
			s.release(we)
			require.True(t, s.told(told))
			_, err = we.lock(s.ctx, forever)
			require.ErrorIs(t, err, locks.ErrKindMixed, "kazoo holds")
			_, err = we.lock(s.ctx, 0)
			require.ErrorIs(t, err, locks.ErrKindMixed, "kazoo holds")
			s.stand(1)
			s.release(they)
			s.hold(we)
			s.release(we)
			s.empty()
		})
	}
}

// TestKazoosOwnLocksAreInspected: who holds and who waits is told of kazoo's locks too.
func TestKazoosOwnLocksAreInspected(t *testing.T) {
	writer, reader := kazoosOwn[1].role, kazoosOwn[2].role
	s := newScene(t, reader)
	one, two, last := kazooTeam.enter(t, reader, s.path), kazooTeam.enter(t, reader, s.path), kazooTeam.enter(t, writer, s.path)
	s.hold(one)
	s.hold(two)
	third := s.queue(last, forever)
	line := paths(s.stand(3))
	require.Equal(t, locks.KazooLock, s.inspected(line[:2], line[2:]).Kind)
	s.release(one)
	s.release(two)
	require.True(t, s.told(third))
	s.inspected(line[2:], nil)
	s.release(last)
}
