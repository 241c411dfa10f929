package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSemaphoresWithPeers lets two libraries share a semaphore of three permits. Each library is
// first once.
func TestSemaphoresWithPeers(t *testing.T) {
	for _, p := range pairs {
		if !p.supports(semaphore(3, 1)) {
			continue
		}
		for name, run := range map[string]func(*testPath, library, library){
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

func testPermitsRunOut(s *testPath, first, second library) {
	two, one, more := first.newContender(s.t, semaphore(3, 2), s.path),
		second.newContender(s.t, semaphore(3, 1), s.path), second.newContender(s.t, semaphore(3, 2), s.path)
	s.mustLock(two)
	s.mustNotLock(more, 0)
	s.mustNotLock(more, shortWait)
	s.mustLock(one)
	s.mustNotLock(first.newContender(s.t, semaphore(3, 1), s.path), shortWait)
	s.release(two)
	s.mustLock(more)
	s.release(more)
	s.release(one)
	s.awaitNoNodes()
}

func testPermitsComeBack(s *testPath, first, second library) {
	two, all := first.newContender(s.t, semaphore(3, 2), s.path), second.newContender(s.t, semaphore(3, 3), s.path)
	s.mustLock(two)
	outcome := s.startWaiter(all, forever)
	s.awaitContenders(2)
	s.requireStillWaiting(outcome)
	two.sessionID().kill(s.t)
	require.True(s.t, s.awaitGrant(outcome))
	s.release(all)
	s.awaitNoNodes()
}

// TestSeveralPermitsAreNotOvertaken checks that a Curator contender for one permit waits behind a
// Lockstep contender for two, although one permit is free. The reverse is not true, because Curator
// acquires several permits one by one.
func TestSeveralPermitsAreNotOvertaken(t *testing.T) {
	one, two := semaphore(2, 1), semaphore(2, 2)
	s := newTestPath(t, one)
	holders := []contender{curatorLibrary.newContender(t, one, s.path), curatorLibrary.newContender(t, one, s.path)}
	for _, h := range holders {
		s.mustLock(h)
	}
	ours, last := lockstepLibrary.newContender(t, two, s.path), curatorLibrary.newContender(t, one, s.path)
	outcomeOurs := s.startWaiter(ours, forever)
	s.awaitContenders(2)
	outcomeLast := s.startWaiter(last, forever)
	s.awaitContenders(3)
	s.release(holders[0])
	s.mustNotLock(curatorLibrary.newContender(t, one, s.path), shortWait)
	s.requireStillWaiting(outcomeOurs)
	s.requireStillWaiting(outcomeLast)
	s.release(holders[1])
	require.True(t, s.awaitGrant(outcomeOurs))
	s.requireStillWaiting(outcomeLast)
	s.release(ours)
	require.True(t, s.awaitGrant(outcomeLast))
	s.release(last)
	s.awaitNoNodes()
}

// TestConcurrentWorkersWithPeers checks that contenders of two libraries do not hold more permits
// than there are.
func TestConcurrentWorkersWithPeers(t *testing.T) {
	const permits = 2
	r := semaphore(permits, 1)
	s := newTestPath(t, r)
	in := s.numbers(1)
	var all concurrentWorkers
	for _, team := range []library{lockstepLibrary, curatorLibrary} {
		all.add(s, team, r, work{section: Crowd, nodes: in, permits: permits, rounds: rounds})
	}
	require.NoError(t, all.work(s))
	s.awaitNoNodes()
}
