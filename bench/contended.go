package main

import (
	"context"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// contended is W2.
func contended(s settings) error {
	clients, err := openAll(s, orDefault(s.c, 32))
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	mutexes := make([]locks.Locker, len(clients))
	for i, c := range clients {
		mutexes[i] = locks.NewMutex(c, root+"/w2", s.options()...)
	}
	var g criticalSection
	t, err := contend(s, &g, mutexes)
	if err != nil {
		return err
	}
	return contentionResult(s, &g, t).print()
}

// contendedInProcess is W3.
func contendedInProcess(s settings) error {
	if s.procs > 1 {
		return contendedByProcesses(s)
	}
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	var g criticalSection
	t, err := contend(s, &g, sharedMutexes(s, c, root+"/w3"))
	if err != nil {
		return err
	}
	return contentionResult(s, &g, t).print()
}

// sharedMutexes returns the same mutex for each goroutine of a client.
func sharedMutexes(s settings, c *framework.Client, path string) []locks.Locker {
	return slices.Repeat([]locks.Locker{locks.NewMutex(c, path, s.options()...)}, orDefault(s.c, 32))
}

// contend runs one contender for each locker.
func contend(s settings, g *criticalSection, lockers []locks.Locker) (tally, error) {
	ctx := context.Background()
	t, err := loop(s, len(lockers), func(who int, measured func() bool) error {
		return g.pass(ctx, lockers[who], who, measured)
	})
	if err == nil && sum(t.all) != g.entries {
		err = errViolated
	}
	return t, err
}

// contentionResult returns the result of one process.
func contentionResult(s settings, g *criticalSection, t tally) *result {
	params := s.params(map[string]any{"c": len(t.counts)})
	r := newResult(s, "lockstep", params, sum(t.counts), t.took, g.handoffs).requests(t.traffic)
	r.Self, r.Least, r.Most = &g.self, ptr(slices.Min(t.counts)), ptr(slices.Max(t.counts))
	return r
}
