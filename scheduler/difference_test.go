package scheduler

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
)

// TestAnotherDeclarationIsLogged when a member registers a job that is stored with another one.
func TestAnotherDeclarationIsLogged(t *testing.T) {
	const says = `msg="a job is stored as another release or command has registered it"`
	for name, change := range map[string]func(*Job){
		"same":        func(*Job) {},
		"schedule":    func(j *Job) { j.Spec = "1 0 * * *" },
		"zone":        func(j *Job) { j.Zone = time.FixedZone("+05:30", 19800) },
		"description": func(j *Job) { j.Description = "other.sh" },
		"revision":    func(j *Job) { j.Spec, j.Revision = "1 0 * * *", 7 },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				first := Job{Name: "j", Spec: "0 0 * * *", Description: "report.sh", Run: quick}
				a := w.start("a", []Job{first})
				time.Sleep(5 * time.Second)
				require.NoError(t, a.Reschedule(t.Context(), "j", "5 0 * * *", time.UTC),
					"an operator's schedule is none of a release")
				second := first
				change(&second)
				b := w.member("b", []Job{second, {Name: "own", Spec: "0 0 * * *", Run: quick}})
				var out logtest.Buffer
				b.report.log = slog.New(slog.NewTextHandler(&out, nil))
				b.run(t)
				time.Sleep(5 * time.Second)
				if name == "same" {
					require.NotContains(t, out.String(), says)
					return
				}
				require.Contains(t, out.String(), says+" path="+testPath+" job=j")
				require.Contains(t, out.String(), `stored with \"0 0 * * *\" in `)
				s, err := b.client.Session(t.Context())
				require.NoError(t, err)
				require.NoError(t, w.Expire(s.ID()))
				time.Sleep(time.Minute)
				require.Equal(t, 1, strings.Count(out.String(), says), "once")
			})
		})
	}
}
