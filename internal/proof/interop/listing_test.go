package interop

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// awaitListed waits until a contender's library lists these participants, in any order. The
// library's server may lag behind.
func (s *testPath) awaitListed(c contender, want []string) {
	s.t.Helper()
	want = slices.Sorted(slices.Values(want))
	s.eventually(fmt.Sprintf("%T's list: %v", c, want), func() bool {
		listed, err := c.participants(s.ctx)
		require.NoError(s.t, err)
		slices.Sort(listed)
		return slices.Equal(want, listed)
	})
}

// TestListingOfReadersAndWriters checks that Curator lists readers and writers separately, and
// Lockstep lists all of both libraries.
func TestListingOfReadersAndWriters(t *testing.T) {
	s := newTestPath(t, writer)
	readers := []contender{lockstepLibrary.newContender(t, reader, s.path),
		curatorLibrary.newContender(t, reader, s.path)}
	writers := []contender{curatorLibrary.newContender(t, writer, s.path),
		lockstepLibrary.newContender(t, writer, s.path)}
	for _, r := range readers {
		s.mustLock(r)
	}
	var outcomes []<-chan grant
	for i, w := range writers {
		outcomes = append(outcomes, s.startWaiter(w, forever))
		s.awaitContenders(len(readers) + i + 1)
	}
	line := paths(s.awaitContenders(4))
	s.awaitListed(readers[1], line[:2])
	s.awaitListed(writers[0], line[2:])
	s.awaitListed(writers[1], line)
	report := s.inspect(line[:2], line[2:])
	require.Equal(t, locks.ReadWriteLock, report.Kind)
	for i, e := range append(report.Holders, report.Waiters...) {
		require.Equal(t, []string{"read", "read", "write", "write"}[i], e.Mode)
		require.Equal(t, i == 1 || i == 2, e.Foreign, "Curator's")
	}
	for _, r := range readers {
		s.release(r)
	}
	for i, w := range writers {
		require.True(t, s.awaitGrant(outcomes[i]))
		s.release(w)
	}
	s.awaitNoNodes()
}

// TestListingOfPermitHolders checks that Curator lists each permit, and Lockstep each holder with
// its number of permits.
func TestListingOfPermitHolders(t *testing.T) {
	s := newTestPath(t, semaphore(3, 1))
	two, one := lockstepLibrary.newContender(t, semaphore(3, 2), s.path),
		curatorLibrary.newContender(t, semaphore(3, 1), s.path)
	s.mustLock(two)
	s.mustLock(one)
	s.sync()
	leases, _, err := s.client.Children(s.ctx, znode.Join(s.path, "leases"))
	require.NoError(t, err)
	require.Len(t, leases, 3)
	s.awaitListed(one, leases) // without their paths, as Curator lists permits
	ours := two.(*lockstepContender).lease.Node()
	report, err := locks.Inspect(s.ctx, s.client, s.path)
	require.NoError(t, err)
	require.Equal(t, locks.SemaphoreLock, report.Kind)
	require.Len(t, report.Holders, 2)
	require.Equal(t, ours, report.Holders[0].Node)
	require.Equal(t, 2, report.Holders[0].Permits)
	require.Equal(t, 1, report.Holders[1].Permits)
	require.True(t, report.Holders[1].Foreign)
	s.release(two)
	s.release(one)
	s.awaitNoNodes()
}
