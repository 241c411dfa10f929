package scheduler

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Several assign the jobs at once: who has waited for another must not go by what was known before.
func TestJobsAreAssignedByWhatIsKnownLast(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		time.Sleep(time.Second)
		lead := func() func() { // as if a term had not begun yet
			a.Scheduler.mu.Lock()
			defer a.Scheduler.mu.Unlock()
			term := a.term
			a.term = nil
			return func() {
				a.Scheduler.mu.Lock()
				defer a.Scheduler.mu.Unlock()
				a.term = term
			}
		}()
		sh := a.present()
		sh.mu.Lock()
		go a.assign()
		for range 1000 { // until it waits for the shift: nothing else can be seen of that
			runtime.Gosched()
		}
		lead()
		sh.mu.Unlock()
		synctest.Wait()
		time.Sleep(time.Minute)
		require.Len(t, w.log.ticks(), 1)
	})
}
