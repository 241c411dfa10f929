package scheduler

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
)

// Several assign the jobs at once: who has waited for another must not go by what was known before.
func TestJobsAreAssignedByWhatIsKnownLast(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		time.Sleep(time.Second)
		setTerm := func(term *election.Term) (old *election.Term) {
			a.leader.mu.Lock()
			defer a.leader.mu.Unlock()
			old, a.leader.term = a.leader.term, term
			return old
		}
		term := setTerm(nil) // as before it has begun
		d := a.part.session().dispatch
		d.mu.Lock()
		go a.part.assign()
		for range 1000 { // until it waits for the dispatcher: nothing else can be seen of that
			runtime.Gosched()
		}
		setTerm(term)
		d.mu.Unlock()
		synctest.Wait()
		time.Sleep(time.Minute)
		require.Len(t, w.log.ticks(), 1)
	})
}
