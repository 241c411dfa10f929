package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

// workerProcesses are the workers' processes. Only one goroutine may use them.
type workerProcesses struct {
	*demo.Children[event]
	spared int                 // see options
	byName map[string]*process // those that have not ended
}

type process struct {
	slot, generation int // "worker-2.3" is the third process in the second worker's place
	ready            bool
	killed           bool
}

func newWorkerProcesses(spared int, environment []string) *workerProcesses {
	return &workerProcesses{Children: demo.NewChildren[event](environment), spared: spared,
		byName: map[string]*process{}}
}

func (c *workerProcesses) start(slot, generation int) (name string, err error) {
	name = fmt.Sprintf("worker-%d.%d", slot, generation)
	c.byName[name] = &process{slot: slot, generation: generation}
	return name, c.Start(name)
}

// alive is the number of processes that have not ended.
func (c *workerProcesses) alive() int { return len(c.byName) }

// handleEvent records that a worker is ready, and replaces a worker that was killed. It returns an
// error if a worker has ended with one.
func (c *workerProcesses) handleEvent(e event) (started string, err error) {
	p := c.byName[e.Worker]
	switch e.Kind {
	case ready:
		p.ready = true
	case ended:
		delete(c.byName, e.Worker)
		if p.killed {
			return c.start(p.slot, p.generation+1)
		}
		if e.Reason != "" {
			return "", fmt.Errorf("%s has failed: %s", e.Worker, e.Reason)
		}
	}
	return "", nil
}

// pickToKill picks a busy worker that may be killed: the leader if wantLeader is set, otherwise
// any. It returns "" if there is none.
func (c *workerProcesses) pickToKill(leader string, wantLeader bool) string {
	if p := c.byName[leader]; p != nil && p.slot <= c.spared {
		wantLeader = false
	}
	var names []string
	for name, p := range c.byName {
		if p.ready && !p.killed && p.slot > c.spared && (!wantLeader || name == leader) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[rand.IntN(len(names))]
}

// kill kills a worker, so that it ends as in a crash. It returns false if the worker has ended.
func (c *workerProcesses) kill(name string) bool {
	p := c.byName[name]
	p.killed = c.Kill(name)
	return p.killed
}
