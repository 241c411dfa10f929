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
			a.Scheduler.mu.Lock()
			defer a.Scheduler.mu.Unlock()
			old, a.term = a.term, term
			return old
		}
		term := setTerm(nil) // as before it has begun
		sh := a.currentSession()
		sh.jobsMu.Lock()
		go a.assignJobs()
		for range 1000 { // until it waits for the member session: nothing else can be seen of that
			runtime.Gosched()
		}
		setTerm(term)
		sh.jobsMu.Unlock()
		synctest.Wait()
		time.Sleep(time.Minute)
		require.Len(t, w.log.ticks(), 1)
	})
}
