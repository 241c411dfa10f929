package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSemaphore lets two libraries share a semaphore of three permits, either first.
func TestSemaphore(t *testing.T) {
	for _, p := range pairs {
		if !p.plays(semaphore(3, 1)) {
			continue
		}
		for name, run := range map[string]func(*scene, team, team){
			"permits are taken until none is left":  permitsRunOut,
			"a holder's end gives its permits back": permitsComeBack,
		} {
			t.Run(p.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				run(newScene(t, semaphore(3, 1)), p[0], p[1])
			})
		}
	}
}

func permitsRunOut(s *scene, first, second team) {
	two, one, more := first.enter(s.t, semaphore(3, 2), s.path), second.enter(s.t, semaphore(3, 1), s.path), second.enter(s.t, semaphore(3, 2), s.path)
	s.hold(two)
	s.refused(more, 0)
	s.refused(more, soon)
	s.hold(one)
	s.refused(first.enter(s.t, semaphore(3, 1), s.path), soon)
	s.release(two)
	s.hold(more)
	s.release(more)
	s.release(one)
	s.empty()
}

func permitsComeBack(s *scene, first, second team) {
	two, all := first.enter(s.t, semaphore(3, 2), s.path), second.enter(s.t, semaphore(3, 3), s.path)
	s.hold(two)
	told := s.queue(all, forever)
	s.stand(2)
	s.waits(told)
	two.born().kill(s.t)
	require.True(s.t, s.told(told))
	s.release(all)
	s.empty()
}

// TestSeveralPermitsAreNotOvertaken: a member of Curator's that needs one waits behind ours, which needs two,
// although one is free. The other way round would not hold: Curator takes several one by one, and
// queues anew for each.
func TestSeveralPermitsAreNotOvertaken(t *testing.T) {
	one, two := semaphore(2, 1), semaphore(2, 2)
	s := newScene(t, one)
	holders := []contender{curatorTeam.enter(t, one, s.path), curatorTeam.enter(t, one, s.path)}
	for _, h := range holders {
		s.hold(h)
	}
	ours, last := weTeam.enter(t, two, s.path), curatorTeam.enter(t, one, s.path)
	toldOurs := s.queue(ours, forever)
	s.stand(2)
	toldLast := s.queue(last, forever)
	s.stand(3)
	s.release(holders[0])
	s.refused(curatorTeam.enter(t, one, s.path), soon)
	s.waits(toldOurs)
	s.waits(toldLast)
	s.release(holders[1])
	require.True(t, s.told(toldOurs))
	s.waits(toldLast)
	s.release(ours)
	require.True(t, s.told(toldLast))
	s.release(last)
	s.empty()
}

// TestCrowd lets members of two libraries in, never more than there are permits.
func TestCrowd(t *testing.T) {
	const permits = 2
	r := semaphore(permits, 1)
	s := newScene(t, r)
	in := s.numbers(1)
	var all crowd
	for _, team := range []team{weTeam, curatorTeam} {
		all.enter(s, team, r, work{section: Crowd, nodes: in, permits: permits, rounds: rounds})
	}
	require.NoError(t, all.work(s))
	s.empty()
}
