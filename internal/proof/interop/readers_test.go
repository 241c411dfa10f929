package interop

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// TestReadersShareWithPeers lets two libraries share a read-write lock. Each library is first once.
func TestReadersShareWithPeers(t *testing.T) {
	for _, p := range pairs {
		for name, run := range map[string]func(*testPath, library, library){
			"readers hold together, a writer waits for all": testReadersHoldTogether,
			"a reader waits for the writer before it":       testReadersWaitForAWriter,
			"a reader does not overtake a waiting writer":   testReadersDoNotOvertake,
		} {
			t.Run(p.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				run(newTestPath(t, reader), p[0], p[1])
			})
		}
	}
}

func testReadersHoldTogether(s *testPath, first, second library) {
	one, two := first.newContender(s.t, reader, s.path), second.newContender(s.t, reader, s.path)
	s.mustLock(one)
	s.mustLock(two)
	last := first.newContender(s.t, writer, s.path)
	s.mustNotLock(last, shortWait)
	third := s.startWaiter(last, forever)
	s.awaitContenders(3)
	s.release(one)
	s.awaitContenders(2)
	s.requireStillWaiting(third)
	s.release(two)
	require.True(s.t, s.awaitGrant(third))
	s.release(last)
	s.awaitNoNodes()
}

func testReadersWaitForAWriter(s *testPath, first, second library) {
	one, two := first.newContender(s.t, writer, s.path), second.newContender(s.t, reader, s.path)
	s.mustLock(one)
	s.mustNotLock(two, 0)
	s.mustNotLock(two, shortWait)
	outcome := s.startWaiter(two, forever)
	s.awaitContenders(2)
	s.requireStillWaiting(outcome)
	s.release(one)
	require.True(s.t, s.awaitGrant(outcome))
	s.release(two)
	s.awaitNoNodes()
}

func testReadersDoNotOvertake(s *testPath, first, second library) {
	one, two, three := first.newContender(s.t, reader, s.path), second.newContender(s.t, writer, s.path),
		first.newContender(s.t, reader, s.path)
	s.mustLock(one)
	outcomeTwo := s.startWaiter(two, forever)
	s.awaitContenders(2)
	outcomeThree := s.startWaiter(three, forever)
	s.awaitContenders(3)
	s.requireStillWaiting(outcomeTwo)
	s.requireStillWaiting(outcomeThree)
	s.release(one)
	require.True(s.t, s.awaitGrant(outcomeTwo))
	s.requireStillWaiting(outcomeThree)
	s.release(two)
	require.True(s.t, s.awaitGrant(outcomeThree))
	s.release(three)
	s.awaitNoNodes()
}

// TestReadWriteCountersWithPeers lets writers change two numbers equally, and readers compare them.
// Before 2.9, kazoo's readers also wait for later writers, which wait for them, so kazoo only
// writes here.
func TestReadWriteCountersWithPeers(t *testing.T) {
	s := newTestPath(t, writer)
	nodes := s.numbers(2)
	add, compare := work{section: Add, nodes: nodes, rounds: rounds},
		work{section: Compare, nodes: nodes, rounds: rounds}
	var all concurrentWorkers
	for _, team := range libraries {
		all.add(s, team, writer, add)
	}
	all.add(s, lockstepLibrary, reader, compare)
	all.add(s, curatorLibrary, reader, compare)
	require.NoError(t, all.work(s))
	s.awaitNoNodes()
}

// TestLockstepWriterDowngradesBesidePeers checks that a peer's writer that waits behind a Lockstep
// writer also waits for the read lease to which that writer downgrades.
func TestLockstepWriterDowngradesBesidePeers(t *testing.T) {
	for _, theirs := range []library{curatorLibrary, kazooLibrary} {
		t.Run("before a writer of "+theirs.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, writer)
			two := theirs.newContender(t, writer, s.path)
			write, l := s.write()
			outcome := s.startWaiter(two, forever)
			s.awaitContenders(2)
			read, err := l.RLock(write.Context())
			require.NoError(t, err)
			s.awaitContenders(3)
			require.NoError(t, write.Release(s.ctx))
			s.awaitContenders(2)
			s.mustNotLock(theirs.newContender(t, writer, s.path), shortWait)
			s.requireStillWaiting(outcome)
			require.NoError(t, read.Release(s.ctx))
			require.True(t, s.awaitGrant(outcome))
			s.release(two)
			s.awaitNoNodes()
		})
		t.Run("before a reader of "+theirs.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, writer)
			two := theirs.newContender(t, reader, s.path)
			write, l := s.write()
			outcome := s.startWaiter(two, forever)
			s.awaitContenders(2)
			read, err := l.RLock(write.Context())
			require.NoError(t, err)
			s.awaitContenders(3)
			s.requireStillWaiting(outcome)
			require.NoError(t, write.Release(s.ctx))
			require.True(t, s.awaitGrant(outcome))
			require.NoError(t, read.Err())
			require.NoError(t, read.Release(s.ctx))
			s.release(two)
			s.awaitNoNodes()
		})
	}
}

// write acquires a Lockstep read-write lock for writing.
func (s *testPath) write() (*locks.Lease, *locks.RWLock) {
	s.t.Helper()
	c, _ := connect(s.t)
	l := locks.NewRWLock(c, s.path)
	lease, err := l.Lock(s.ctx)
	require.NoError(s.t, err)
	return lease, l
}

// TestCuratorWriterDowngradesBesideLockstep checks the downgrade of Curator before 5.5, which gives
// the reader a number at the end of the line. A waiting writer is granted before it (CURATOR-621).
func TestCuratorWriterDowngradesBesideLockstep(t *testing.T) {
	s := newTestPath(t, writer)
	write := newPeerContender(t, curator.get(t), writer.curator, writer.paths(s.path))
	read := write.part("read")
	s.mustLock(write)
	s.mustLock(read)
	two, three := lockstepLibrary.newContender(t, writer, s.path), lockstepLibrary.newContender(t, reader, s.path)
	outcomeTwo := s.startWaiter(two, forever)
	s.awaitContenders(3)
	s.release(write)
	s.awaitContenders(2)
	s.mustNotLock(lockstepLibrary.newContender(t, writer, s.path), shortWait)
	s.requireStillWaiting(outcomeTwo)
	s.release(read)
	require.True(t, s.awaitGrant(outcomeTwo))
	outcomeThree := s.startWaiter(three, forever)
	s.awaitContenders(2)
	s.release(two)
	require.True(t, s.awaitGrant(outcomeThree))
	s.release(three)
	s.awaitNoNodes()
}

// TestCurator55WriterBecomesReader checks the downgrade of Curator since 5.5, which gives the
// reader the number of the writer, while a Lockstep writer waits. The test creates the reader's
// node itself, because Debian has Curator 5.4.
func TestCurator55WriterBecomesReader(t *testing.T) {
	s := newTestPath(t, writer)
	one := curatorLibrary.newContender(t, writer, s.path)
	s.mustLock(one)
	number := s.awaitContenders(1)[0].seq
	two := lockstepLibrary.newContender(t, writer, s.path)
	outcome := s.startWaiter(two, forever)
	s.awaitContenders(2)
	read := znode.Join(s.path, "_c_"+uuid.NewString()+"-__READ__"+number)
	require.NoError(t, s.client.Create(s.ctx, read, nil, framework.Ephemeral))
	s.awaitContenders(3)
	s.release(one)
	s.awaitContenders(2)
	s.mustNotLock(lockstepLibrary.newContender(t, writer, s.path), shortWait)
	s.requireStillWaiting(outcome)
	require.NoError(t, s.client.Delete(s.ctx, read, framework.AnyVersion))
	require.True(t, s.awaitGrant(outcome))
	s.release(two)
	s.awaitNoNodes()
}
