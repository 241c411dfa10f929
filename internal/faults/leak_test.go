package faults

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// testTimedOutTries gives up ten thousand waits for a lock, on one session and behind a waiter that
// stays. Neither nodes nor watches remain of them.
func testTimedOutTries(t *testing.T, a *arena) {
	const tries, goroutines = 10000, 40
	steady := a.at(0, 1, 2)
	steady.SessionTimeout = longTimeout
	r := &record{t: t, path: "/" + t.Name()}
	holder, err := r.lock("the holder", client(t, steady))
	require.NoError(t, err)
	next, err := r.queue("the waiter", client(t, steady))
	require.NoError(t, err)
	c := client(t, steady)
	m := locks.NewMutex(c, r.path)
	require.NoError(t, together(goroutines, func(int) error {
		for range tries / goroutines {
			if err := giveUp(t.Context(), m); err != nil {
				return err
			}
		}
		return nil
	}))
	require.False(t, holder.over(), "the holder was lost meanwhile")
	wantTwo(t, c, r.path)
	wantFewWatches(t, a, c, holder.lease.Node())
	holder.release(t.Context())
	await(t, next).release(t.Context())
}

// giveUp waits for the lock, which is held, until a random moment of the wait.
func giveUp(ctx context.Context, m *locks.Mutex) error {
	ctx, cancel := context.WithTimeout(ctx, upTo(40*time.Millisecond))
	defer cancel()
	_, err := m.Lock(ctx)
	return want("a wait that ends with its context", ctx.Err() != nil && err != nil, err)
}

// wantTwo waits until the holder and the waiter are all that is left.
func wantTwo(t *testing.T, c *framework.Client, path string) {
	t.Helper()
	eventually(t, func() error {
		names, _, err := c.Children(t.Context(), path)
		return errors.Join(err, want("two contenders", len(names) == 2, names))
	})
}

// wantFewWatches fails if a session watches a node below held's directory that is gone, or one node
// twice. The waiter's watch on held must be seen, else the servers' report was misread.
func wantFewWatches(t *testing.T, a *arena, c *framework.Client, held string) {
	t.Helper()
	dir, _ := framework.Split(held)
	seen := map[string]bool{}
	for path, session := range watches(t, a) {
		if above, _ := framework.Split(path); above != dir {
			continue
		}
		require.False(t, seen[path+session], "session %s watches %s twice", session, path)
		seen[path+session] = true
		_, err := c.Exists(t.Context(), path)
		require.NoError(t, err, "session %s watches a node that is gone", session)
	}
	require.NotEmpty(t, seen)
	require.LessOrEqual(t, len(seen), 4, "two nodes, two sessions: %v", seen)
}

// watches yields what the servers report as "wchp": the paths that are watched, each followed by an
// indented line for each session that does.
func watches(t *testing.T, a *arena) iter.Seq2[string, string] {
	return func(yield func(path, session string) bool) {
		for i := range a.Size() {
			answer, err := a.FourLetter(i, "wchp")
			require.NoError(t, err)
			path := ""
			for line := range strings.Lines(answer) {
				session, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "\t")
				if !indented {
					path = session
				} else if !yield(path, session) {
					return
				}
			}
		}
	}
}
