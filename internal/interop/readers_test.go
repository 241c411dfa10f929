package interop

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// TestReadersShareWithPeers lets two libraries share a read-write lock, either first.
func TestReadersShareWithPeers(t *testing.T) {
	for _, p := range pairs {
		for name, run := range map[string]func(*testPath, team, team){
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

func testReadersHoldTogether(s *testPath, first, second team) {
	one, two := first.enter(s.t, reader, s.path), second.enter(s.t, reader, s.path)
	s.mustLock(one)
	s.mustLock(two)
	last := first.enter(s.t, writer, s.path)
	s.mustNotLock(last, soon)
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

func testReadersWaitForAWriter(s *testPath, first, second team) {
	one, two := first.enter(s.t, writer, s.path), second.enter(s.t, reader, s.path)
	s.mustLock(one)
	s.mustNotLock(two, 0)
	s.mustNotLock(two, soon)
	told := s.startWaiter(two, forever)
	s.awaitContenders(2)
	s.requireStillWaiting(told)
	s.release(one)
	require.True(s.t, s.awaitGrant(told))
	s.release(two)
	s.awaitNoNodes()
}

func testReadersDoNotOvertake(s *testPath, first, second team) {
	one, two, three := first.enter(s.t, reader, s.path), second.enter(s.t, writer, s.path), first.enter(s.t, reader, s.path)
	s.mustLock(one)
	toldTwo := s.startWaiter(two, forever)
	s.awaitContenders(2)
	toldThree := s.startWaiter(three, forever)
	s.awaitContenders(3)
	s.requireStillWaiting(toldTwo)
	s.requireStillWaiting(toldThree)
	s.release(one)
	require.True(s.t, s.awaitGrant(toldTwo))
	s.requireStillWaiting(toldThree)
	s.release(two)
	require.True(s.t, s.awaitGrant(toldThree))
	s.release(three)
	s.awaitNoNodes()
}

// TestReadWriteCountersWithPeers lets writers keep two numbers equal for readers to compare. kazoo's readers before 2.9 wait for
// later writers too, which wait for them: it only writes here.
func TestReadWriteCountersWithPeers(t *testing.T) {
	s := newTestPath(t, writer)
	nodes := s.numbers(2)
	add, compare := work{section: Add, nodes: nodes, rounds: rounds}, work{section: Compare, nodes: nodes, rounds: rounds}
	var all concurrentWorkers
	for _, team := range teams {
		all.enter(s, team, writer, add)
	}
	all.enter(s, weTeam, reader, compare)
	all.enter(s, curatorTeam, reader, compare)
	require.NoError(t, all.work(s))
	s.awaitNoNodes()
}

// TestLockstepWriterDowngradesBesidePeers: a peer's writer that waits behind a Lockstep writer also waits for the read lease of its
// downgrade.
func TestLockstepWriterDowngradesBesidePeers(t *testing.T) {
	for _, theirs := range []team{curatorTeam, kazooTeam} {
		t.Run("before a writer of "+theirs.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, writer)
			two := theirs.enter(t, writer, s.path)
			write, l := s.write()
			told := s.startWaiter(two, forever)
			s.awaitContenders(2)
			read, err := l.RLock(write.Context())
			require.NoError(t, err)
			s.awaitContenders(3)
			require.NoError(t, write.Release(s.ctx))
			s.awaitContenders(2)
			s.mustNotLock(theirs.enter(t, writer, s.path), soon)
			s.requireStillWaiting(told)
			require.NoError(t, read.Release(s.ctx))
			require.True(t, s.awaitGrant(told))
			s.release(two)
			s.awaitNoNodes()
		})
		t.Run("before a reader of "+theirs.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, writer)
			two := theirs.enter(t, reader, s.path)
			write, l := s.write()
			told := s.startWaiter(two, forever)
			s.awaitContenders(2)
			read, err := l.RLock(write.Context())
			require.NoError(t, err)
			s.awaitContenders(3)
			s.requireStillWaiting(told)
			require.NoError(t, write.Release(s.ctx))
			require.True(t, s.awaitGrant(told))
			require.NoError(t, read.Err())
			require.NoError(t, read.Release(s.ctx))
			s.release(two)
			s.awaitNoNodes()
		})
	}
}

// write holds a Lockstep read-write lock for writing.
func (s *testPath) write() (*locks.Lease, *locks.RWLock) {
	s.t.Helper()
	c, _ := connect(s.t)
	l := locks.NewRWLock(c, s.path)
	lease, err := l.Lock(s.ctx)
	require.NoError(s.t, err)
	return lease, l
}

// TestCuratorWriterDowngradesBesideLockstep: Curator before 5.5 gives the reader a number at the end of the line, so a waiting writer
// passes it (CURATOR-621).
func TestCuratorWriterDowngradesBesideLockstep(t *testing.T) {
	s := newTestPath(t, writer)
	write := newPeerContender(t, curator.get(t), writer.curator, writer.paths(s.path))
	read := write.part("read")
	s.mustLock(write)
	s.mustLock(read)
	two, three := weTeam.enter(t, writer, s.path), weTeam.enter(t, reader, s.path)
	toldTwo := s.startWaiter(two, forever)
	s.awaitContenders(3)
	s.release(write)
	s.awaitContenders(2)
	s.mustNotLock(weTeam.enter(t, writer, s.path), soon)
	s.requireStillWaiting(toldTwo)
	s.release(read)
	require.True(t, s.awaitGrant(toldTwo))
	toldThree := s.startWaiter(three, forever)
	s.awaitContenders(2)
	s.release(two)
	require.True(t, s.awaitGrant(toldThree))
	s.release(three)
	s.awaitNoNodes()
}

// TestCurators55sWriterGoesOnAsAReader with the number of the writer, as Curator does since 5.5, while ours
// waits. The reader's node is made by the test, as Debian has Curator 5.4.
func TestCurators55sWriterGoesOnAsAReader(t *testing.T) {
	s := newTestPath(t, writer)
	one := curatorTeam.enter(t, writer, s.path)
	s.mustLock(one)
	number := s.awaitContenders(1)[0].seq
	two := weTeam.enter(t, writer, s.path)
	told := s.startWaiter(two, forever)
	s.awaitContenders(2)
	read := znode.Join(s.path, "_c_"+uuid.NewString()+"-__READ__"+number)
	require.NoError(t, s.client.Create(s.ctx, read, nil, framework.Ephemeral))
	s.awaitContenders(3)
	s.release(one)
	s.awaitContenders(2)
	s.mustNotLock(weTeam.enter(t, writer, s.path), soon)
	s.requireStillWaiting(told)
	require.NoError(t, s.client.Delete(s.ctx, read, framework.AnyVersion))
	require.True(t, s.awaitGrant(told))
	s.release(two)
	s.awaitNoNodes()
}
