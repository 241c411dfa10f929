package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
)

// workflowRuns is R: what runs of workflows cost, compared with bare requests of the same clients.
// Requests by operation are always counted.
func workflowRuns(s settings) error {
	s.sent = newRequestCounter()
	for _, part := range []func(settings) error{bareWrites, ledgerSteps, runsOfFiveSteps, waitingRuns} {
		if err := part(s); err != nil {
			return err
		}
	}
	return nil
}

// bareWrites measures the floor: a setData, a create, and a create in one transaction with a check,
// as a step's record is.
func bareWrites(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	ctx, dir, i := context.Background(), fmt.Sprintf("%s/r-floor-%d", root, time.Now().UnixNano()), 0
	session, err := c.Session(ctx)
	if err != nil {
		return err
	}
	if err := session.MakeDirs(ctx, dir); err != nil {
		return err
	}
	data := make([]byte, 100)
	next := func() string { i++; return dir + "/" + strconv.Itoa(i) }
	for _, op := range []struct {
		name string
		run  func() error
	}{
		{"setData", func() error { _, err := session.Set(ctx, dir, data, framework.AnyVersion); return err }},
		{"create", func() error { return session.Create(ctx, next(), data, framework.Persistent) }},
		{"check and create", func() error {
			_, err := session.Multi(ctx, framework.CheckOp(dir, framework.AnyVersion),
				framework.CreateOp(next(), data, framework.Persistent))
			return err
		}},
	} {
		if err := series(s, "framework", s.params(map[string]any{"op": op.name}), orDefault(s.n, 3000),
			op.run); err != nil {
			return err
		}
	}
	return setConcurrently(s, orDefault(s.c, 8), orDefault(s.n, 3000), dir)
}

// setConcurrently measures the floor for several concurrent clients: each sets a node of its own.
func setConcurrently(s settings, c, n int, dir string) error {
	clients, err := openAll(s, c)
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	ctx := context.Background()
	errs := make([]error, c)
	start := time.Now()
	var working sync.WaitGroup
	for i, client := range clients {
		working.Go(func() {
			node := fmt.Sprintf("%s/at-once-%d", dir, i)
			errs[i] = client.Create(ctx, node, nil, framework.Persistent)
			for k := 0; k < n/c && errs[i] == nil; k++ {
				_, errs[i] = client.Set(ctx, node, make([]byte, 100), framework.AnyVersion)
			}
		})
	}
	working.Wait()
	return errors.Join(append(errs, newResult(s, "framework", s.params(map[string]any{"op": "setData", "c": c}), n/c*c,
		time.Since(start), nil).print())...)
}

// ledgerSteps measures empty steps of a ledger under a lease, one after the other.
func ledgerSteps(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	ctx, path := context.Background(), fmt.Sprintf("%s/r-ledger-%d", root, time.Now().UnixNano())
	lease, err := locks.NewMutex(c, path+"/lock").Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release(ctx) //nolint:errcheck // the client is closed, too
	var opened *workflow.OpenLedger
	i := 0
	return series(s, "lockstep", s.params(map[string]any{"op": "step of a ledger"}), orDefault(s.n, 3000),
		func() error {
			if i%workflow.MaxSteps == 0 {
				if opened, err = workflow.NewLedger(c, fmt.Sprintf("%s/ledger-%d", path, i)).Open(ctx,
					lease); err != nil {
					return err
				}
			}
			i++
			return opened.Do(ctx, strconv.Itoa(i), func(context.Context, workflow.Key) error { return nil })
		})
}

// executors are members that execute runs, each with a session of its own, and the Workflows that
// start the runs.
type executors struct {
	clients []*framework.Client
	flows   []*workflow.Workflows
	stop    context.CancelFunc
	working sync.WaitGroup
	errs    []error
}

func startExecutors(s settings, path string, members int, functions ...workflow.Function) (*executors, error) {
	clients, err := openAll(s, members)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	k := &executors{clients: clients, stop: stop, errs: make([]error, members)}
	for i, c := range clients {
		flows := workflow.New(c, path)
		k.flows = append(k.flows, flows)
		if err := flows.Register(functions...); err != nil {
			return nil, errors.Join(err, k.close())
		}
		k.working.Go(func() { k.errs[i] = flows.Work(ctx) })
	}
	return k, nil
}

func (e *executors) close() error {
	e.stop()
	e.working.Wait()
	for _, f := range e.flows {
		_ = f.Close(context.Background())
	}
	closeAll(e.clients...)
	return errors.Join(e.errs...)
}

// startAll starts runs with the ids 0 to n-1, in many concurrent goroutines, which share the
// members' sessions.
func (e *executors) startAll(kind workflow.Kind[int, int], n int) error {
	const atOnce = 64
	var starting sync.WaitGroup
	var id atomic.Int64
	errs := make([]error, atOnce)
	for g := range atOnce {
		starting.Go(func() {
			for i := int(id.Add(1)) - 1; i < n && errs[g] == nil; i = int(id.Add(1)) - 1 {
				_, errs[g] = kind.Start(context.Background(), e.flows[g%len(e.flows)], strconv.Itoa(i), i)
			}
		})
	}
	starting.Wait()
	return errors.Join(errs...)
}

// runsOfFiveSteps measures runs of five empty steps, from their start to their end.
func runsOfFiveSteps(s settings) error {
	all, members := orDefault(s.n, 3000), orDefault(s.c, 8)
	kind := workflow.NewKind[int, int]("five")
	function := kind.Function(func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
		for i := range 5 {
			if err := run.Do(ctx, strconv.Itoa(i),
				func(context.Context, workflow.Key) error { return nil }); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	for _, n := range []int{all / 3, all} { // the first ones warm up
		path := fmt.Sprintf("%s/r-runs-%d", root, time.Now().UnixNano())
		k, err := startExecutors(s, path, members, function)
		if err != nil {
			return err
		}
		before, start := s.sent.snapshot(), time.Now()
		err = k.startAll(kind, n)
		if err == nil {
			err = waitForAll(s, path, n)
		}
		took, sent := time.Since(start), traffic{-1, s.sent.snapshot()}.since(traffic{-1, before})
		if err := errors.Join(err, k.close()); err != nil {
			return err
		}
		if n == all {
			r := newResult(s, "lockstep", s.params(map[string]any{"op": "run of 5 steps", "c": members}), n, took,
				nil).requests(sent)
			if err := r.print(); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitForAll waits until n runs are done, with a client of its own, whose requests do not count.
func waitForAll(s settings, path string, n int) error {
	s.sent = nil
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	flows := workflow.New(c, path)
	for i := n - 1; i >= 0; i-- { // the last ones end last, so that most are asked about once
		info, err := flows.Wait(context.Background(), strconv.Itoa(i))
		if err != nil {
			return err
		}
		if info.State != workflow.Done {
			return fmt.Errorf("run %d is %s: %s", i, info.State, info.Error)
		}
	}
	return nil
}

// waitingRuns starts -depth runs that wait for a signal, and lists them. It counts the members'
// requests for -t, before the first run was started and while all of them wait.
func waitingRuns(s settings) error {
	n, members := s.depth, orDefault(s.c, 8)
	kind := workflow.NewKind[int, int]("approval")
	function := kind.Function(func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
		return workflow.Await[int](ctx, run, "approved", 0)
	}, workflow.WithWorkers(64))
	path := fmt.Sprintf("%s/r-alive-%d", root, time.Now().UnixNano())
	k, err := startExecutors(s, path, members, function)
	if err != nil {
		return err
	}
	defer k.close() //nolint:errcheck // what counts was measured
	if err := measureQuiet(s, members, 0); err != nil {
		return err
	}
	start := time.Now()
	if err := k.startAll(kind, n); err != nil {
		return err
	}
	if err := waitUntilAllWait(k.flows[0], n); err != nil {
		return err
	}
	if err := newResult(s, "lockstep", s.params(map[string]any{"op": "start and wait", "c": members}), n,
		time.Since(start), nil).print(); err != nil {
		return err
	}
	if err := measureQuiet(s, members, n); err != nil {
		return err
	}
	return series(s, "lockstep", s.params(map[string]any{"op": "list", "runs": n}), 5, func() error {
		runs, err := failure.Collect(k.flows[0].List(context.Background()))
		if err == nil && len(runs) != n {
			err = fmt.Errorf("%d runs are listed, not %d", len(runs), n)
		}
		return err
	})
}

// measureQuiet counts the requests of members that have nothing to do, per member and second.
func measureQuiet(s settings, members, alive int) error {
	settle(s)
	before, quiet := s.sent.snapshot(), time.Now()
	time.Sleep(s.span)
	sent := traffic{-1, s.sent.snapshot()}.since(traffic{-1, before})
	r := newResult(s, "lockstep", s.params(map[string]any{"op": "quiet", "c": members, "alive": alive}), 0,
		time.Since(quiet), nil)
	r.ByOperation = map[string]float64{} // per member and second
	for op, count := range sent.Sent {
		if count > 0 {
			r.ByOperation[op] = float64(count) / float64(members) / r.Seconds
		}
	}
	return r.print()
}

// waitUntilAllWait waits until no run is active.
func waitUntilAllWait(flows *workflow.Workflows, n int) error {
	for {
		runs, err := failure.Collect(flows.List(context.Background()))
		if err != nil {
			return err
		}
		states := map[workflow.State]int{}
		for _, r := range runs {
			states[r.State]++
		}
		switch {
		case states[workflow.Waiting] == n:
			return nil
		case states[workflow.Waiting]+states[workflow.Active] != n:
			return fmt.Errorf("of %d runs some have ended: %v", n, states)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
