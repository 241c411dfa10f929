package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSemaphoresWithPeers lets two libraries share a semaphore of three permits, either first.
func TestSemaphoresWithPeers(t *testing.T) {
	for _, p := range pairs {
		if !p.plays(semaphore(3, 1)) {
			continue
		}
		for name, run := range map[string]func(*testPath, team, team){
			"permits are taken until none is left":  testPermitsRunOut,
			"a holder's end gives its permits back": testPermitsComeBack,
		} {
			t.Run(p.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				run(newTestPath(t, semaphore(3, 1)), p[0], p[1])
			})
		}
	}
}

func testPermitsRunOut(s *testPath, first, second team) {
	two, one, more := first.enter(s.t, semaphore(3, 2), s.path), second.enter(s.t, semaphore(3, 1), s.path), second.enter(s.t, semaphore(3, 2), s.path)
	s.mustLock(two)
	s.mustNotLock(more, 0)
	s.mustNotLock(more, soon)
	s.mustLock(one)
	s.mustNotLock(first.enter(s.t, semaphore(3, 1), s.path), soon)
	s.release(two)
	s.mustLock(more)
	s.release(more)
	s.release(one)
	s.awaitNoNodes()
}

func testPermitsComeBack(s *testPath, first, second team) {
	two, all := first.enter(s.t, semaphore(3, 2), s.path), second.enter(s.t, semaphore(3, 3), s.path)
	s.mustLock(two)
	told := s.startWaiter(all, forever)
	s.awaitContenders(2)
	s.requireStillWaiting(told)
	two.sessionID().kill(s.t)
	require.True(s.t, s.awaitGrant(told))
	s.release(all)
	s.awaitNoNodes()
}

// TestSeveralPermitsAreNotOvertaken: a Curator member that needs one permit waits behind a Lockstep member that needs two, although
// one is free. The reverse does not hold, because Curator acquires several permits one by one.
func TestSeveralPermitsAreNotOvertaken(t *testing.T) {
	one, two := semaphore(2, 1), semaphore(2, 2)
	s := newTestPath(t, one)
	holders := []contender{curatorTeam.enter(t, one, s.path), curatorTeam.enter(t, one, s.path)}
	for _, h := range holders {
		s.mustLock(h)
	}
	ours, last := weTeam.enter(t, two, s.path), curatorTeam.enter(t, one, s.path)
	toldOurs := s.startWaiter(ours, forever)
	s.awaitContenders(2)
	toldLast := s.startWaiter(last, forever)
	s.awaitContenders(3)
	s.release(holders[0])
	s.mustNotLock(curatorTeam.enter(t, one, s.path), soon)
	s.requireStillWaiting(toldOurs)
	s.requireStillWaiting(toldLast)
	s.release(holders[1])
	require.True(t, s.awaitGrant(toldOurs))
	s.requireStillWaiting(toldLast)
	s.release(ours)
	require.True(t, s.awaitGrant(toldLast))
	s.release(last)
	s.awaitNoNodes()
}

// TestConcurrentWorkersWithPeers: members of two libraries never hold more permits than there are.
func TestConcurrentWorkersWithPeers(t *testing.T) {
	const permits = 2
	r := semaphore(permits, 1)
	s := newTestPath(t, r)
	in := s.numbers(1)
	var all concurrentWorkers
	for _, team := range []team{weTeam, curatorTeam} {
		all.enter(s, team, r, work{section: Crowd, nodes: in, permits: permits, rounds: rounds})
	}
	require.NoError(t, all.work(s))
	s.awaitNoNodes()
}
