//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/locks"
)

// scene is what some actors of each process do at a path.
type scene struct {
	path   string
	actors int
	need   pace
	long   int // in how many of a hundred cases something is held as long as a fault lasts, in a storm
	make   func(p *player, s scene, r *rand.Rand) func(context.Context, turn)
}

const (
	parallelPath = "/parallel"
	strictPath   = "/strict"
	// featuresPath is a parallel queue with a capacity, ids, delays, priorities and attempts, which is paused and purged.
	featuresPath = "/features"
)

var scenes = []scene{
	{"/mutex-0", 2, work, 0, locking(askMutex)},
	{"/mutex-1", 1, work, 30, locking(askMutex)},
	{"/mutex-2", 1, work, 30, locking(askMutex)},
	{"/mutex-3", 1, work, 30, locking(askMutex)},
	{"/readwrite", 2, work, 10, locking(askReadWrite)},
	{"/semaphore", 2, work, 10, locking(askSemaphore)},
	{"/election-0", 1, work, 0, locking(askElection)},
	{"/election-1", 1, work, 30, locking(askElection)},
	{parallelPath, 1, work, 0, producing(200 * time.Millisecond)},
	{parallelPath, 2, drain, 3, consuming},
	{strictPath, 1, work, 0, producing(time.Second)},
	{strictPath, 1, drain, 10, consuming},
	{featuresPath, 1, work, 0, producing(300 * time.Millisecond)},
	{featuresPath, 2, drain, 3, consuming},
}

// rules are those of the paths that are held.
var rules = map[string]rule{
	"/mutex-0":    {fenced: true},
	"/mutex-1":    {fenced: true},
	"/mutex-2":    {fenced: true},
	"/mutex-3":    {fenced: true},
	"/readwrite":  {fenced: true},
	"/semaphore":  {limit: seats},
	"/election-0": {fenced: true, numbered: true},
	"/election-1": {fenced: true, numbered: true},
	strictPath:    {limit: 1}, // one delivery at a time
}

// seats are the semaphore's permits.
const seats = 3

// play is one actor, until ctx ends.
func (s scene) play(ctx context.Context, p *player, r *rand.Rand) {
	do := s.make(p, s, r)
	for {
		t, ok := p.tempo.begin(ctx, s.need)
		if !ok {
			return
		}
		do(ctx, t)
		p.tempo.finish(s.need)
	}
}

// pass lets time pass, unless something comes first.
func pass(ctx context.Context, d time.Duration, enough <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-enough:
	case <-ctx.Done():
	}
}

// mostly is a time below usual, and at times one up to twenty times that.
func mostly(r *rand.Rand, usual time.Duration) time.Duration {
	if r.IntN(20) == 0 {
		usual *= 20
	}
	return time.Duration(r.Int64N(int64(usual)))
}

// longest is how long something is held in a storm: longer than a session lives without its servers.
const longest = 4 * timeout

// span is how long an actor holds what it has: mostly for a short time, or, in a storm, for as long as that may last.
func (s scene) span(r *rand.Rand, t turn, usual time.Duration) (d time.Duration, enough <-chan struct{}) {
	if !isClosed(t.calm) && r.IntN(100) < s.long {
		return time.Duration(r.Int64N(int64(longest))), t.calm
	}
	return mostly(r, usual), t.enough
}

// impatient is a context that ends early at times.
func impatient(ctx context.Context, r *rand.Rand) (context.Context, context.CancelFunc) {
	if r.IntN(5) > 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(r.Int64N(int64(500*time.Millisecond))))
}

// asking is what one ask of a lock is like.
type asking struct {
	kind    kind
	permits int
	lock    func(context.Context) (grip, error)
}

// grip is a hold of any kind.
type grip struct {
	ctx           context.Context
	token, number int64
	release       func(context.Context) error
}

func gripped(l *locks.Lease, err error) (grip, error) {
	if err != nil {
		return grip{}, err
	}
	return grip{ctx: l.Context(), token: l.Token(), release: l.Release}, nil
}

// locking asks for a lock, holds it and releases it.
func locking(how func(*player, string, *rand.Rand) asking) func(*player, scene, *rand.Rand) func(context.Context, turn) {
	return func(p *player, s scene, r *rand.Rand) func(context.Context, turn) {
		return func(ctx context.Context, t turn) {
			a := how(p, s.path, r)
			op := p.last.Add(1)
			p.write(event{At: now(), Op: op, Step: asked, Kind: a.kind, Path: s.path, Permits: a.permits})
			waiting, cancel := impatient(ctx, r)
			defer cancel()
			g, err := a.lock(waiting)
			if err != nil {
				p.notGranted(waiting, op, err)
			} else {
				p.write(event{At: now(), Op: op, Step: granted, Token: g.token, Number: g.number})
				d, enough := s.span(r, t, 20*time.Millisecond)
				p.hold(ctx, op, g, d, enough)
			}
			pass(ctx, mostly(r, 50*time.Millisecond), t.enough)
		}
	}
}

// notGranted tells why an ask has got nothing.
func (p *player) notGranted(waiting context.Context, op int64, err error) {
	e := event{At: now(), Op: op, Step: missed}
	if waiting.Err() == nil {
		e.Step, e.Why = failed, err.Error()
	}
	p.write(e)
}

// hold holds for a time, looks all the time whether the hold stands, and releases it if it does.
func (p *player) hold(ctx context.Context, op int64, g grip, d time.Duration, enough <-chan struct{}) {
	e := event{Op: op, Step: ended, How: lost}
	var standing bool
	if e.Stood, standing = p.watch(ctx, op, g.ctx, d, enough); standing {
		e.How = released
		letting, cancel := context.WithTimeout(context.Background(), 2*timeout)
		defer cancel()
		if err := g.release(letting); err != nil {
			e.Why = err.Error()
		}
	}
	e.At = now()
	p.write(e)
}

// watch looks at a hold for a time. It returns when the hold was seen to stand last, by a process that was awake,
// and whether it has not ended.
func (p *player) watch(ctx context.Context, op int64, hold context.Context, d time.Duration, enough <-chan struct{}) (stood int64, standing bool) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	var told int64
	for until := now() + int64(d); ; {
		t := now()
		select {
		case <-hold.Done():
			return stood, false
		default:
		}
		if p.awake.steady(now()) { // after the look: it has to be awake all the while
			stood = t
		}
		if stood-told > int64(20*time.Millisecond) {
			told = stood
			p.write(event{At: stood, Op: op, Step: stands})
		}
		if t >= until || ctx.Err() != nil {
			return stood, true
		}
		select {
		case <-tick.C:
		case <-hold.Done(): // the next look says so
		case <-enough:
			return stood, true
		}
	}
}

func askMutex(p *player, path string, _ *rand.Rand) asking {
	return asking{kind: exclusive, lock: func(ctx context.Context) (grip, error) {
		return gripped(locks.NewMutex(p.client, path).Lock(ctx))
	}}
}

func askReadWrite(p *player, path string, r *rand.Rand) asking {
	l := locks.NewRWLock(p.client, path)
	if r.IntN(3) == 0 {
		return asking{kind: exclusive, lock: func(ctx context.Context) (grip, error) { return gripped(l.Lock(ctx)) }}
	}
	return asking{kind: shared, lock: func(ctx context.Context) (grip, error) { return gripped(l.RLock(ctx)) }}
}

func askSemaphore(p *player, path string, r *rand.Rand) asking {
	n := 1 + r.IntN(seats)
	return asking{kind: permits, permits: n, lock: func(ctx context.Context) (grip, error) {
		return gripped(locks.NewSemaphore(p.client, path, seats).Acquire(ctx, n))
	}}
}

func askElection(p *player, path string, _ *rand.Rand) asking {
	return asking{kind: leading, lock: func(ctx context.Context) (grip, error) {
		t, err := election.New(p.client, path).Campaign(ctx)
		if err != nil {
			return grip{}, err
		}
		return grip{t.Context(), t.Token(), t.Number(), t.Resign}, nil
	}}
}
