package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func nothing(context.Context, Run) error { return nil }

// differences are the events of differing declarations, as "member: job, other member".
func (w *world) differences() (out []string) {
	for _, e := range w.log.all(EventDiffers) {
		require.NotZero(w.t, e.At)
		require.Contains(w.t, e.Err.Error(), e.Member)
		out = append(out, e.member+": "+e.Job+", "+e.Member)
	}
	return out
}

// TestDifferingDeclarationsAreToldOnceOnBothSides, of jobs of both placements, whoever comes first, and not again on another session.
func TestDifferingDeclarationsAreToldOnceOnBothSides(t *testing.T) {
	for name, change := range map[string]func(*Job){
		"schedule":    func(j *Job) { j.Spec = "1 0 * * *" },
		"zone":        func(j *Job) { j.Location = time.FixedZone("+05:30", 19800) },
		"description": func(j *Job) { j.Description = "other.sh" },
		"revision":    func(j *Job) { j.Spec, j.Revision = "1 0 * * *", 7 },
		"spread":      func(j *Job) { j.Spec = "1 0 * * *" },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				first := Job{Name: "j", Spec: "0 0 * * *", Description: "report.sh", Run: nothing}
				if name == "spread" {
					first.Placement = Spread
				}
				second := first
				change(&second)
				same := Job{Name: "same", Spec: "0 0 * * *", Run: nothing}
				a := w.start("a", []Job{first, same})
				time.Sleep(5 * time.Second)
				require.Empty(t, w.differences())
				w.start("b", []Job{second, same, {Name: "own", Spec: "0 0 * * *", Run: nothing}})
				time.Sleep(5 * time.Second)
				require.ElementsMatch(t, []string{"a: j, b", "b: j, a"}, w.differences())
				for _, e := range w.log.all(EventDiffers) {
					require.Equal(t, name == "description", !strings.Contains(e.Err.Error(), "schedule"), e.Err)
					require.Equal(t, name == "description", strings.Contains(e.Err.Error(), "another description"), e.Err)
				}
				s, err := a.client.Session(t.Context())
				require.NoError(t, err)
				require.NoError(t, w.Expire(s.ID()))
				time.Sleep(time.Minute)
				require.Len(t, w.differences(), 2, "once")
			})
		})
	}
}

// TestDifferenceThatComesLater: a job is added, and replaced, while both members run.
func TestDifferenceThatComesLater(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.start("a", nil, WithWaitForJobs()), w.start("b", nil, WithWaitForJobs())
		time.Sleep(5 * time.Second)
		j := Job{Name: "j", Spec: "0 0 * * *", Run: nothing}
		require.NoError(t, a.Add(j))
		require.NoError(t, b.Add(j))
		time.Sleep(5 * time.Second)
		require.Empty(t, w.differences())
		j.Spec = "1 0 * * *"
		require.NoError(t, b.Update(j))
		time.Sleep(5 * time.Second)
		require.ElementsMatch(t, []string{"a: j, b", "b: j, a"}, w.differences())
		require.NoError(t, a.Update(j))
		time.Sleep(5 * time.Second)
		j.Spec = "2 0 * * *"
		require.NoError(t, a.Update(j))
		time.Sleep(5 * time.Second)
		require.Len(t, w.differences(), 4, "another difference is told, too")
	})
}

// Two jobs are added to a member while it runs. The registration of the first one stores a description with both before the second one is found stored with
// another declaration.
func TestDifferenceThatIsFoundAfterTheDescriptionWasStored(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("own", "0 0 * * *", nothing))
		w.start("b", append(jobs("first", "0 0 * * *", nothing), jobs("second", "0 0 * * *", nothing)...))
		time.Sleep(5 * time.Second)
		a.link.Delay(100 * time.Millisecond) // each request takes 200 ms
		require.NoError(t, a.Add(Job{Name: "first", Spec: "0 0 * * *", Run: nothing}))
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, a.Add(Job{Name: "second", Spec: "1 0 * * *", Run: nothing}))
		time.Sleep(10 * time.Second)
		require.ElementsMatch(t, []string{"a: second, b", "b: second, a"}, w.differences())
	})
}

// TestManyDifferencesAreToldOnce, and are forgotten when their members have left.
func TestManyDifferencesAreToldOnce(t *testing.T) {
	told := 0
	teller := &differenceTeller{report: &reporter{log: slog.New(slog.DiscardHandler), now: time.Now, observe: func(Event) { told++ }}}
	var mine []*job
	theirs := map[uint32]fingerprint{}
	for i := range maxTold/10 + 1 {
		j, err := newJob(Job{Name: fmt.Sprint("j", i), Spec: "0 0 * * *", Run: nothing})
		require.NoError(t, err)
		mine = append(mine, j)
		theirs[jobKey(j.Name)] = j.fingerprint ^ 1
	}
	membersOf := func(release string) (members []member) {
		for i := range 10 {
			members = append(members, member{node: fmt.Sprint(release, i, "-1"), id: fmt.Sprint(release, i), declared: theirs})
		}
		return members
	}
	for range 3 {
		teller.compare(mine, membersOf("old"), "own")
		require.Equal(t, 10*len(mine), told)
	}
	teller.compare(mine, membersOf("new"), "own")
	require.Equal(t, 20*len(mine), told)
	require.Len(t, teller.told, 10*len(mine))
}

// TestScheduleSetByAnOperatorIsNoDifference between members.
func TestScheduleSetByAnOperatorIsNoDifference(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := Job{Name: "j", Spec: "0 0 * * *", Run: nothing}
		a := w.start("a", []Job{j})
		w.start("b", []Job{j})
		time.Sleep(5 * time.Second)
		require.NoError(t, a.Reschedule(t.Context(), "j", "5 0 * * *", time.UTC))
		time.Sleep(5 * time.Second)
		require.Empty(t, w.differences())
	})
}

// TestMembersWithoutFingerprints are of former releases. Damaged ones are ignored.
func TestMembersWithoutFingerprints(t *testing.T) {
	keys := []uint32{3, 5}
	for text, known := range map[string]bool{"": false, "AAAA": false, "!": false, compressFingerprints(map[uint32]fingerprint{3: 1, 5: 2}, keys): true} {
		require.Equal(t, known, decompressFingerprints(text, keys) != nil, text)
	}
	j, err := newJob(Job{Name: "j", Spec: "0 0 * * *", Run: nothing})
	require.NoError(t, err)
	teller := &differenceTeller{report: &reporter{now: time.Now, observe: func(e Event) { t.Error(e) }}}
	teller.compare([]*job{j}, []member{
		{node: "x-1", id: "old", keys: []uint32{jobKey("j")}},
		{node: "y-1", id: "two jobs of one key", declared: map[uint32]fingerprint{jobKey("j"): 0}},
		{node: "z-1", id: "another job of the key", declared: map[uint32]fingerprint{jobKey("j"): j.fingerprint ^ 1<<30 ^ 1}},
		{node: "own-2", id: "this one", declared: map[uint32]fingerprint{jobKey("j"): j.fingerprint ^ 1}},
	}, "own")
}
