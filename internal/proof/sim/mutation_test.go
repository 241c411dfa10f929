package sim

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/mutants"
)

var mutate = flag.Bool("mutants", false, "test the checkers: each mutant must be caught")

// mutant is the code without one safeguard.
type mutant struct {
	name    string
	file    string
	old     string // occurs once in file
	new     string
	recipes string // to run
	rule    string // that the mutant must break, or any
}

// TestEachMutantIsCaught removes the safeguards one at a time, by an overlay of the compiler. A
// mutant that survives shows that a checker is blind, or that the safeguard is not needed.
func TestEachMutantIsCaught(t *testing.T) {
	if !*mutate {
		t.Skip("builds the simulation once for each mutant, which takes minutes: run make sim-mutants")
	}
	var changes []mutants.Change
	for _, m := range mutantList {
		changes = append(changes, m.change())
	}
	dir := t.TempDir()
	overlay, apart, err := mutants.Combine("../../..", dir, changes)
	require.NoError(t, err)
	combined := build(t, dir, overlay)
	for i, m := range mutantList {
		t.Run(m.name, func(t *testing.T) {
			if slices.Contains(apart, i) {
				dir := t.TempDir()
				overlay, err := m.change().Overlay("../../..", dir)
				require.NoError(t, err)
				m.requireCaught(t, build(t, dir, overlay), 0)
				return
			}
			m.requireCaught(t, combined, i+1)
		})
	}
}

// TestMutantsFitTheCode finds mutants whose text has moved, without building anything.
func TestMutantsFitTheCode(t *testing.T) {
	for _, m := range mutantList {
		_, err := m.change().Apply("../../..")
		require.NoError(t, err, m.name)
	}
}

// TestMutantsFitTheTypeChecker finds mutants that do not compile, by checking the types of the
// changed packages.
func TestMutantsFitTheTypeChecker(t *testing.T) {
	var changes []mutants.Change
	for _, m := range mutantList {
		changes = append(changes, m.change())
	}
	checker, err := mutants.NewTypeChecker("../../..", changes)
	require.NoError(t, err)
	for _, m := range mutantList {
		assert.NoError(t, checker.Check(m.change()), m.name)
	}
}

// mutantSeeds is how many seeds may pass before a mutant counts as survivor.
const mutantSeeds = 1000

// requireCaught runs seeds with the mutant of a combined build that has this number.
func (m mutant) requireCaught(t *testing.T, binary string, number int) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, binary, "-test.run", "^TestRunSeedsUntilRuleIsBroken$", "-seed",
		fmt.Sprint(*firstSeed), "-runs", fmt.Sprint(mutantSeeds), "-recipes", m.recipes,
		"-until", m.rule)
	run.Env = append(os.Environ(), fmt.Sprintf("%s=%d", mutants.SwitchVariable, number))
	out, err := run.CombinedOutput()
	require.Error(t, err, "%s survives %d seeds", m.name, mutantSeeds)
	_, found, caught := strings.Cut(string(out), caughtPrefix)
	if !caught && m.rule == anyRule { // the mutant may hang until the runtime reports a deadlock
		_, found, caught = strings.Cut(string(out), "panic:")
	}
	require.True(t, caught, "%s", tail(out))
	found, _, _ = strings.Cut(found, "\n")
	t.Logf("caught after %.1f s: %s", time.Since(began).Seconds(), strings.TrimSpace(found))
}

// build builds the simulation with mutants in it.
func build(t *testing.T, dir, overlay string) (binary string) {
	binary = filepath.Join(dir, "sim.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary,
		".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

func (m mutant) change() mutants.Change {
	return mutants.Change{File: m.file, Old: m.old, New: m.new}
}

func tail(out []byte) string {
	lines := strings.Split(string(out), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
