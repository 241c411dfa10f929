package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// testTimedOutTries gives up ten thousand waits for a lock. Neither nodes nor watches stay.
func testTimedOutTries(t *testing.T, a *arena) {
	const tries, goroutines = 10000, 40
	path := "/" + t.Name()
	steady := a.at(0, 1, 2)
	steady.SessionTimeout = longTimeout
	holder, err := locks.NewMutex(client(t, steady), path).Lock(t.Context())
	require.NoError(t, err)
	c := client(t, steady)
	m := locks.NewMutex(c, path)
	require.NoError(t, together(goroutines, func(int) error {
		for range tries / goroutines {
			if err := giveUp(t.Context(), m); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, holder.Err(), "the holder was lost meanwhile")
	wantOnly(t, c, path, holder.Node())
	wantFewWatches(t, a, path, holder.Node())
	require.NoError(t, holder.Release(t.Context()))
}

// giveUp waits for the lock, which is held, until a random moment of the wait.
func giveUp(ctx context.Context, m *locks.Mutex) error {
	ctx, cancel := context.WithTimeout(ctx, upTo(40*time.Millisecond))
	defer cancel()
	_, err := m.Lock(ctx)
	return want("a wait that ends with its context", ctx.Err() != nil && err != nil, err)
}

// wantOnly waits until node is all that is left at path.
func wantOnly(t *testing.T, c *framework.Client, path, node string) {
	t.Helper()
	_, name := framework.Split(node)
	eventually(t, func() error {
		names, _, err := c.Children(t.Context(), path)
		if err != nil {
			return err
		}
		return want("the holder's node alone", len(names) == 1 && names[0] == name, names)
	})
}

// wantFewWatches fails unless the one watch of the one session that has waited, or none, is all
// that the servers know of at path.
func wantFewWatches(t *testing.T, a *arena, path, node string) {
	t.Helper()
	var watched []string
	for i := range a.Size() {
		answer, err := a.FourLetter(i, "wchp") // a path, then one indented line for each session that watches it
		require.NoError(t, err)
		at := ""
		for line := range strings.Lines(answer) {
			line = strings.TrimRight(line, "\n")
			if !strings.HasPrefix(line, "\t") {
				at = line
			} else if strings.HasPrefix(at, path) {
				watched = append(watched, at)
			}
		}
	}
	require.LessOrEqual(t, len(watched), 1, "%v", watched)
	for _, p := range watched {
		require.Equal(t, node, p)
	}
}
