package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var mutate = flag.Bool("mutants", false, "check the checkers: each mutant must be caught")

// mutant is the code with one safeguard taken out.
type mutant struct {
	name    string
	file    string
	old     string // is there once
	new     string
	recipes string // that are played
	rule    string // that must be broken, among others, or any
}

// TestEachMutantIsCaught takes the safeguards out one at a time, in an overlay of the compiler's: the code itself
// has no switches. A mutant that survives means that a checker is blind, or that the safeguard is none.
func TestEachMutantIsCaught(t *testing.T) {
	if !*mutate {
		t.Skip("it builds the simulation many times, which takes minutes: make sim-mutants")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) { m.requireCaught(t) })
	}
}

// TestMutantsFitTheCode finds mutants whose safeguard has moved, without building anything.
func TestMutantsFitTheCode(t *testing.T) {
	for _, m := range mutants {
		_, source := m.source(t)
		require.NotEqual(t, source, m.mutate(t, source), m.name)
	}
}

// mutantSeeds is how many seeds a mutant may survive.
const mutantSeeds = 400

func (m mutant) requireCaught(t *testing.T) {
	binary := m.build(t)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, binary, "-test.run", "^TestUntilCaught$", "-seed", fmt.Sprint(*firstSeed), "-runs", fmt.Sprint(mutantSeeds), "-recipes", m.recipes,
		"-until", m.rule)
	out, err := run.CombinedOutput()
	require.Error(t, err, "%s survives %d seeds", m.name, mutantSeeds)
	_, found, caught := strings.Cut(string(out), caughtMark)
	if !caught && m.rule == anyRule { // it may hang for ever, whatever is done to end it
		_, found, caught = strings.Cut(string(out), "panic:")
	}
	require.True(t, caught, "%s", tail(out))
	found, _, _ = strings.Cut(found, "\n")
	t.Logf("caught after %.1f s: %s", time.Since(began).Seconds(), strings.TrimSpace(found))
}

// build builds the simulation with the mutant in it.
func (m mutant) build(t *testing.T) string {
	dir := t.TempDir()
	original, source := m.source(t)
	mutated := filepath.Join(dir, "mutated.go")
	require.NoError(t, os.WriteFile(mutated, m.mutate(t, source), 0o600))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))
	binary := filepath.Join(dir, "sim.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// source reads the file that the mutant changes.
func (m mutant) source(t *testing.T) (path string, source []byte) {
	path, err := filepath.Abs(filepath.Join("../..", m.file))
	require.NoError(t, err)
	source, err = os.ReadFile(path)
	require.NoError(t, err)
	return path, source
}

func (m mutant) mutate(t *testing.T, source []byte) []byte {
	require.Equal(t, 1, bytes.Count(source, []byte(m.old)), "%s has changed: the mutant's text is not there once:\n%s", m.file, m.old)
	return bytes.Replace(source, []byte(m.old), []byte(m.new), 1)
}

func tail(out []byte) string {
	lines := strings.Split(string(out), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
