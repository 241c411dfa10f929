package interop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// kazooRoles are kazoo's locks with kazoo's own names. They wait for Lockstep's nodes by
// extra_lock_patterns.
var kazooRoles = []struct {
	role
	ours role
}{
	{role{name: "lock", kazoo: Command{Spec: Spec{Kind: "lock", Patterns: []string{"lock-"}}}}, exclusive[0]},
	{role{name: "write lock", kazoo: Command{Spec: Spec{Kind: "write", Patterns: []string{"__WRIT__", "__READ__"}}}},
		writer},
	{role{name: "read lock", kazoo: Command{Spec: Spec{Kind: "read", Patterns: []string{"__WRIT__"}}}}, writer},
}

// TestKazooNamesAreRefused checks that Lockstep refuses a directory with kazoo's names unless an
// option allows it. kazoo can be configured to wait for Lockstep's nodes, but Lockstep cannot see
// whether it is.
func TestKazooNamesAreRefused(t *testing.T) {
	for _, r := range kazooRoles {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, r.ours)
			we, they := lockstepLibrary.newContender(t, r.ours, s.path), kazooLibrary.newContender(t, r.role, s.path)
			s.mustLock(we)
			s.mustNotLock(they, 0)
			outcome := s.startWaiter(they, forever)
			s.awaitContenders(2)
			s.requireStillWaiting(outcome)
			_, err := lockstepLibrary.newContender(t, r.ours, s.path).lock(s.ctx, forever)
			require.ErrorIs(t, err, framework.ErrForeign, "kazoo waits")
			s.release(we)
			require.True(t, s.awaitGrant(outcome))
			_, err = we.lock(s.ctx, forever)
			require.ErrorIs(t, err, framework.ErrForeign, "kazoo holds")
			_, err = we.lock(s.ctx, 0)
			require.ErrorIs(t, err, framework.ErrForeign, "kazoo holds")
			s.awaitContenders(1)
			s.release(they)
			s.mustLock(we)
			s.release(we)
			s.awaitNoNodes()
		})
	}
}

// TestKazooNamesShareALine checks that kazoo waits for Lockstep's nodes, and Lockstep, with its
// option, for kazoo's.
func TestKazooNamesShareALine(t *testing.T) {
	for _, r := range []role{
		kazooNamesRole("mutex", func(c *framework.Client,
			path string) locks.Locker {
			return locks.NewMutex(c, path, locks.WithKazoo())
		}, "lock", "lock-"),
		kazooNamesRole("writer", func(c *framework.Client, path string) locks.Locker {
			return locks.NewRWLock(c, path, locks.WithKazoo())
		},
			"write", "__WRIT__", "__READ__"),
	} {
		for _, p := range []mix{{lockstepLibrary, kazooLibrary}, {kazooLibrary, lockstepLibrary}} {
			for _, scenario := range scenarios {
				if scenario.lists {
					continue
				}
				t.Run(r.name+"/"+p.String()+"/"+scenario.name, func(t *testing.T) {
					t.Parallel()
					scenario.run(newTwoContenders(t, r, p[0], p[1]))
				})
			}
		}
		t.Run(r.name+"/order", func(t *testing.T) {
			t.Parallel()
			testGrantOrder(newTestPath(t, r), r, mix{lockstepLibrary, kazooLibrary})
		})
	}
}

// kazooNamesRole returns a role in which each library knows the other's names.
func kazooNamesRole(name string, ours func(*framework.Client, string) locks.Locker, kind string,
	patterns ...string) role {
	return role{name: name, ours: ours, kazoo: Command{Spec: Spec{Kind: kind, Patterns: patterns}}}
}

// TestInspectKazooLocks checks that Inspect also lists holders and waiters of kazoo's locks.
func TestInspectKazooLocks(t *testing.T) {
	writer, reader := kazooRoles[1].role, kazooRoles[2].role
	s := newTestPath(t, reader)
	one, two, last := kazooLibrary.newContender(t, reader, s.path), kazooLibrary.newContender(t, reader, s.path),
		kazooLibrary.newContender(t, writer, s.path)
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
