package interop

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// TestReaders lets two libraries share a read-write lock, either first.
func TestReaders(t *testing.T) {
	for _, p := range pairs {
		for name, run := range map[string]func(*scene, team, team){
			"readers hold together, a writer waits for all": readersHoldTogether,
			"a reader waits for the writer before it":       readersWaitForAWriter,
			"a reader does not overtake a waiting writer":   readersDoNotOvertake,
		} {
			t.Run(p.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				run(newScene(t, reader), p[0], p[1])
			})
		}
	}
}

func readersHoldTogether(s *scene, first, second team) {
	one, two := first.enter(s.t, reader, s.path), second.enter(s.t, reader, s.path)
	s.hold(one)
	s.hold(two)
	last := first.enter(s.t, writer, s.path)
	s.refused(last, soon)
	third := s.queue(last, forever)
	s.stand(3)
	s.release(one)
	s.stand(2)
	s.waits(third)
	s.release(two)
	require.True(s.t, s.told(third))
	s.release(last)
	s.empty()
}

func readersWaitForAWriter(s *scene, first, second team) {
	one, two := first.enter(s.t, writer, s.path), second.enter(s.t, reader, s.path)
	s.hold(one)
	s.refused(two, 0)
	s.refused(two, soon)
	told := s.queue(two, forever)
	s.stand(2)
	s.waits(told)
	s.release(one)
	require.True(s.t, s.told(told))
	s.release(two)
	s.empty()
}

func readersDoNotOvertake(s *scene, first, second team) {
	one, two, three := first.enter(s.t, reader, s.path), second.enter(s.t, writer, s.path), first.enter(s.t, reader, s.path)
	s.hold(one)
	toldTwo := s.queue(two, forever)
	s.stand(2)
	toldThree := s.queue(three, forever)
	s.stand(3)
	s.waits(toldTwo)
	s.waits(toldThree)
	s.release(one)
	require.True(s.t, s.told(toldTwo))
	s.waits(toldThree)
	s.release(two)
	require.True(s.t, s.told(toldThree))
	s.release(three)
	s.empty()
}

// TestReading lets writers keep two numbers equal for readers to compare. kazoo's readers before 2.9 wait for
// later writers too, which wait for them: it only writes here.
func TestReading(t *testing.T) {
	s := newScene(t, writer)
	nodes := s.numbers(2)
	add, compare := work{section: Add, nodes: nodes, rounds: rounds}, work{section: Compare, nodes: nodes, rounds: rounds}
	var all crowd
	for _, team := range teams {
		all.enter(s, team, writer, add)
	}
	all.enter(s, weTeam, reader, compare)
	all.enter(s, curatorTeam, reader, compare)
	require.NoError(t, all.work(s))
	s.empty()
}

// TestOurWriterGoesOnAsAReader: a writer of theirs that waits behind ours waits for what it goes on as too.
func TestOurWriterGoesOnAsAReader(t *testing.T) {
	for _, theirs := range []team{curatorTeam, kazooTeam} {
		t.Run("before a writer of "+theirs.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, writer)
			two := theirs.enter(t, writer, s.path)
			write, l := s.write()
			told := s.queue(two, forever)
			s.stand(2)
			read, err := l.RLock(write.Context())
			require.NoError(t, err)
			s.stand(3)
			require.NoError(t, write.Release(s.ctx))
			s.stand(2)
			s.refused(theirs.enter(t, writer, s.path), soon)
			s.waits(told)
			require.NoError(t, read.Release(s.ctx))
			require.True(t, s.told(told))
			s.release(two)
			s.empty()
		})
		t.Run("before a reader of "+theirs.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, writer)
			two := theirs.enter(t, reader, s.path)
			write, l := s.write()
			told := s.queue(two, forever)
			s.stand(2)
			read, err := l.RLock(write.Context())
			require.NoError(t, err)
			s.stand(3)
			s.waits(told)
			require.NoError(t, write.Release(s.ctx))
			require.True(t, s.told(told))
			require.NoError(t, read.Err())
			require.NoError(t, read.Release(s.ctx))
			s.release(two)
			s.empty()
		})
	}
}

// write holds our read-write lock for writing.
func (s *scene) write() (*locks.Lease, *locks.RWLock) {
	s.t.Helper()
	c, _ := connect(s.t)
	l := locks.NewRWLock(c, s.path)
	lease, err := l.Lock(s.ctx)
	require.NoError(s.t, err)
	return lease, l
}

// TestCuratorsWriterGoesOnAsAReader before ours comes. Curator before 5.5 gives the reader a number at the
// end of the line, where a writer that waits already passes it (CURATOR-621).
func TestCuratorsWriterGoesOnAsAReader(t *testing.T) {
	s := newScene(t, writer)
	write := enterTheirs(t, curator.get(t), writer.curator, writer.paths(s.path))
	read := write.part("read")
	s.hold(write)
	s.hold(read)
	two, three := weTeam.enter(t, writer, s.path), weTeam.enter(t, reader, s.path)
	toldTwo := s.queue(two, forever)
	s.stand(3)
	s.release(write)
	s.stand(2)
	s.refused(weTeam.enter(t, writer, s.path), soon)
	s.waits(toldTwo)
	s.release(read)
	require.True(t, s.told(toldTwo))
	toldThree := s.queue(three, forever)
	s.stand(2)
	s.release(two)
	require.True(t, s.told(toldThree))
	s.release(three)
	s.empty()
}

// TestCurators55sWriterGoesOnAsAReader with the number of the writer, as Curator does since 5.5, while ours
// waits. The reader's node is made by the test, as Debian has Curator 5.4.
func TestCurators55sWriterGoesOnAsAReader(t *testing.T) {
	s := newScene(t, writer)
	one := curatorTeam.enter(t, writer, s.path)
	s.hold(one)
	number := s.stand(1)[0].seq
	two := weTeam.enter(t, writer, s.path)
	told := s.queue(two, forever)
	s.stand(2)
	read := framework.Join(s.path, "_c_"+uuid.NewString()+"-__READ__"+number)
	require.NoError(t, s.client.Create(s.ctx, read, nil, framework.Ephemeral))
	s.stand(3)
	s.release(one)
	s.stand(2)
	s.refused(weTeam.enter(t, writer, s.path), soon)
	s.waits(told)
	require.NoError(t, s.client.Delete(s.ctx, read, framework.AnyVersion))
	require.True(t, s.told(told))
	s.release(two)
	s.empty()
}
