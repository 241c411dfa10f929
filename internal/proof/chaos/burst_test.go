//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// faultPicker picks kinds of faults in random order. It picks each kind once before it picks one
// again.
type faultPicker struct {
	rand      *rand.Rand
	kinds     []faultKind
	remaining []faultKind
}

func (p *faultPicker) pick(n int) (picked []faultKind) {
	for len(picked) < min(n, len(p.kinds)) {
		if len(p.remaining) == 0 {
			for _, i := range p.rand.Perm(len(p.kinds)) {
				p.remaining = append(p.remaining, p.kinds[i])
			}
		}
		picked, p.remaining = append(picked, p.remaining[0]), p.remaining[1:]
	}
	return picked
}

// scheduledFault is one fault of a burst. Its start and duration are drawn before the burst.
type scheduledFault struct {
	faultKind
	delay, duration time.Duration
	rand            *rand.Rand
}

func (p *faultPicker) newBurst(n int, spread time.Duration) (faults []scheduledFault) {
	for _, kind := range p.pick(n) {
		faults = append(faults, scheduledFault{kind, time.Duration(p.rand.Int64N(int64(spread))),
			kind.minDuration + time.Duration(p.rand.Int64N(int64(kind.maxDuration-kind.minDuration))),
			rand.New(rand.NewPCG(p.rand.Uint64(), 17))})
	}
	return faults
}

// injectAll runs all faults of a burst, and returns when all are undone.
func (env *testEnv) injectAll(ctx context.Context, faults []scheduledFault, summary *summary) error {
	errs := make([]error, len(faults))
	var wg sync.WaitGroup
	for i, f := range faults {
		wg.Go(func() { errs[i] = f.run(ctx, env, summary) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (f scheduledFault) run(ctx context.Context, env *testEnv, summary *summary) error {
	wait(ctx, f.delay, nil)
	undo, err := f.faultKind.inject(env, f.rand)
	for began := time.Now(); undo == nil && ctx.Err() == nil && time.Since(began) < waitLimit/2; undo,
		err = f.faultKind.inject(env, f.rand) {
		wait(ctx, 100*time.Millisecond, nil) // other faults have taken all its targets, or there is no leader
	}
	if undo == nil {
		return err
	}
	summary.addFault(f.name)
	env.history.logHarness(f.name)
	wait(ctx, f.duration, nil)
	err = errors.Join(err, undo())
	env.history.logHarness(f.name + ": undone")
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

// progressGoals names the paths and queue operations that must make progress after each burst.
func progressGoals() (names []string) {
	for _, w := range workloads {
		switch {
		case w.path == runsPath && w.level == loadDrain:
			names = append(names, progressName(w.path, kindExecution))
		case queueOptions[w.path] == nil:
			names = append(names, w.path)
		case w.level == loadDrain:
			names = append(names, progressName(w.path, kindDelivery))
		default:
			names = append(names, progressName(w.path, kindPut))
		}
	}
	return names
}

// awaitProgress waits until each process, and each goal, has been granted something after the
// faults were healed. It returns how long that took.
func (env *testEnv) awaitProgress(goals []string) (time.Duration, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		missing, elapsed := env.history.withoutProgress(goals...)
		if len(missing) == 0 {
			return elapsed, nil
		}
		if time.Since(began) > waitLimit/2 {
			return waitLimit / 2, errors.Join(env.recordStall(missing),
				fmt.Errorf("no progress within %v after all faults were healed: %s", waitLimit/2,
					strings.Join(missing, ", ")))
		}
	}
}

// drainAndRest stops all actors of all clients: consumers and executors when the queues are empty
// and all runs have finished, the others before. It returns when each queue was found empty.
func (env *testEnv) drainAndRest(segment int) (drained map[string]drainedQueue, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := env.orderAndAwait(ctx, fmt.Sprint("drain ", segment)); err != nil {
		return nil, err
	}
	drained = map[string]drainedQueue{}
	for path := range env.queues {
		if drained[path], err = env.awaitEmptyQueue(ctx, path); err != nil {
			return nil, err
		}
	}
	if env.services != nil {
		if env.runs, err = env.awaitRunsFinished(ctx); err != nil {
			return nil, err
		}
	}
	if err := env.orderAndAwait(ctx, fmt.Sprint("rest ", segment)); err != nil {
		return nil, err
	}
	if features, used := drained[featuresPath]; used { // naive clients use no queues
		if features.deadLetters, err = env.takeDeadLetters(ctx, featuresPath); err != nil {
			return nil, err
		}
		drained[featuresPath] = features
		if err := env.checkCapacity(ctx, featuresPath); err != nil {
			return nil, err
		}
	}
	if env.services != nil {
		if env.atRest, err = env.awaitServicesAtRest(ctx, segment); err != nil {
			return nil, err
		}
	}
	return drained, env.awaitNoContenders(ctx)
}

// orderAndAwait sends an order, and waits until each process has reported that it has carried out
// the order.
func (env *testEnv) orderAndAwait(ctx context.Context, order string) error {
	env.sendOrder(order)
	for {
		names := env.history.notResting(order)
		if len(names) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(env.recordStall(nil),
				fmt.Errorf("processes that did not reach the order %q: %s", order, strings.Join(names, ", ")))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
