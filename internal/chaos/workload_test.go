//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/locks"
)

// workload is what some actors of each process do at a path.
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
	// featuresPath is a parallel queue with a capacity, ids, delays, priorities and attempts. Its producers cancel items. The harness
	// pauses, resumes and purges it.
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

// runActor runs one actor until ctx ends.
func (w workload) runActor(ctx context.Context, p *clientProcess, rng *rand.Rand) {
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

// usuallyShort returns a duration below usual, and sometimes one up to twenty times as long.
func usuallyShort(rng *rand.Rand, usual time.Duration) time.Duration {
	if rng.IntN(20) == 0 {
		usual *= 20
	}
	return time.Duration(rng.Int64N(int64(usual)))
}

// longestHold is the longest hold during faults: longer than a session survives without servers.
const longestHold = 4 * sessionTimeout

// holdTime returns how long an actor holds, and when it must stop earlier: usually a short time, and sometimes as long as faults last.
func (w workload) holdTime(rng *rand.Rand, t iteration, usual time.Duration) (d time.Duration, stop <-chan struct{}) {
	if !isClosed(t.faultsOver) && rng.IntN(100) < w.longHoldPercent {
		return time.Duration(rng.Int64N(int64(longestHold))), t.faultsOver
	}
	return usuallyShort(rng, usual), t.stop
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
func lockActor(newRequest func(*clientProcess, string, *rand.Rand) lockRequest) func(*clientProcess, workload, *rand.Rand) func(context.Context, iteration) {
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
			wait(ctx, usuallyShort(rng, 50*time.Millisecond), t.stop)
		}
	}
}

// writeNotGranted writes that a request was abandoned, or that it failed while its context was alive.
func (p *clientProcess) writeNotGranted(acquireCtx context.Context, op int64, err error) {
	e := event{At: now(), Op: op, Step: stepAbandoned}
	if acquireCtx.Err() == nil {
		e.Step, e.Error = stepFailed, err.Error()
	}
	p.write(e)
}

// holdAndRelease holds for d, and releases the hold if its context is still alive.
func (p *clientProcess) holdAndRelease(ctx context.Context, op int64, g heldLock, d time.Duration, stop <-chan struct{}) {
	e := event{Op: op, Step: stepEnded, End: endLost}
	var alive bool
	if e.LastHeld, alive = p.watchHold(ctx, op, g.ctx, d, stop); alive {
		e.End = endReleased
		releaseCtx, cancel := context.WithTimeout(context.Background(), 2*sessionTimeout)
		defer cancel()
		if err := g.release(releaseCtx); err != nil {
			e.Error = err.Error()
		}
	}
	e.At = now()
	p.write(e)
}

// watchHold checks a hold's context for d. It returns when a running process last saw it alive, and whether it has not ended.
func (p *clientProcess) watchHold(ctx context.Context, op int64, hold context.Context, d time.Duration, stop <-chan struct{}) (lastHeld int64, alive bool) {
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
		return lockRequest{kind: kindLock, acquire: func(ctx context.Context) (heldLock, error) { return heldLease(l.Lock(ctx)) }}
	}
	return lockRequest{kind: kindReadLock, acquire: func(ctx context.Context) (heldLock, error) { return heldLease(l.RLock(ctx)) }}
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
