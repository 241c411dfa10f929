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

// ticks is T: -n jobs spread over -c members with a session each. Each job has 1.2 ticks a minute,
// all at whole seconds: 200 a second for 10,000 jobs. A lap is the time from the scheduled time to
// the call of the job's function. The requests per tick include the members' heartbeats. Bytes are
// the heap that a job takes in a member, also in a member that does not run the job.
func ticks(s settings) error {
	members, jobs := orDefault(s.c, 10), orDefault(s.n, 10_000)
	clients, err := openAll(s, members)
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	g := &tickRecorder{seen: map[string]bool{}}
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
	if err := awaitRegistered(ctx, clients[0], g.path, jobs); err != nil {
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
	r.JobBytes = ptr((after.heap + after.stack - before.heap - before.stack) / members / jobs)
	return r.print()
}

// tickRecorder measures the jobs' ticks.
type tickRecorder struct {
	path string

	mu     sync.Mutex
	on     bool
	laps   []time.Duration
	seen   map[string]bool
	failed error
}

// start starts a scheduler on each client, all with the same jobs.
func (r *tickRecorder) start(ctx context.Context, clients []*framework.Client, jobs int) (*sync.WaitGroup, error) {
	r.path = fmt.Sprintf("%s/ticks-%d", root, rand.Int64())
	var all sync.WaitGroup
	for _, c := range clients {
		s := scheduler.New(c, r.path)
		for i := range jobs {
			spec := fmt.Sprintf("%d * * * * *", i%60)
			if i%5 == 0 {
				spec = fmt.Sprintf("%d,%d * * * * *", i/5%30, i/5%30+30)
			}
			if err := s.Add(scheduler.Job{Name: fmt.Sprintf("j%05d", i), Spec: spec, Placement: scheduler.Spread,
				Run: r.run}); err != nil {
				return &all, err
			}
		}
		all.Go(func() {
			if err := s.Run(ctx); err != nil {
				r.fail(err)
			}
		})
	}
	return &all, nil
}

func (r *tickRecorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = errors.Join(r.failed, err)
}

// run measures how late a tick is, and checks that it runs once.
func (r *tickRecorder) run(_ context.Context, run scheduler.Run) error {
	late := time.Since(run.Tick)
	r.mu.Lock()
	defer r.mu.Unlock()
	key := run.Job + run.ID
	if r.seen[key] {
		r.failed = errors.Join(r.failed, fmt.Errorf("%s of %s ran twice", run.ID, run.Job))
	}
	r.seen[key] = true
	if r.on {
		r.laps = append(r.laps, late)
	}
	return nil
}

func (r *tickRecorder) measure(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = on
}

func (r *tickRecorder) result() ([]time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.laps) == 0 {
		return nil, errors.Join(r.failed, errors.New("no tick has run"))
	}
	return r.laps, r.failed
}

// awaitRegistered waits until this many jobs are stored.
func awaitRegistered(ctx context.Context, c *framework.Client, path string, jobs int) error {
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
