package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestOldRoundsAreRemoved checks which nodes exist after five rounds.
func TestOldRoundsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		j := job{Workers: 3, Items: 8, Effort: time.Second, Until: time.Now().Add(50 * time.Second)}
		errs := make(chan error, j.Workers)
		for n := range j.Workers {
			m := zk.Member(t, fmt.Sprintf("worker-%d", n), framework.Config{})
			go func() {
				w := newWorker(m.Client, j, func(event) {})
				err := w.run(t.Context())
				errs <- errors.Join(err, w.items.Close(t.Context()))
			}()
		}
		for range j.Workers {
			require.NoError(t, <-errs)
		}
		rounds := zk.Children(roundsPath)
		require.Len(t, rounds, 2, "the last, and the one before")
		last, err := strconv.Atoi(rounds[1])
		require.NoError(t, err)
		require.Greater(t, last, 4)
		node, ok := zk.Node(reportPath(last))
		require.True(t, ok)
		var r result
		require.NoError(t, json.Unmarshal(node.Data, &r))
		require.Equal(t, result{Sum: int64(last) * j.sum(), Rounds: last, Last: true, Leader: r.Leader, Token: r.Token},
			r)
	})
}

// TestResultIsRightAfterLostSessions cuts the workers off from the servers, one after the other, at
// any point of their work. Each time lasts longer than the session timeout.
func TestResultIsRightAfterLostSessions(t *testing.T) {
	for start := range 8 {
		synctest.Test(t, func(t *testing.T) { runWithLostSessions(t, time.Duration(start)*137*time.Millisecond) })
	}
}

func runWithLostSessions(t *testing.T, start time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	zk := zktest.Start(t)
	j := job{Workers: 3, Items: 30, Effort: time.Second}
	var mu sync.Mutex
	counts, returned := map[kind]int{}, 0
	emit := func(e event) {
		mu.Lock()
		defer mu.Unlock()
		counts[e.Kind]++
		if e.Attempt > 1 {
			returned++
		}
	}
	var workers sync.WaitGroup
	errs := make(chan error, j.Workers)
	var links []*zktest.Link
	for n := range j.Workers {
		m := zk.Member(t, fmt.Sprintf("worker-%d", n), framework.Config{SessionTimeout: 10 * time.Second})
		links = append(links, m.Link)
		workers.Go(func() {
			w := newWorker(m.Client, j, emit)
			err := w.run(ctx)
			if e := w.items.Close(ctx); err == nil {
				err = e
			}
			errs <- err
		})
	}
	time.Sleep(start)
	for n := range 2 * j.Workers {
		time.Sleep(3 * time.Second)
		links[n%j.Workers].Cut()
		time.Sleep(15 * time.Second)
		links[n%j.Workers].Heal()
	}
	workers.Wait()
	for range j.Workers {
		require.NoError(t, <-errs)
	}
	require.Positive(t, returned, "sessions were lost with items")
	require.LessOrEqual(t, counts[worked], j.total())
	require.GreaterOrEqual(t, counts[worked]+counts[repeated], j.total(), "a result whose reply was lost is found")
	for p := range phases {
		require.Len(t, zk.Children(resultsPath(1, p)), j.Items)
	}
	node, ok := zk.Node(reportPath(1))
	require.True(t, ok)
	var r result
	require.NoError(t, json.Unmarshal(node.Data, &r))
	require.Equal(t, j.sum(), r.Sum)
}
