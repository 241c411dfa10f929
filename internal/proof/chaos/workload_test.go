//go:build linux

package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
)

// workload is the work of some actors of each process at a path.
type workload struct {
	path            string
	actors          int
	level           loadLevel
	longHoldPercent int // percentage of holds that last as long as a fault, at loadFaults
	newActor        func(p *clientProcess, w workload, rng *rand.Rand) func(context.Context, iteration)
}

const (
	parallelPath = "/parallel"
	strictPath   = "/strict"
	// featuresPath is a parallel queue with a capacity, ids, delays, priorities and attempts. Its
	// producers cancel items. The harness pauses, resumes and purges it.
	featuresPath = "/features"
)

var workloads = []workload{
	{"/mutex-0", 2, loadNormal, 0, lockActor(requestMutex)},
	{"/mutex-1", 1, loadNormal, 30, lockActor(requestMutex)},
	{"/mutex-2", 1, loadNormal, 30, lockActor(requestMutex)},
	{"/mutex-3", 1, loadNormal, 30, lockActor(requestMutex)},
	{"/readwrite", 2, loadNormal, 10, lockActor(requestReadWriteLock)},
	{"/semaphore", 2, loadNormal, 10, lockActor(requestPermits)},
	{"/election-0", 1, loadNormal, 0, lockActor(requestTerm)},
	{"/election-1", 1, loadNormal, 30, lockActor(requestTerm)},
	{parallelPath, 1, loadNormal, 0, producerActor(200 * time.Millisecond)},
	{parallelPath, 2, loadDrain, 3, consumerActor},
	{strictPath, 1, loadNormal, 0, producerActor(time.Second)},
	{strictPath, 1, loadDrain, 10, consumerActor},
	{featuresPath, 1, loadNormal, 0, producerActor(300 * time.Millisecond)},
	{featuresPath, 2, loadDrain, 3, consumerActor},
	{settingPath, 1, loadNormal, 0, settingActor},
	{tallyPath, 1, loadNormal, 0, tallyActor},
	{treePath, 1, loadNormal, 0, treeActor},
	{sequencePath, 1, loadNormal, 0, sequenceActor},
	{slotsPath, 1, loadNormal, 0, slotsActor},
	{counterPath, 2, loadNormal, 0, counterActor},
	{instancesPath, 1, loadNormal, 0, instanceActor},
	{groupPath, 1, loadNormal, 0, memberActor},
	{runsPath, 1, loadNormal, 0, workflowActor},
	{runsPath, 1, loadDrain, 0, executorActor},
}

// holdRules are the rules of the held paths.
var holdRules = map[string]holdRule{
	"/mutex-0":    {fenced: true},
	"/mutex-1":    {fenced: true},
	"/mutex-2":    {fenced: true},
	"/mutex-3":    {fenced: true},
	"/readwrite":  {fenced: true},
	"/semaphore":  {permits: semaphorePermits},
	"/election-0": {fenced: true, numbered: true},
	"/election-1": {fenced: true, numbered: true},
	strictPath:    {permits: 1}, // one delivery at a time
}

// semaphorePermits are the semaphore's permits.
const semaphorePermits = 3

// runActorLoop runs one actor until ctx ends.
func (w workload) runActorLoop(ctx context.Context, p *clientProcess, rng *rand.Rand) {
	do := w.newActor(p, w, rng)
	for {
		t, ok := p.load.begin(ctx, w.level)
		if !ok {
			return
		}
		do(ctx, t)
		p.load.finish(w.level)
	}
}

// wait waits for d, or until stop is closed or ctx ends.
func wait(ctx context.Context, d time.Duration, stop <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	case <-ctx.Done():
	}
}

// randomPause returns a duration below usual, and sometimes one up to twenty times as long.
func randomPause(rng *rand.Rand, usual time.Duration) time.Duration {
	if rng.IntN(20) == 0 {
		usual *= 20
	}
	return time.Duration(rng.Int64N(int64(usual)))
}

// longestHold is the longest hold during faults: longer than a session survives without servers.
const longestHold = 4 * sessionTimeout

// holdTime returns how long an actor holds, and a channel whose close ends the hold earlier. The
// time is usually short, and sometimes as long as faults last.
func (w workload) holdTime(rng *rand.Rand, t iteration, usual time.Duration) (d time.Duration, stop <-chan struct{}) {
	if !isClosed(t.faultsOver) && rng.IntN(100) < w.longHoldPercent {
		return time.Duration(rng.Int64N(int64(longestHold))), t.faultsOver
	}
	return randomPause(rng, usual), t.stop
}

// sometimesTimeout returns a context that sometimes has a short timeout.
func sometimesTimeout(ctx context.Context, rng *rand.Rand) (context.Context, context.CancelFunc) {
	if rng.IntN(5) > 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(500*time.Millisecond))))
}

// lockRequest is one request for a lock, permits or a term.
type lockRequest struct {
	kind    requestKind
	permits int
	acquire func(context.Context) (heldLock, error)
}

// heldLock is a hold of any kind.
type heldLock struct {
	ctx           context.Context
	token, number int64
	release       func(context.Context) error
}

func heldLease(l *locks.Lease, err error) (heldLock, error) {
	if err != nil {
		return heldLock{}, err
	}
	return heldLock{ctx: l.Context(), token: l.Token(), release: l.Release}, nil
}

// lockActor acquires a lock, holds it and releases it.
func lockActor(newRequest func(*clientProcess, string, *rand.Rand) lockRequest) func(
	*clientProcess, workload, *rand.Rand) func(context.Context, iteration) {
	return func(p *clientProcess, w workload, rng *rand.Rand) func(context.Context, iteration) {
		return func(ctx context.Context, t iteration) {
			a := newRequest(p, w.path, rng)
			op := p.lastOp.Add(1)
			p.write(event{At: now(), Op: op, Step: stepRequested, Kind: a.kind, Path: w.path, Permits: a.permits})
			acquireCtx, cancel := sometimesTimeout(ctx, rng)
			defer cancel()
			g, err := a.acquire(acquireCtx)
			if err != nil {
				p.writeNotGranted(acquireCtx, op, err)
			} else {
				p.write(event{At: now(), Op: op, Step: stepGranted, Token: g.token, Number: g.number})
				d, stop := w.holdTime(rng, t, 20*time.Millisecond)
				p.holdAndRelease(ctx, op, g, d, stop)
			}
			wait(ctx, randomPause(rng, 50*time.Millisecond), t.stop)
		}
	}
}

// isEndOf reports whether ctx has ended and err says so. Another error is none that the end of ctx
// excuses.
func isEndOf(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// expect writes a violation that names the call and the error, unless the documentation of the call
// allows the error: it is nil, the end of ctx, or one of those that the documentation names.
func (p *clientProcess) expect(ctx context.Context, call, path string, err error, named ...error) {
	if err == nil || isEndOf(ctx, err) || slices.ContainsFunc(named, func(n error) bool { return errors.Is(err, n) }) {
		return
	}
	p.write(event{At: now(), Step: stepUndocumented, Path: path, Order: call, Error: err.Error()})
}

// writeNotGranted writes that a request was abandoned at the end of its context, or that it failed
// with another error.
func (p *clientProcess) writeNotGranted(acquireCtx context.Context, op int64, err error) {
	e := event{At: now(), Op: op, Step: stepAbandoned}
	if !isEndOf(acquireCtx, err) {
		e.Step, e.Error = stepFailed, err.Error()
	}
	p.write(e)
}

// holdAndRelease holds for d, and releases the hold if its context is still alive.
func (p *clientProcess) holdAndRelease(ctx context.Context, op int64, g heldLock, d time.Duration,
	stop <-chan struct{}) {
	e := event{Op: op, Step: stepEnded, End: endLost}
	var alive bool
	if e.LastHeld, alive = p.watchHold(ctx, op, g.ctx, d, stop); alive {
		e.End = endReleased
		releaseCtx, cancel := context.WithTimeout(context.Background(), 2*sessionTimeout)
		defer cancel()
		if err := g.release(releaseCtx); err != nil && !errors.Is(err, framework.ErrUnconfirmed) {
			// the hold is over all the same
			e.Error = err.Error()
		}
	}
	e.At = now()
	p.write(e)
}

// watchHold checks a hold's context for d. It returns the last time at which the process was
// scheduled and the context was alive, and whether it is still alive.
func (p *clientProcess) watchHold(ctx context.Context, op int64, hold context.Context, d time.Duration,
	stop <-chan struct{}) (lastHeld int64, alive bool) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	var lastWritten int64
	for until := now() + int64(d); ; {
		t := now()
		select {
		case <-hold.Done():
			return lastHeld, false
		default:
		}
		if p.scheduling.wasRunning(now()) { // the process must have run during the check
			lastHeld = t
		}
		if lastHeld-lastWritten > int64(20*time.Millisecond) {
			lastWritten = lastHeld
			p.write(event{At: lastHeld, Op: op, Step: stepStillHeld})
		}
		if t >= until || ctx.Err() != nil {
			return lastHeld, true
		}
		select {
		case <-tick.C:
		case <-hold.Done(): // the next check returns
		case <-stop:
			return lastHeld, true
		}
	}
}

func requestMutex(p *clientProcess, path string, _ *rand.Rand) lockRequest {
	return lockRequest{kind: kindLock, acquire: func(ctx context.Context) (heldLock, error) {
		return heldLease(locks.NewMutex(p.client, path).Lock(ctx))
	}}
}

func requestReadWriteLock(p *clientProcess, path string, rng *rand.Rand) lockRequest {
	l := locks.NewRWLock(p.client, path)
	if rng.IntN(3) == 0 {
		return lockRequest{kind: kindLock,
			acquire: func(ctx context.Context) (heldLock, error) { return heldLease(l.Lock(ctx)) }}
	}
	return lockRequest{kind: kindReadLock,
		acquire: func(ctx context.Context) (heldLock, error) { return heldLease(l.RLock(ctx)) }}
}

func requestPermits(p *clientProcess, path string, rng *rand.Rand) lockRequest {
	n := 1 + rng.IntN(semaphorePermits)
	return lockRequest{kind: kindPermits, permits: n, acquire: func(ctx context.Context) (heldLock, error) {
		return heldLease(locks.NewSemaphore(p.client, path, semaphorePermits).Acquire(ctx, n))
	}}
}

func requestTerm(p *clientProcess, path string, _ *rand.Rand) lockRequest {
	return lockRequest{kind: kindTerm, acquire: func(ctx context.Context) (heldLock, error) {
		t, err := election.New(p.client, path).Campaign(ctx)
		if err != nil {
			return heldLock{}, err
		}
		return heldLock{t.Context(), t.Token(), t.Number(), t.Resign}, nil
	}}
}

// TestUndocumentedErrorsAreReported checks that only the errors that a call's documentation names
// are excused, also after the end of the call's context, and that a violation names the call and
// the error.
func TestUndocumentedErrorsAreReported(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	p := &clientProcess{eventWriter: &eventWriter{to: &out}}
	violations := func(do func()) (texts []string) {
		out.Reset()
		do()
		h := newHistory(newSummary(1))
		for line := range strings.Lines(out.String()) {
			e, err := readEvent([]byte(line))
			require.NoError(t, err)
			h.add("c0-1", e, line)
		}
		for _, err := range h.takeSegment().errors {
			texts = append(texts, err.Error())
		}
		return texts
	}
	for _, excused := range []struct {
		ctx context.Context
		err error
	}{{t.Context(), nil}, {t.Context(), queue.ErrLost}, {ended, context.Canceled}} {
		require.Empty(t, violations(func() { p.expect(excused.ctx, "Nack", "/q", excused.err, queue.ErrLost) }))
	}
	for _, ctx := range []context.Context{t.Context(), ended} {
		require.Equal(t, []string{
			"c0-1: Nack of /q has returned an error that its documentation does not allow: delivery settled"},
			violations(func() { p.expect(ctx, "Nack", "/q", queue.ErrSettled, queue.ErrLost) }))
		require.Len(t, violations(func() { p.writeShown(ctx, groupPath, event{}, framework.ErrNoNode) }), 1)
	}
	run := func(ctx context.Context, c call, err error) []string {
		c.request = event{Kind: kindWrite, Path: "/x"}
		return violations(func() { _ = c.run(ctx, p, func(int64, *event) error { return err }) })
	}
	refusing := call{refusals: []error{framework.ErrConflict}}
	require.Empty(t, run(t.Context(), refusing, framework.ErrConflict))
	require.Empty(t, run(t.Context(), call{mayBeUnknown: true}, framework.ErrOutcomeUnknown))
	require.Empty(t, run(ended, call{}, framework.ErrOutcomeUnknown))
	require.Empty(t, run(ended, call{}, context.Canceled))
	require.Len(t, run(t.Context(), call{}, framework.ErrOutcomeUnknown), 1)
	require.Len(t, run(t.Context(), refusing, framework.ErrSuspended), 1)
	require.Len(t, run(ended, call{mayHappenLater: true}, framework.ErrNoNode), 1)
}
