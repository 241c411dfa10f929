package main

import (
	"context"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// contended is W2.
func contended(s settings) error {
	clients, err := openAll(s, or(s.c, 32))
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	mutexes := make([]locks.Locker, len(clients))
	for i, c := range clients {
		mutexes[i] = locks.NewMutex(c, root+"/w2", s.options()...)
	}
	var g guarded
	t, err := contend(s, &g, mutexes)
	if err != nil {
		return err
	}
	return contentionOf(s, &g, t).print()
}

// shared is W3.
func shared(s settings) error {
	if s.procs > 1 {
		return sharedByProcesses(s)
	}
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	var g guarded
	t, err := contend(s, &g, sharing(s, c, root+"/w3"))
	if err != nil {
		return err
	}
	return contentionOf(s, &g, t).print()
}

// sharing is one mutex for all goroutines of a client.
func sharing(s settings, c *framework.Client, path string) []locks.Locker {
	return slices.Repeat([]locks.Locker{locks.NewMutex(c, path, s.options()...)}, or(s.c, 32))
}

// contend runs one contender for each locker.
func contend(s settings, g *guarded, lockers []locks.Locker) (tally, error) {
	ctx := context.Background()
	t, err := loop(s, len(lockers), func(who int, measured func() bool) error {
		return g.pass(ctx, lockers[who], who, measured)
	})
	if err == nil && sum(t.all) != g.entries {
		err = errViolated
	}
	return t, err
}

// contentionOf makes the result of one process.
func contentionOf(s settings, g *guarded, t tally) *result {
	params := s.params(map[string]any{"c": len(t.counts)})
	r := newResult(s, "lockstep", params, sum(t.counts), t.took, g.handoffs).requests(t.traffic)
	r.Self, r.Least, r.Most = &g.self, of(slices.Min(t.counts)), of(slices.Max(t.counts))
	return r
}
