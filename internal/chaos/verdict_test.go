//go:build linux

package chaos

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hear feeds lines of "process event" to a record, as the processes would, with x for a process that is killed.
func hear(t *testing.T, r *record, story string) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(story)); lines.Scan(); {
		name, line, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if name == "" {
			continue
		}
		r.born(name)
		if line == "x" {
			r.doomed(name)
			r.gone(name, os.ErrProcessDone)
			continue
		}
		e, err := readEvent([]byte(line))
		require.NoError(t, err, line)
		r.note(name, e, line)
	}
}

// TestVerdicts tells short stories to the harness, from the processes' lines to the verdict.
func TestVerdicts(t *testing.T) {
	const (
		putOne = `p {"t":1,"op":1,"step":"asked","kind":"put","path":"/parallel","item":"p.1","number":1}
			p {"t":5,"op":1,"step":"granted"}
			`
		takeOne = `a {"t":2,"op":1,"step":"asked","kind":"delivery","path":"/parallel"}
			a {"t":6,"op":1,"step":"granted","item":"p.1","number":1,"attempt":1}
			a {"t":9,"op":1,"step":"stands"}
			`
		ackOne = `a {"t":10,"op":1,"step":"leaving"}
			a {"t":12,"op":1,"step":"ended","how":"acked","stood":9}
			`
		takeAgain = `b {"t":10,"op":1,"step":"asked","kind":"delivery","path":"/parallel"}
			b {"t":11,"op":1,"step":"granted","item":"p.1","number":1,"attempt":2}
			b {"t":13,"op":1,"step":"ended","how":"acked","stood":12}
			`
		lockA = `a {"t":1,"op":1,"step":"asked","kind":"lock","path":"/mutex-0"}
			a {"t":2,"op":1,"step":"granted","token":7}
			a {"t":5,"op":1,"step":"stands"}
			`
		lockB = `b {"t":3,"op":1,"step":"asked","kind":"lock","path":"/mutex-0"}
			b {"t":8,"op":1,"step":"granted","token":8}
			b {"t":12,"op":1,"step":"ended","how":"released","stood":10}
			`
		strict = "/strict"
	)
	inStrict := func(story string) string { return strings.ReplaceAll(story, parallelPath, strict) }
	for _, c := range []struct{ name, story, wrong string }{
		{"an item put, delivered and acknowledged", putOne + takeOne + ackOne, ""},
		{"an item that nobody was given", putOne, "/parallel p.1#1: no order"},
		{"a strict item that nobody was given", inStrict(putOne), "/strict p.1: no order"},
		{"an item that comes again after its consumer was killed", putOne + takeOne + "a x\n" + takeAgain, ""},
		{"an item that comes again after it was acknowledged", putOne + takeOne + ackOne + strings.ReplaceAll(takeAgain, `"t":1`, `"t":2`), "no order"},
		{"an item that two have", putOne + takeOne + `a {"t":14,"op":1,"step":"ended","how":"lost","stood":12}` + "\n" + takeAgain, "no order"},
		{"a strict item that two have", inStrict(putOne + takeOne + `a {"t":14,"op":1,"step":"ended","how":"lost","stood":12}` + "\n" + takeAgain), "/strict: no order"},
		{"a put that its process did not live to see done", strings.Split(putOne, "\n")[0] + "\np x\n", ""},
		{"an item that nobody has put", takeOne + ackOne, "no order"},
		{"an item that was delivered before its delay was over", strings.Replace(putOne, `"number":1`, `"number":1,"delay":6`, 1) + takeOne + ackOne, "before its delay was over"},
		{"an item that was delivered after its delay", strings.Replace(putOne, `"number":1`, `"number":1,"delay":4`, 1) + takeOne + ackOne, ""},
		{"one holder after the other", lockA + `a {"t":6,"op":1,"step":"ended","how":"lost","stood":5}` + "\n" + lockB, ""},
		{"a holder that is killed", lockA + "a x\n" + lockB, ""},
		{"a holder that stands beside the next", lockA + `a {"t":11,"op":1,"step":"ended","how":"lost","stood":9}` + "\n" + lockB, "/mutex-0: no order"},
		{"a holder that is killed beside the next", lockA + `a {"t":9,"op":1,"step":"stands"}` + "\na x\n" + lockB, "/mutex-0: no order"},
		{"an error that nothing excuses", `a {"t":1,"op":1,"step":"asked","kind":"lock","path":"/mutex-0"}
			a {"t":2,"op":1,"step":"failed","why":"for no reason"}`, "for no reason"},
		{"somebody who does not rest", lockA, "while all should rest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, j := newRecord(newTally(1)), newJudge(t.TempDir())
			hear(t, r, c.story)
			s := r.cut()
			s.until = 100
			wrong := j.judge(1, s, map[string]seen{parallelPath: {from: 50, to: 60}, strictPath: {from: 50, to: 60}})
			if c.wrong == "" {
				require.Empty(t, wrong)
				require.Empty(t, j.places)
				return
			}
			require.NotEmpty(t, wrong)
			require.ErrorContains(t, wrong[0], c.wrong)
			require.NotEmpty(t, j.places)
		})
	}
}

// TestVerdictsOnFeatures: an item of the queue at featuresPath may be a dead letter, or purged, and must not vanish otherwise.
func TestVerdictsOnFeatures(t *testing.T) {
	const put = `p {"t":10,"op":1,"step":"asked","kind":"put","path":"/features","item":"p.1","number":1}
		p {"t":15,"op":1,"step":"granted"}
		`
	for _, c := range []struct {
		name       string
		dead       bool
		from, to   int64 // of a purge
		violations int
	}{
		{"lost", false, 0, 0, 1},
		{"a dead letter", true, 0, 0, 0},
		{"purged", false, 20, 25, 0},
		{"purged while it was put", false, 12, 25, 0},
		{"purged before it was put, and lost", false, 1, 8, 1},
		{"an unfinished purge", false, 20, unfinished, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, j := newRecord(newTally(1)), newJudge(t.TempDir())
			hear(t, r, put)
			if c.from > 0 {
				r.purged(c.from, c.to)
			}
			s := r.cut()
			s.until = 100
			sights := map[string]seen{featuresPath: {from: 50, to: 60, dead: map[string]bool{"p.1#1": c.dead}}}
			require.Len(t, j.judge(1, s, sights), c.violations)
		})
	}
}

// TestWhatIsCarriedOn: tokens go on rising in the next segment, and a put in doubt may be done there.
func TestWhatIsCarriedOn(t *testing.T) {
	r, j := newRecord(newTally(1)), newJudge(t.TempDir())
	judge := func(from int64, story string) []error {
		hear(t, r, story)
		s := r.cut()
		s.until = from + 100
		return j.judge(1, s, map[string]seen{parallelPath: {from: from + 50, to: from + 60}, strictPath: {from: from + 50, to: from + 60}})
	}
	lock := func(at, token string) string {
		return `a {"t":` + at + `1,"op":1,"step":"asked","kind":"lock","path":"/mutex-0"}
			a {"t":` + at + `2,"op":1,"step":"granted","token":` + token + `}
			a {"t":` + at + `4,"op":1,"step":"ended","how":"released","stood":` + at + `3}
			`
	}
	doubt := `p {"t":1,"op":7,"step":"asked","kind":"put","path":"/strict","item":"p.1","number":1}
		p {"t":2,"op":7,"step":"granted"}
		p {"t":3,"op":8,"step":"asked","kind":"put","path":"/strict","item":"p.1","number":2}
		p {"t":4,"op":8,"step":"unknown"}
		b {"t":3,"op":1,"step":"asked","kind":"delivery","path":"/strict"}
		b {"t":4,"op":1,"step":"granted","item":"p.1","number":1,"attempt":1}
		b {"t":6,"op":1,"step":"ended","how":"acked","stood":5}
		`
	late := `b {"t":203,"op":2,"step":"asked","kind":"delivery","path":"/strict"}
		b {"t":204,"op":2,"step":"granted","item":"p.1","number":2,"attempt":1}
		b {"t":206,"op":2,"step":"ended","how":"acked","stood":205}
		`
	require.Empty(t, judge(0, lock("", "7")+doubt))
	require.Len(t, j.doubts, 1)
	require.Empty(t, judge(200, lock("20", "8")+late))
	require.Empty(t, j.doubts)
	require.Len(t, judge(400, lock("40", "8")), 1, "a token given twice")
	require.Len(t, judge(600, strings.ReplaceAll(late, `"t":20`, `"t":60`)), 1, "an item that was acknowledged")
}
