//go:build unix

package ui_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/queue"
)

// TestASessionListsWhatItHas of each recipe, and the list of sessions counts it.
func TestASessionListsWhatItHas(t *testing.T) { synctest.Test(t, testASessionListsWhatItHas) }

func testASessionListsWhatItHas(t *testing.T) {
	s := newStage(t)
	fill(t, s, "one")
	fillMore(t, s)
	q := queue.New(s.member(t, "takes", "takes"), "/queues/one", codec.Text())
	defer q.Close(t.Context())
	_, err := q.Take(t.Context())
	require.NoError(t, err)
	gate, err := barrier.NewGate(s.member(t, "gate", "gate"), "/gates/one").Hold(t.Context())
	require.NoError(t, err)
	defer gate.Release(t.Context())
	time.Sleep(time.Minute)
	page := func(name string) (words string) {
		t.Helper()
		for _, row := range decoded[[]map[string]any](t, s, "sessions.json") {
			if row["owner"] == name {
				words += s.words(t, "session?id="+row["session"].(string))
			}
		}
		require.NotEmpty(t, words, name)
		return words
	}
	for name, has := range map[string][]string{
		"one": {"locks/ one holds", "locks/ one waits for", "elections/ one leads", "groups/ one is a member of",
			"services/ one is an instance of", "jobs/ one starts the runs of", "queues/ one puts items into"},
		"more":  {"elections/ two leads", "elections/ two stands by at", "barriers/ one waits at"},
		"takes": {"queues/ one has an item of"},
		"gate":  {"gates/ one has raised"},
	} {
		words := page(name)
		for _, one := range has {
			require.Contains(t, words, one, name)
		}
	}
	for _, row := range decoded[[]map[string]any](t, s, "sessions.json") {
		if row["owner"] == "takes" {
			require.EqualValues(t, 1, row["items"])
		}
	}
	require.Contains(t, s.words(t, "session?id=0x7b"), "It has nothing here")
}

func decoded[T any](t *testing.T, s *stage, target string) (v T) {
	t.Helper()
	require.NoError(t, json.NewDecoder(s.get(t, target).Body).Decode(&v))
	return v
}
