package interop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// kazoosOwn are kazoo's locks with kazoo's own names, which wait for Lockstep's by extra_lock_patterns.
var kazoosOwn = []struct {
	role
	ours role
}{
	{role{name: "lock", kazoo: Command{Spec: Spec{Kind: "lock", Patterns: []string{"lock-"}}}}, exclusive[0]},
	{role{name: "write lock", kazoo: Command{Spec: Spec{Kind: "write", Patterns: []string{"__WRIT__", "__READ__"}}}}, writer},
	{role{name: "read lock", kazoo: Command{Spec: Spec{Kind: "read", Patterns: []string{"__WRIT__"}}}}, writer},
}

// TestKazoosOwnNamesAreRefused: kazoo can be configured to wait for Lockstep's nodes. Lockstep cannot see whether it was, so it
// refuses a directory with kazoo's names unless an option allows it.
func TestKazoosOwnNamesAreRefused(t *testing.T) {
	for _, r := range kazoosOwn {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, r.ours)
			we, they := weTeam.enter(t, r.ours, s.path), kazooTeam.enter(t, r.role, s.path)
			s.mustLock(we)
			s.mustNotLock(they, 0)
			told := s.startWaiter(they, forever)
			s.awaitContenders(2)
			s.requireStillWaiting(told)
			_, err := weTeam.enter(t, r.ours, s.path).lock(s.ctx, forever)
			require.ErrorIs(t, err, locks.ErrKindMixed, "kazoo waits")
			s.release(we)
			require.True(t, s.awaitGrant(told))
			_, err = we.lock(s.ctx, forever)
			require.ErrorIs(t, err, locks.ErrKindMixed, "kazoo holds")
			_, err = we.lock(s.ctx, 0)
			require.ErrorIs(t, err, locks.ErrKindMixed, "kazoo holds")
			s.awaitContenders(1)
			s.release(they)
			s.mustLock(we)
			s.release(we)
			s.awaitNoNodes()
		})
	}
}

// TestKazooNamesShareALine: kazoo waits for Lockstep's nodes, and Lockstep, with its option, for kazoo's.
func TestKazooNamesShareALine(t *testing.T) {
	for _, r := range []role{
		kazooNamesRole("mutex", func(c *framework.Client, path string) locks.Locker { return locks.NewMutex(c, path, locks.WithKazoo()) }, "lock", "lock-"),
		kazooNamesRole("writer", func(c *framework.Client, path string) locks.Locker {
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
					duel.run(newTwoContenders(t, r, p[0], p[1]))
				})
			}
		}
		t.Run(r.name+"/order", func(t *testing.T) {
			t.Parallel()
			testGrantOrder(newTestPath(t, r), r, mix{weTeam, kazooTeam})
		})
	}
}

// kazooNamesRole is a role in which each library knows the other's names.
func kazooNamesRole(name string, ours func(*framework.Client, string) locks.Locker, kind string, patterns ...string) role {
	return role{name: name, ours: ours, kazoo: Command{Spec: Spec{Kind: kind, Patterns: patterns}}}
}

// TestInspectKazooLocks: Inspect lists holders and waiters of kazoo's locks, too.
func TestInspectKazooLocks(t *testing.T) {
	writer, reader := kazoosOwn[1].role, kazoosOwn[2].role
	s := newTestPath(t, reader)
	one, two, last := kazooTeam.enter(t, reader, s.path), kazooTeam.enter(t, reader, s.path), kazooTeam.enter(t, writer, s.path)
	s.mustLock(one)
	s.mustLock(two)
	third := s.startWaiter(last, forever)
	line := paths(s.awaitContenders(3))
	require.Equal(t, locks.KazooLock, s.inspect(line[:2], line[2:]).Kind)
	s.release(one)
	s.release(two)
	require.True(t, s.awaitGrant(third))
	s.inspect(line[2:], nil)
	s.release(last)
}
