package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

// ticks is T: -n jobs spread over -c members with own sessions, 1.2 ticks a minute each, all at whole seconds:
// 200 a second for 10,000 jobs. A lap is the time from the scheduled time to the call of the job's function.
// Requests are those of a tick, the members' proofs of life included. Bytes are the heap that a job takes in
// a member, whether or not it belongs to it.
func ticks(s settings) error {
	members, jobs := or(s.c, 10), or(s.n, 10_000)
	clients, err := openAll(s, members)
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	g := &tickGauge{seen: map[string]bool{}}
	before := measureMemory()
	ctx, stop := context.WithCancel(context.Background())
	cluster, err := g.start(ctx, clients, jobs)
	defer func() {
		stop()
		cluster.Wait()
	}()
	if err != nil {
		return err
	}
	if err := registered(ctx, clients[0], g.path, jobs); err != nil {
		return err
	}
	time.Sleep(max(s.warmup, 5*time.Second)) // each member reads the states of its jobs once
	after := measureMemory()
	traffic := s.traffic()
	g.measure(true)
	time.Sleep(s.span)
	g.measure(false)
	traffic = s.traffic().since(traffic)
	laps, err := g.result()
	if err != nil {
		return err
	}
	r := newResult(s, "lockstep", map[string]any{"c": members, "jobs": jobs}, len(laps), s.span, laps).requests(traffic)
	r.JobBytes = of((after.heap + after.stack - before.heap - before.stack) / members / jobs)
	return r.print()
}

// tickGauge measures the jobs' ticks.
type tickGauge struct {
	path string

	mu     sync.Mutex
	on     bool
	laps   []time.Duration
	seen   map[string]bool
	failed error
}

// start starts a scheduler on each client, all with the same jobs.
func (g *tickGauge) start(ctx context.Context, clients []*framework.Client, jobs int) (*sync.WaitGroup, error) {
	g.path = fmt.Sprintf("%s/ticks-%d", root, rand.Int64())
	var all sync.WaitGroup
	for _, c := range clients {
		s := scheduler.New(c, g.path)
		for i := range jobs {
			spec := fmt.Sprintf("%d * * * * *", i%60)
			if i%5 == 0 {
				spec = fmt.Sprintf("%d,%d * * * * *", i/5%30, i/5%30+30)
			}
			if err := s.Add(scheduler.Job{Name: fmt.Sprintf("j%05d", i), Spec: spec, Placement: scheduler.Spread, Run: g.run}); err != nil {
				return &all, err
			}
		}
		all.Go(func() {
			if err := s.Run(ctx); err != nil {
				g.fail(err)
			}
		})
	}
	return &all, nil
}

func (g *tickGauge) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = errors.Join(g.failed, err)
}

// run measures how late a tick is, and checks that it runs once.
func (g *tickGauge) run(_ context.Context, run scheduler.Run) error {
	late := time.Since(run.Tick)
	g.mu.Lock()
	defer g.mu.Unlock()
	key := run.Job + run.ID
	if g.seen[key] {
		g.failed = errors.Join(g.failed, fmt.Errorf("%s of %s ran twice", run.ID, run.Job))
	}
	g.seen[key] = true
	if g.on {
		g.laps = append(g.laps, late)
	}
	return nil
}

func (g *tickGauge) measure(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on = on
}

func (g *tickGauge) result() ([]time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.laps) == 0 {
		return nil, errors.Join(g.failed, errors.New("no tick has run"))
	}
	return g.laps, g.failed
}

// registered waits until so many jobs are stored.
func registered(ctx context.Context, c *framework.Client, path string, jobs int) error {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		names, _, err := c.Children(ctx, path+"/jobs")
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		if len(names) == jobs {
			return nil
		}
	}
	return errors.New("the jobs were not registered in two minutes")
}
