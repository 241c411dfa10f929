package interop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
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

// TestKazoosOwnNamesAreRefused: kazoo can be told to wait for ours. Whether it was cannot be seen from here, so a
// directory with its names is refused unless we are told so.
func TestKazoosOwnNamesAreRefused(t *testing.T) {
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

// TestKazoosOwnNamesTakePart: kazoo waits for ours, and ours, when told to, for kazoo's.
func TestKazoosOwnNamesTakePart(t *testing.T) {
	for _, r := range []role{
		told("mutex", func(c *framework.Client, path string) locks.Locker { return locks.NewMutex(c, path, locks.WithKazoo()) }, "lock", "lock-"),
		told("writer", func(c *framework.Client, path string) locks.Locker {
			return locks.NewRWLock(c, path, locks.WithKazoo())
		},
			"write", "__WRIT__", "__READ__"),
	} {
		for _, p := range []mix{{weTeam, kazooTeam}, {kazooTeam, weTeam}} {
			for _, duel := range duels {
				if duel.lists {
					continue
				}
				t.Run(r.name+"/"+p.String()+"/"+duel.name, func(t *testing.T) {
					t.Parallel()
					duel.run(newDuel(t, r, p[0], p[1]))
				})
			}
		}
		t.Run(r.name+"/order", func(t *testing.T) {
			t.Parallel()
			testOrder(newScene(t, r), r, mix{weTeam, kazooTeam})
		})
	}
}

// told is a role of ours that takes kazoo's names for contenders, and of kazoo's that knows ours.
func told(name string, ours func(*framework.Client, string) locks.Locker, kind string, patterns ...string) role {
	return role{name: name, ours: ours, kazoo: Command{Spec: Spec{Kind: kind, Patterns: patterns}}}
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
