//go:build linux

package chaos

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cutOffNaiveHolder waits until a naive client holds, and cuts its server off from the leader.
func (r *harness) cutOffNaiveHolder(env *testEnv, _ *rand.Rand) (func() error, error) {
	for {
		for i, c := range env.clients {
			if r.history.isHolding(c.name()) {
				return env.healServerLinks, env.CutOff(env.Leader(), r.naiveServers[i])
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// isHolding reports whether a process has an open grant.
func (h *history) isHolding(process string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, op := range h.open {
		if op.process == process && op.grant.At > 0 {
			return true
		}
	}
	return false
}

// removeEvidence removes the pictures and histories.
func (c *checker) removeEvidence() {
	for _, file := range c.evidenceFiles {
		_ = os.Remove(file) // it is there
	}
}

// requireEvidence requires the picture and the history of one violation at a path, and removes
// them.
func (c *checker) requireEvidence(t *testing.T, path string) {
	t.Helper()
	require.Len(t, c.evidenceFiles, 2, "a picture and the history")
	for i, want := range []string{"<html", `"step":"granted"`} {
		text, err := os.ReadFile(c.evidenceFiles[i])
		require.NoError(t, err)
		require.Contains(t, string(text), want)
		require.NoError(t, os.Remove(c.evidenceFiles[i]))
	}
	require.Contains(t, filepath.Base(c.evidenceFiles[0]), strings.Trim(path, "/"))
}
