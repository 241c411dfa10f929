//go:build linux

package chaos

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// replayEvents adds lines of "process event" to a history. The line "process x" kills the process.
func replayEvents(t *testing.T, h *history, events string) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(events)); lines.Scan(); {
		name, line, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if name == "" {
			continue
		}
		h.processStarted(name)
		if line == "x" {
			h.expectKill(name)
			h.processEnded(name, os.ErrProcessDone)
			continue
		}
		e, err := readEvent([]byte(line))
		require.NoError(t, err, line)
		h.add(name, e, line)
	}
}

// TestCheckerVerdicts checks short histories, from the processes' lines to the verdict.
func TestCheckerVerdicts(t *testing.T) {
	const (
		putOne = `p {"t":1,"op":1,"step":"requested","kind":"put","path":"/parallel","item":"p.1","number":1}
			p {"t":5,"op":1,"step":"granted"}
			`
		takeOne = `a {"t":2,"op":1,"step":"requested","kind":"delivery","path":"/parallel"}
			a {"t":6,"op":1,"step":"granted","item":"p.1","number":1,"attempt":1}
			a {"t":9,"op":1,"step":"held"}
			`
		ackOne = `a {"t":10,"op":1,"step":"acking"}
			a {"t":12,"op":1,"step":"ended","end":"acked","last_held":9}
			`
		takeAgain = `b {"t":10,"op":1,"step":"requested","kind":"delivery","path":"/parallel"}
			b {"t":11,"op":1,"step":"granted","item":"p.1","number":1,"attempt":2}
			b {"t":13,"op":1,"step":"ended","end":"acked","last_held":12}
			`
		lockA = `a {"t":1,"op":1,"step":"requested","kind":"lock","path":"/mutex-0"}
			a {"t":2,"op":1,"step":"granted","token":7}
			a {"t":5,"op":1,"step":"held"}
			`
		lockB = `b {"t":3,"op":1,"step":"requested","kind":"lock","path":"/mutex-0"}
			b {"t":8,"op":1,"step":"granted","token":8}
			b {"t":12,"op":1,"step":"ended","end":"released","last_held":10}
			`
		strict = "/strict"
	)
	inStrict := func(events string) string { return strings.ReplaceAll(events, parallelPath, strict) }
	for _, c := range []struct{ name, events, wrong string }{
		{"an item put, delivered and acknowledged", putOne + takeOne + ackOne, ""},
		{"an item without a delivery", putOne, "/parallel p.1#1: no order"},
		{"a strict item without a delivery", inStrict(putOne), "/strict p.1: no order"},
		{"an item redelivered after its consumer was killed", putOne + takeOne + "a x\n" + takeAgain, ""},
		{"an item redelivered after it was acknowledged",
			putOne + takeOne + ackOne + strings.ReplaceAll(takeAgain, `"t":1`, `"t":2`), "no order"},
		{"an item with two holders", putOne + takeOne + `a {"t":14,"op":1,"step":"ended","end":"lost","last_held":12}` +
			"\n" + takeAgain, "no order"},
		{"a strict item with two holders",
			inStrict(putOne + takeOne + `a {"t":14,"op":1,"step":"ended","end":"lost","last_held":12}` + "\n" +
				takeAgain), "/strict: no order"},
		{"a put without a reply before its process was killed", strings.Split(putOne, "\n")[0] + "\np x\n", ""},
		{"an item without a put", takeOne + ackOne, "no order"},
		{"an item delivered before its delay was over", strings.Replace(putOne, `"number":1`, `"number":1,"delay":6`,
			1) + takeOne + ackOne, "before its delay was over"},
		{"an item delivered after its delay", strings.Replace(putOne, `"number":1`, `"number":1,"delay":4`, 1) +
			takeOne + ackOne, ""},
		{"one holder after the other", lockA + `a {"t":6,"op":1,"step":"ended","end":"lost","last_held":5}` +
			"\n" + lockB, ""},
		{"a holder that is killed", lockA + "a x\n" + lockB, ""},
		{"a holder that is alive when the next is granted",
			lockA + `a {"t":11,"op":1,"step":"ended","end":"lost","last_held":9}` + "\n" + lockB, "/mutex-0: no order"},
		{"a holder that is killed after the next is granted",
			lockA + `a {"t":9,"op":1,"step":"held"}` + "\na x\n" + lockB, "/mutex-0: no order"},
		{"an error while the context is alive", `a {"t":1,"op":1,"step":"requested","kind":"lock","path":"/mutex-0"}
			a {"t":2,"op":1,"step":"failed","error":"no excuse"}`, "no excuse"},
		{"an operation that is open at rest", lockA, "still busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, checker := newHistory(newSummary(1)), newChecker(t.TempDir())
			replayEvents(t, h, c.events)
			s := h.takeSegment()
			s.until = 100
			wrong := checker.checkSegment(1, s,
				map[string]drainedQueue{parallelPath: {from: 50, to: 60}, strictPath: {from: 50, to: 60}})
			if c.wrong == "" {
				require.Empty(t, wrong)
				require.Empty(t, checker.evidenceFiles)
				return
			}
			require.NotEmpty(t, wrong)
			require.ErrorContains(t, wrong[0], c.wrong)
			require.NotEmpty(t, checker.evidenceFiles)
		})
	}
}

// TestCheckerVerdictsOnDeadLettersAndPurges checks that an item of the queue at featuresPath may
// vanish only if it is a dead letter or was purged.
func TestCheckerVerdictsOnDeadLettersAndPurges(t *testing.T) {
	const put = `p {"t":10,"op":1,"step":"requested","kind":"put","path":"/features","item":"p.1","number":1}
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
		{"an unfinished purge", false, 20, noReturn, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, checker := newHistory(newSummary(1)), newChecker(t.TempDir())
			replayEvents(t, h, put)
			if c.from > 0 {
				h.addPurge(c.from, c.to)
			}
			s := h.takeSegment()
			s.until = 100
			sights := map[string]drainedQueue{featuresPath: {from: 50, to: 60,
				deadLetters: map[string]bool{"p.1#1": c.dead}}}
			require.Len(t, checker.checkSegment(1, s, sights), c.violations)
		})
	}
}

// TestCheckerVerdictsOnCancels checks that an item whose cancel has succeeded is not delivered
// afterwards. An item whose cancel has an unknown outcome may be delivered, or may vanish. An item
// whose cancel was refused may not vanish.
func TestCheckerVerdictsOnCancels(t *testing.T) {
	const (
		put = `p {"t":1,"op":1,"step":"requested","kind":"put","path":"/features","item":"p.1","number":1}
			p {"t":5,"op":1,"step":"granted"}
			`
		request = `c {"t":10,"op":1,"step":"requested","kind":"cancel","path":"/features","item":"p.1","number":1}
			`
		done  = request + `c {"t":12,"op":1,"step":"granted"}` + "\n"
		again = `c {"t":13,"op":2,"step":"requested","kind":"cancel","path":"/features","item":"p.1","number":1}
			c {"t":15,"op":2,"step":"granted"}
			`
		unknown = request + `c {"t":12,"op":1,"step":"unknown"}` + "\n"
		refused = request + `c {"t":12,"op":1,"step":"abandoned"}` + "\n"
	)
	take := func(asked, granted string) string {
		return `a {"t":` + asked + `,"op":1,"step":"requested","kind":"delivery","path":"/features"}
			a {"t":` + granted + `,"op":1,"step":"granted","item":"p.1","number":1,"attempt":1}
			a {"t":30,"op":1,"step":"ended","end":"acked","last_held":29}
			`
	}
	for _, c := range []struct {
		name, events string
		violations   int
	}{
		{"cancelled", put + done, 0},
		{"cancelled twice", put + done + again, 0},
		{"cancelled twice, and delivered later", put + done + again + take("18", "20"), 1},
		{"cancelled, and delivered later", put + done + take("13", "20"), 1},
		{"cancelled, and delivered before", put + done + take("6", "9"), 1},
		{"cancelled, and delivered by a call that was waiting", put + done + take("6", "20"), 1},
		{"cancelled, and its put has an unknown outcome", strings.Replace(put, "granted", "unknown", 1) + done, 0},
		{"unknown, and gone", put + unknown, 0},
		{"unknown, and delivered", put + unknown + take("13", "20"), 0},
		{"unknown, as its process was killed, and gone", put + request + "c x\n", 0},
		{"unknown, as its process was killed, and delivered", put + request + "c x\n" + take("13", "20"), 0},
		{"refused, and gone", put + refused, 1},
		{"refused, and delivered", put + refused + take("6", "20"), 0},
		{"cancelled without a put", done, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, checker := newHistory(newSummary(1)), newChecker(t.TempDir())
			replayEvents(t, h, c.events)
			s := h.takeSegment()
			s.until = 100
			require.Len(t, checker.checkSegment(1, s, map[string]drainedQueue{featuresPath: {from: 50, to: 60}}),
				c.violations)
			require.Empty(t, checker.uncertainPuts, "a cancel that has succeeded has found the item")
		})
	}
}

// TestCheckerCarriesTokensAndUncertainPutsAcrossSegments checks that tokens must rise from one
// segment to the next, and that an uncertain put may be carried out in a later segment.
func TestCheckerCarriesTokensAndUncertainPutsAcrossSegments(t *testing.T) {
	h, checker := newHistory(newSummary(1)), newChecker(t.TempDir())
	judge := func(from int64, events string) []error {
		replayEvents(t, h, events)
		s := h.takeSegment()
		s.until = from + 100
		return checker.checkSegment(1, s, map[string]drainedQueue{parallelPath: {from: from + 50, to: from + 60},
			strictPath: {from: from + 50, to: from + 60}})
	}
	lock := func(at, token string) string {
		return `a {"t":` + at + `1,"op":1,"step":"requested","kind":"lock","path":"/mutex-0"}
			a {"t":` + at + `2,"op":1,"step":"granted","token":` + token + `}
			a {"t":` + at + `4,"op":1,"step":"ended","end":"released","last_held":` + at + `3}
			`
	}
	doubt := `p {"t":1,"op":7,"step":"requested","kind":"put","path":"/strict","item":"p.1","number":1}
		p {"t":2,"op":7,"step":"granted"}
		p {"t":3,"op":8,"step":"requested","kind":"put","path":"/strict","item":"p.1","number":2}
		p {"t":4,"op":8,"step":"unknown"}
		b {"t":3,"op":1,"step":"requested","kind":"delivery","path":"/strict"}
		b {"t":4,"op":1,"step":"granted","item":"p.1","number":1,"attempt":1}
		b {"t":6,"op":1,"step":"ended","end":"acked","last_held":5}
		`
	late := `b {"t":203,"op":2,"step":"requested","kind":"delivery","path":"/strict"}
		b {"t":204,"op":2,"step":"granted","item":"p.1","number":2,"attempt":1}
		b {"t":206,"op":2,"step":"ended","end":"acked","last_held":205}
		`
	require.Empty(t, judge(0, lock("", "7")+doubt))
	require.Len(t, checker.uncertainPuts, 1)
	require.Empty(t, judge(200, lock("20", "8")+late))
	require.Empty(t, checker.uncertainPuts)
	require.Len(t, judge(400, lock("40", "8")), 1, "a token given twice")
	require.Len(t, judge(600, strings.ReplaceAll(late, `"t":20`, `"t":60`)), 1, "an item that was acknowledged")
}
