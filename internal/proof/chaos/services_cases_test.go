//go:build linux

package chaos

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckerVerdictsOnServices checks short histories of values, ids, instances and members, from
// the processes' lines to the verdict.
func TestCheckerVerdictsOnServices(t *testing.T) {
	shown := func(process, path, fields string) string {
		return process + ` {"t":9,"step":"shown","path":"` + path + `",` + fields + "}\n"
	}
	setting := func(process, version, text string) string {
		return shown(process, settingPath, `"source":"servers","token":`+version+`,"item":"`+text+`"`)
	}
	// call returns the lines of a request of a process, from one time to another. answer has the
	// fields of its outcome.
	call := func(process, op, from, to, kind, path, fields, answer string) string {
		return process + ` {"t":` + from + `,"op":` + op + `,"step":"requested","kind":"` + kind + `","path":"` + path +
			`"` + fields + "}\n" +
			process + ` {"t":` + to + `,"op":` + op + `,` + answer + "}\n"
	}
	const granted, unknown, abandoned = `"step":"granted"`, `"step":"unknown"`, `"step":"abandoned"`
	tally := func(process, n, outcome string) string {
		return call(process, n, "2", "5", "write", tallyPath, `,"number":`+n+`,"item":"`+process+n+`"`, outcome)
	}
	others := func(n int) (writes string) {
		for i := range n {
			writes += call("a", strconv.Itoa(i), "3", "4", "write", settingPath, `,"item":"good `+strconv.Itoa(i)+`"`,
				granted)
		}
		return writes
	}
	add := func(op, from, to, sum string) string {
		return call("a", op, from, to, "add", counterPath, "", granted+`,"number":`+sum)
	}
	given := func(process, op, numbers string) string {
		return call(process, op, "2", "5", "ids", slotsPath, "", granted+`,"numbers":[`+numbers+`]`)
	}
	drained := func(at string) string {
		return `m {"t":` + at + `,"step":"shown","kind":"drained","path":"/group","item":"m.1"}` + "\n"
	}
	drain := func(op, from, to string) string {
		return call("a", op, from, to, "drain", groupPath, `,"item":"m.1"`, granted)
	}
	uncordon := call("b", "1", "20", "25", "uncordon", groupPath, `,"item":"m.1"`, granted)
	for _, c := range []struct {
		name, events string
		at           servicesAtRest
		wrong        string
	}{
		{"a newer setting after an older one", setting("a", "5", "good x") + setting("a", "7", "good y") + setting("b",
			"7", "good y"), servicesAtRest{}, ""},
		{"an older setting after a newer one", setting("a", "7", "good y") + setting("a", "5", "good x"),
			servicesAtRest{}, "version 5 after 7"},
		{"a setting that readers refuse", setting("a", "7", "bad"), servicesAtRest{}, "is to be refused"},
		{"a setting that was written twice", setting("a", "5", "good x") + setting("b", "7", "good x"),
			servicesAtRest{}, "was written twice"},
		{"a setting whose write has failed", setting("a", "5", "good x") + call("b", "1", "2", "5", "write",
			settingPath, `,"item":"good x"`, abandoned), servicesAtRest{}, "was written"},
		{"a setting whose write has an unknown outcome", setting("a", "5", "good x") + call("b", "1", "2", "5", "write",
			settingPath, `,"item":"good x"`, unknown), servicesAtRest{}, ""},
		{"a setting whose write has an unknown outcome in time, beside few others",
			call("b", "1", "2", "5", "write", settingPath, `,"item":"good x"`, unknown+`,"error":"outcome unknown"`) +
				others(9), servicesAtRest{},
			"beside 9 other writes"},
		{"a setting whose write has an unknown outcome in time, beside many others",
			call("b", "1", "2", "5", "write", settingPath, `,"item":"good x"`, unknown+`,"error":"outcome unknown"`) +
				others(10), servicesAtRest{}, ""},
		{"two writes over one version",
			call("a", "1", "2", "5", "write", settingPath, `,"token":3,"item":"good x"`, granted) +
				call("b", "1", "2", "5", "write", settingPath, `,"token":3,"item":"good y"`, granted), servicesAtRest{},
			"both written over version 3"},
		{"a follower that ends", `a {"t":9,"step":"shown","path":"/setting","error":"no excuse"}` + "\n",
			servicesAtRest{}, "no excuse"},

		{"a tally", tally("a", "1", granted) + tally("b", "2", unknown) + tally("a", "3", granted),
			servicesAtRest{tally: 3}, ""},
		{"a tally with a write of a process that was killed",
			tally("a", "1", granted) + strings.Split(tally("b", "2", granted), "\n")[0] + "\nb x\n",
			servicesAtRest{tally: 2}, ""},
		{"a tally that was written twice", tally("a", "1", granted) + tally("b", "1", granted),
			servicesAtRest{tally: 1}, "both written 1"},
		{"a tally that lost a write", tally("a", "1", granted) + tally("b", "2", granted), servicesAtRest{tally: 1},
			"from 0 to 1"},
		{"a tally that no call has written", tally("a", "1", granted) + tally("b", "2", abandoned),
			servicesAtRest{tally: 2}, "no call has written 2"},

		{"a tree", shown("a", treePath, `"numbers":[1,1,1]`) + shown("a", treePath, `"numbers":[3,3,3]`),
			servicesAtRest{}, ""},
		{"a tree of two moments", shown("a", treePath, `"numbers":[1,1,2]`), servicesAtRest{},
			"no transaction has written"},
		{"a tree that goes back", shown("a", treePath, `"numbers":[3,3,3]`) + shown("a", treePath, `"numbers":[1,1,1]`),
			servicesAtRest{}, "1 after 3"},

		{"ids", given("a", "1", "1,20") + given("b", "1", "21,30") + given("a", "2", "31,31,40,64"), servicesAtRest{},
			""},
		{"ids that are given twice", given("a", "1", "1,20") + given("b", "1", "18,30"), servicesAtRest{},
			"18, which was given before"},
		{"ids that fall", given("a", "1", "10,20") + given("a", "2", "1,5"), servicesAtRest{}, "1 after 20"},

		{"adds", add("1", "2", "9", "2") + add("2", "3", "5", "1"), servicesAtRest{counter: 2}, ""},
		{"an add that counts twice", add("1", "2", "5", "1"), servicesAtRest{counter: 2}, "after 1 adds"},
		{"an add that does not count", add("1", "2", "5", "1") + add("2", "6", "7", "2"), servicesAtRest{counter: 1},
			"from 0 to 1"},
		{"an add with an unknown outcome that counts", call("a", "1", "2", "5", "add", counterPath, "", unknown),
			servicesAtRest{counter: 1}, ""},
		{"an add that was given up and counts", call("a", "1", "2", "5", "add", counterPath, "", abandoned),
			servicesAtRest{counter: 1}, "after 0 adds"},
		{"two adds with one sum", add("1", "2", "5", "1") + add("2", "6", "7", "1"), servicesAtRest{counter: 2},
			"both return 1"},
		{"a sum that falls", add("1", "2", "5", "2") + add("2", "6", "7", "1"), servicesAtRest{counter: 2},
			"before an add with a smaller sum began"},

		{"an empty list of instances", shown("a", instancesPath, `"listed":{"b.1":3}`), servicesAtRest{},
			"without static"},
		{"members", shown("a", groupPath, `"numbers":[3,5],"listed":{"b.1":3}`) + shown("a", groupPath,
			`"numbers":[5,7],"listed":{"b.1":4}`), servicesAtRest{}, ""},
		{"changes of members out of order", shown("a", groupPath, `"numbers":[3,5]`) + shown("a", groupPath,
			`"numbers":[4]`), servicesAtRest{}, "transaction 4 after 5"},
		{"an older number of a member after a newer one", shown("a", groupPath, `"listed":{"b.1":3}`) +
			shown("a", groupPath, `"listed":{"b.1":2}`), servicesAtRest{}, "2 of b.1 after 3"},
		{"a drain", drained("8") + drain("1", "5", "9"), servicesAtRest{}, ""},
		{"a drain that is acknowledged when it begins", drain("1", "5", "7") + drained("8"), servicesAtRest{},
			"no drain function has ended"},
		{"a drain that an earlier one acknowledges", drained("8") + drain("1", "5", "9") + uncordon + drain("2", "30",
			"35"), servicesAtRest{}, "no drain function has ended"},
		{"a second drain", drained("8") + drain("1", "5", "9") + uncordon + drained("32") + drain("2", "30", "35"),
			servicesAtRest{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, checker := newHistory(newSummary(1)), newChecker(t.TempDir())
			replayEvents(t, h, c.events)
			s := h.takeSegment()
			s.until, s.atRest = 100, &c.at
			wrong := checker.checkSegment(1, s, nil)
			if c.wrong == "" {
				require.Empty(t, wrong)
				return
			}
			require.NotEmpty(t, wrong)
			require.ErrorContains(t, wrong[0], c.wrong)
		})
	}
}

// TestListingsAtRest checks that each living process must list the living instances and members,
// and no others.
func TestListingsAtRest(t *testing.T) {
	const join = `a {"t":1,"op":1,"step":"requested","kind":"join","path":"/instances","item":"a.1","number":1}
		a {"t":2,"op":1,"step":"granted"}
		`
	update := func(outcome string) string {
		return `a {"t":3,"op":2,"step":"requested","kind":"update","path":"/instances","item":"a.1","number":2}
			a {"t":4,"op":2,"step":"` + outcome + `"}
			`
	}
	list := func(listed string) string {
		return `b {"t":5,"step":"shown","path":"/instances","listed":{"static":0` + listed + "}}\n"
	}
	for _, c := range []struct{ name, events, wrong string }{
		{"listed", join + list(`,"a.1":1`), ""},
		{"not listed", join + list(""), "lists a.1 with 0 (false)"},
		{"listed as it was before an update", join + update("granted") + list(`,"a.1":1`), "which has 2"},
		{"listed with an update whose outcome is unknown", join + update("unknown") + list(`,"a.1":2`), ""},
		{"listed as it was, while an update has an unknown outcome", join + update("unknown") + list(`,"a.1":1`), ""},
		{"listed after its process has died", join + "a x\n" + list(`,"a.1":1`), "lists a.1, which is gone"},
		{"gone with its process", join + "a x\n" + list(""), ""},
		{"listed after it was unregistered",
			join + `a {"t":3,"op":2,"step":"requested","kind":"leave","path":"/instances","item":"a.1"}` + "\n" +
				list(`,"a.1":1`), "lists a.1, which is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory(newSummary(1))
			replayEvents(t, h, c.events)
			var wrong []string
			for _, text := range h.notShown(nil) {
				if strings.Contains(text, instancesPath+": b ") {
					wrong = append(wrong, text)
				}
			}
			if c.wrong == "" {
				require.Empty(t, wrong)
				return
			}
			require.Len(t, wrong, 1)
			require.Contains(t, wrong[0], c.wrong)
		})
	}
}
