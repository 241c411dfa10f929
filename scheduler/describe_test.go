package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

func TestJobAddedDuringMemberRegistrationIsOwned(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spread := Job{Name: "s", Spec: "* * * * *", Run: quick, Placement: Spread}
		a := w.start("a", append(jobs("j", "* * * * *", quick), spread))
		a.stop()
		require.NoError(t, <-a.done)
		w.Reap() // so that the members' directory is made anew, which takes its time
		b := w.member("b", jobs("j", "* * * * *", quick))
		session, err := b.client.Session(t.Context())
		require.NoError(t, err)
		b.link.Delay(100 * time.Millisecond)
		enlists := w.DelayReplies(time.Millisecond, zktest.Match{Path: testPath + "/members/",
			Session: session.ID()})
		b.run(t)
		<-enlists.Hit() // it has told of its jobs, and does not know yet that it did
		require.NoError(t, b.Add(spread))
		time.Sleep(3 * time.Minute)
		require.Positive(t, w.state("s").Fired)
	})
}

// A description whose reply is lost is stored again: it must not replace a later one.
func TestAMemberIsDescribedByOneAtATime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spread := spreadJobs(2, "* * * * *", quick)
		b := w.start("b", spread) // which registers them
		b.stop()
		require.NoError(t, <-b.done)
		a := w.start("a", jobs("j", "0 0 1 1 *", quick))
		a.link.Delay(100 * time.Millisecond)
		described := make(chan time.Time, 10)
		defer w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpSetData && strings.HasPrefix(r.Path, testPath+"/members/") {
				described <- time.Now()
			}
		})()
		for _, j := range spread {
			require.NoError(t, a.Add(j))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(3 * time.Minute)
		for _, j := range spread {
			require.Positive(t, w.state(j.Name).Fired)
		}
		for first := <-described; len(described) > 0; {
			next := <-described
			require.GreaterOrEqual(t, next.Sub(first), 200*time.Millisecond, "the reply is awaited")
			first = next
		}
	})
}
