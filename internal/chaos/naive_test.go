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

// cutHolder waits until a naive client holds, and cuts its server off from the leader.
func (r *run) cutHolder(a *arena, _ *rand.Rand) (func() error, error) {
	for {
		for i, c := range a.clients {
			if r.record.holds(c.name()) {
				return a.reunite, a.CutOff(a.Leader(), r.homes[i])
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// holds tells whether a process has been granted something that it has not given back.
func (r *record) holds(process string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.open {
		if x.process == process && x.grant.At > 0 {
			return true
		}
	}
	return false
}

// shows fails unless a violation at a path, and nothing else, was written down, and removes it.
func (j *judge) shows(t *testing.T, path string) {
	t.Helper()
	require.Len(t, j.places, 2, "a picture and the history")
	for i, want := range []string{"<html", `"step":"granted"`} {
		text, err := os.ReadFile(j.places[i])
		require.NoError(t, err)
		require.Contains(t, string(text), want)
		require.NoError(t, os.Remove(j.places[i]))
	}
	require.Contains(t, filepath.Base(j.places[0]), strings.Trim(path, "/"))
}
