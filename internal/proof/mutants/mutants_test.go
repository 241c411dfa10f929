package mutants

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var all = flag.Bool("mutants", false, "build and test every mutant, not a sample")

// root is the module's.
const root = "../../.."

// mutant is the code without one safeguard of a promise.
type mutant struct {
	promise string // how it begins in docs/guarantees.md
	name    string // unique within its list
	file    string // from the module's root
	old     string // occurs exactly once in the file
	new     string
	pkg     string // of the test, such as "./locks"; by default the file's own
	test    string // a test that must fail; alternatives with "|" between
}

// lists are the mutants of each package.
var lists = map[string][]mutant{
	"barrier":   barrierMutants,
	"cmd":       cmdMutants,
	"config":    configMutants,
	"election":  electionMutants,
	"framework": frameworkMutants,
	"ids":       idsMutants,
	"link":      linkMutants,
	"locks":     locksMutants,
	"members":   membersMutants,
	"monitor":   monitorMutants,
	"queue":     queueMutants,
	"redislock": redislockMutants,
	"registry":  registryMutants,
	"scheduler": schedulerMutants,
	"service":   serviceMutants,
	"unused":    unusedMutants,
	"watchdog":  watchdogMutants,
	"workflow":  workflowMutants,
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEachMutantIsCaught tests every mutant with -mutants, and without it one of each list: another
// one each day. With -short it takes every fourth list, others the next days. "make mutants" runs
// all; LIST=locks runs one list.
func TestEachMutantIsCaught(t *testing.T) {
	turn := daysSince1970()
	if testing.Short() {
		turn /= shortShare
	}
	for i, name := range slices.Sorted(maps.Keys(lists)) {
		if !isDueToday(i) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			list := lists[name]
			if *all {
				requireEachCaught(t, list)
				return
			}
			m := list[turn%len(list)]
			t.Run(m.name, func(t *testing.T) { m.requireCaughtAlone(t) })
		})
	}
}

// shortShare is how many days -short takes for all lists.
const shortShare = 4

// isDueToday reports whether the list of this index is tested today.
func isDueToday(i int) bool { return !testing.Short() || (i+daysSince1970())%shortShare == 0 }

// daysSince1970 chooses what is tested today.
func daysSince1970() int { return int(time.Now().Unix() / (24 * 60 * 60)) }

// TestMutantsFitTheCode finds mutants whose safeguard or whose test has moved, without building
// anything.
func TestMutantsFitTheCode(t *testing.T) {
	for name, list := range lists {
		names := map[string]bool{}
		for _, m := range list {
			require.False(t, names[m.name], "%s: %q is there twice", name, m.name)
			names[m.name] = true
			_, err := m.change().Apply(root)
			require.NoError(t, err, "%s: %s", name, m.name)
			for test := range strings.SplitSeq(m.test, "|") {
				require.True(t, declares(t, m.directory(), strings.TrimSpace(test)),
					"%s: %s: %s has no test %q", name, m.name, m.directory(), test)
			}
		}
	}
}

// TestMutantsFitThePromises finds mutants that guard no promise: they are not worth their upkeep.
func TestMutantsFitThePromises(t *testing.T) {
	guarantees, err := os.ReadFile(filepath.Join(root, "docs/guarantees.md"))
	require.NoError(t, err)
	for name, list := range lists {
		for _, m := range list {
			require.NotEmpty(t, m.promise, "%s: %s names no promise", name, m.name)
			require.Contains(t, string(guarantees), "\n- "+m.promise, "%s: %s", name, m.name)
		}
	}
}

// TestMutantsFitTheTypeChecker finds mutants that do not compile, by checking the types of the
// changed packages. With -short it checks every fourth list, others the next days.
func TestMutantsFitTheTypeChecker(t *testing.T) {
	var changes []Change
	for _, list := range lists {
		for _, m := range list {
			changes = append(changes, m.change())
		}
	}
	checker, err := NewTypeChecker(root, changes)
	require.NoError(t, err)
	for i, name := range slices.Sorted(maps.Keys(lists)) {
		if !isDueToday(i) {
			continue
		}
		for _, m := range lists[name] {
			assert.NoError(t, checker.Check(m.change()), "%s: %s", name, m.name)
		}
	}
}

// TestTypeCheckerReportsCompileErrors changes a file so that it, or another file of the package,
// does not compile.
func TestTypeCheckerReportsCompileErrors(t *testing.T) {
	const file = "internal/waitline/uncontended.go"
	for _, c := range []struct {
		change Change
		wrong  string
	}{
		{Change{File: file, Old: "return h.succeeded\n}\n\n// proves", New: "return h\n}\n\n// proves"},
			"uncontended.go"},
		// called elsewhere
		{Change{File: file, Old: "func (h *uncontendedHint) provesAlone(", New: "func (h *uncontendedHint) suggests("},
			"provesAlone undefined"},
		{Change{File: file, Old: "return p.Kind", New: "return p.Kind"}, "occurs 0 times"},
	} {
		checker, err := NewTypeChecker(root, []Change{c.change})
		require.NoError(t, err)
		require.ErrorContains(t, checker.Check(c.change), c.wrong)
	}
}

// TestAChangeFitsOtherLineBreaks: a safeguard does not move when its line is broken in another way.
func TestAChangeFitsOtherLineBreaks(t *testing.T) {
	dir := t.TempDir()
	const source = "f(\n\ta, b,\n\tc)\nf(d, e)\ng(d,\n\te)\ng(d,\ne)\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte(source), 0o600))
	changed, err := Change{File: "x.go", Old: "f(a, b, c)", New: "h()"}.Apply(dir)
	require.NoError(t, err)
	require.Equal(t, "h()\nf(d, e)\ng(d,\n\te)\ng(d,\ne)\n", string(changed))
	changed, err = Change{File: "x.go", Old: "f(d, e)", New: "h()"}.Apply(dir)
	require.NoError(t, err)
	require.Equal(t, "f(\n\ta, b,\n\tc)\nh()\ng(d,\n\te)\ng(d,\ne)\n", string(changed))
	_, err = Change{File: "x.go", Old: "g(d, e)", New: "h()"}.Apply(dir)
	require.ErrorContains(t, err, "occurs 2 times")
	_, err = Change{File: "x.go", Old: "g(d, f)", New: "h()"}.Apply(dir)
	require.ErrorContains(t, err, "occurs 0 times")
}

// declares reports whether a test of the directory has this name.
func declares(t *testing.T, directory, test string) bool {
	files, err := filepath.Glob(filepath.Join(root, directory, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(source), "func "+test+"(") {
			return true
		}
	}
	return false
}

func (m mutant) change() Change { return Change{File: m.file, Old: m.old, New: m.new} }

// directory is where the test is.
func (m mutant) directory() string {
	if m.pkg != "" {
		return m.pkg
	}
	return "./" + path.Dir(m.file)
}

// pattern selects the test that must fail.
func (m mutant) pattern() string { return "^(" + strings.ReplaceAll(m.test, " ", "") + ")$" }

// requireEachCaught builds the tests of each directory once, with all mutants, and requires that
// they pass without a mutant and that each mutant is caught.
func requireEachCaught(t *testing.T, list []mutant) {
	byDirectory := map[string][]mutant{}
	for _, m := range list {
		byDirectory[m.directory()] = append(byDirectory[m.directory()], m)
	}
	for _, directory := range slices.Sorted(maps.Keys(byDirectory)) {
		group := byDirectory[directory]
		dir := t.TempDir()
		overlay, apart := combine(t, dir, group)
		build := sync.OnceValue(func() builtTests { return buildTests(t, directory, dir, overlay) })
		t.Run("no mutant in "+path.Base(directory), func(t *testing.T) {
			var patterns []string
			for _, m := range group {
				patterns = append(patterns, m.pattern())
			}
			out, err := build().run(t, 0, strings.Join(patterns, "|"))
			require.NoError(t, err, "%s", out)
		})
		for i, m := range group {
			t.Run(m.name, func(t *testing.T) {
				if slices.Contains(apart, i) {
					m.requireCaughtAlone(t)
					return
				}
				m.requireCaught(t, build(), i+1)
			})
		}
	}
}

// mutantTries is how often a test may pass with a mutant before the mutant counts as unnoticed.
// Some tests draw their faults at random, and notice a mutant most of the time.
const mutantTries = 5

// combine combines mutants, and returns the indexes of those that need a build of their own.
func combine(t *testing.T, dir string, group []mutant) (overlay string, apart []int) {
	var changes []Change
	for _, m := range group {
		changes = append(changes, m.change())
	}
	overlay, apart, err := Combine(root, dir, changes)
	require.NoError(t, err)
	return overlay, apart
}

// builtTests are the tests of a directory, built with one mutant or with many.
type builtTests struct{ directory, binary string }

// buildTests builds the tests. It takes as long as the machine needs: only the tests themselves
// have a time limit.
func buildTests(t *testing.T, directory, dir, overlay string) builtTests {
	tests := builtTests{directory, filepath.Join(dir, "mutants.test")}
	command := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay,
		"-o", tests.binary, directory)
	command.Dir = root
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return tests
}

// run runs the tests of a pattern with one mutant, or with none if number is 0. A build of one
// mutant takes no notice of the number.
func (c builtTests) run(t *testing.T, number int, pattern string) ([]byte, error) {
	timeout := "30s"
	if number == 0 {
		timeout = "5m"
	}
	command := exec.CommandContext(t.Context(), c.binary, "-test.count=1", "-test.timeout="+timeout,
		"-test.run", pattern)
	command.Dir = filepath.Join(root, c.directory)
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", SwitchVariable, number))
	command.WaitDelay = time.Second
	return command.CombinedOutput()
}

// requireCaughtAlone tests a mutant with a build of its own.
func (m mutant) requireCaughtAlone(t *testing.T) {
	dir := t.TempDir()
	overlay, err := m.change().Overlay(root, dir)
	require.NoError(t, err)
	m.requireCaught(t, buildTests(t, m.directory(), dir, overlay), 1)
}

// requireCaught requires that the test fails, hangs or panics.
func (m mutant) requireCaught(t *testing.T, tests builtTests, number int) {
	out, err := tests.run(t, number, m.pattern())
	for tries := 1; err == nil && tries < mutantTries; tries++ {
		out, err = tests.run(t, number, m.pattern())
	}
	require.Error(t, err, "%s passes without the safeguard, %d times\n%s", m.test, mutantTries, out)
	require.NotContains(t, string(out), "no tests to run", "%s", out)
	require.Regexp(t, `--- FAIL: |panic: |fatal error: |DATA RACE`, string(out))
}
