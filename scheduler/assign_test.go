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
func TestJobsAreAssignedByLatestMemberList(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		time.Sleep(time.Second)
		setTerm := func(term *election.Term) (old *election.Term) {
			a.leadership.mu.Lock()
			defer a.leadership.mu.Unlock()
			old, a.leadership.term = a.leadership.term, term
			return old
		}
		term := setTerm(nil) // as before it has begun
		d := a.participation.currentSession().dispatcher
		d.mu.Lock()
		go a.participation.assignJobs()
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
