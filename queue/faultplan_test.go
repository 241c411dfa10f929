package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/zktest"
)

// faultPlan injects faults into links and servers, and counts them.
type faultPlan struct {
	*world
	rand   *rand.Rand
	struck map[string]int
	pause  time.Duration // between two strikes, at most
}

func (w *faultPlan) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(d)))
}

// strike does something to a link, to a reply of anybody, or to the server; or it kills a process.
func (w *faultPlan) injectFault(link *zktest.Link, kill func()) {
	switch w.rand.IntN(11) {
	case 0, 1, 2:
		w.struck["connections reset"]++
		link.Reset()
	case 3:
		w.struck["links cut"]++
		link.Cut()
		time.AfterFunc(w.upTo(timeout), link.Heal)
	case 4:
		w.struck["links black-holed"]++
		link.BlackHole(true, true)
		time.AfterFunc(w.upTo(2*timeout), link.Heal)
	case 5:
		w.struck["sessions expired"]++
		link.Cut()
		time.AfterFunc(timeout+w.upTo(timeout), link.Heal)
	case 6, 7:
		w.struck["replies lost"]++
		w.DropReply(1+w.rand.IntN(4),
			zktest.Match{Op: zktest.OpMulti, Func: func(r zktest.Request) bool { return len(r.Parts) > 1 }})
	case 8:
		w.struck["replies lost"]++
		w.DropReply(1+w.rand.IntN(4), zktest.Match{Path: testPath})
	case 9:
		w.struck["servers restarted"]++
		w.Restart()
	case 10:
		w.struck["processes killed"]++
		kill()
	}
}

// rage breaks things every now and then until it is over.
func (s *faultRun) injectFaults(over func() bool) {
	for !over() {
		time.Sleep(s.pause/10 + s.upTo(s.pause))
		link := s.links[s.rand.IntN(len(s.links))]
		if s.rand.IntN(2) == 0 {
			link = s.alive[s.rand.IntN(len(s.alive))].link
		}
		s.injectFault(link, s.replace)
	}
	for _, l := range s.links {
		l.Heal()
	}
	for _, w := range s.alive {
		w.link.Heal()
	}
}

// replace kills a consumer and starts another.
func (s *faultRun) replace() {
	i := s.rand.IntN(len(s.alive))
	w := s.alive[i]
	s.alive = slices.Delete(s.alive, i, i+1)
	w.stop()
	w.kill()
	s.startConsumer()
}

func (w *faultPlan) String() string {
	var parts []string
	for what, n := range w.struck {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
