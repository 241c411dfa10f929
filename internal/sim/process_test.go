package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// process is one process of the cluster: a client on a link and a clock of its own. Its actors are goroutines
// that pass its gate before whatever they do, so that a frozen process does nothing.
type process struct {
	sim    *simulation
	slot   int // in the plan; who takes a dead one's place has the same
	name   string
	link   *zktest.Link
	clock  *clock
	client *framework.Client
	ctx    context.Context // ends when the process dies
	cancel context.CancelFunc
	skew   atomic.Int64 // of its wall clock

	mu           sync.Mutex
	activeFaults map[faultKind]int
	delays       []time.Duration
	thawed       chan struct{} // not nil while the process is frozen
	thawedAt     time.Time     // when it went on last
	triggers     []*requestTrigger
	requests     int
	locals       map[string]any
}

// requestTrigger is what happens when so many more requests of a process were done.
type requestTrigger struct {
	remaining int
	run       func()
}

// startProcess starts a process at a place.
func (sim *simulation) startProcess(place, life int) *process {
	name := fmt.Sprintf("p%d", place)
	if life > 0 {
		name += fmt.Sprintf(".%d", life)
	}
	r := newRand(sim.plan.seed, "process "+name)
	p := &process{sim: sim, slot: place, name: name, link: sim.zk.Link(name), activeFaults: map[faultKind]int{}, locals: map[string]any{}}
	p.clock = &clock{base: time.Now(), rate: 1 - maxDrift + 2*maxDrift*r.Float64()}
	p.skew.Store(int64(durationBetween(r, -3*time.Second, 3*time.Second)))
	p.delays = []time.Duration{pickOne(r, 0, durationBetween(r, 0, 5*time.Millisecond), durationBetween(r, 0, 50*time.Millisecond))}
	p.link.Delay(p.delays[0])
	var err error
	p.client, err = framework.New(framework.Config{Servers: sim.zk.Servers(), SessionTimeout: sim.plan.sessionTimeout, Identity: name},
		framework.WithDialer(p.link.DialContext), framework.WithClock(p.clock), framework.WithLogger(discardLogger))
	if err != nil {
		panic(err)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	sim.tasks.Go(p.followStates)
	p.client.Start()
	return p
}

// followStates tells the world which sessions are the process's.
func (p *process) followStates() {
	for c := range p.client.States(context.Background()) {
		p.sim.history.add("", "%s: session %x %v", p.name, c.SessionID&0xffff, c.State)
		if c.SessionID != 0 {
			p.sim.observer.addSession(c.SessionID, p)
		}
	}
}

// crash ends the process as a crash does: the server hears nothing of it.
func (p *process) crash() {
	p.link.Cut()
	p.close()
}

// close closes the client and lets the actors go.
func (p *process) close() {
	p.cancel()
	p.thaw()
	p.sim.tasks.Go(func() { _ = p.client.Close(context.Background()) })
}

// waitWhileFrozen waits while the process is frozen, and tells whether it was: what was granted before may be over by now, and its
// holder would see that before anything else.
func (p *process) waitWhileFrozen() (waited bool) {
	for ; ; waited = true {
		p.mu.Lock()
		thawed := p.thawed
		p.mu.Unlock()
		if thawed == nil {
			return waited
		}
		<-thawed
	}
}

// frozen tells whether the process cannot have heard of its timers: it stands still, or goes on in this very instant.
func (p *process) frozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thawed != nil || p.thawedAt.Equal(time.Now())
}

func (p *process) freeze() {
	p.clock.freeze()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thawed == nil {
		p.thawed = make(chan struct{})
	}
}

func (p *process) thaw() {
	p.clock.thaw()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thawed != nil {
		close(p.thawed)
		p.thawed, p.thawedAt = nil, time.Now()
	}
}

// now is the process's wall clock.
func (p *process) now() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) }

// afterRequests has something happen when n more requests of the process were done.
func (p *process) afterRequests(n int, what func()) *requestTrigger {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &requestTrigger{n, what}
	p.triggers = append(p.triggers, m)
	return m
}

// requestDone counts a request that was done, and has happen what is to happen then.
func (p *process) requestDone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	rest := p.triggers[:0]
	for _, m := range p.triggers {
		if m.remaining--; m.remaining > 0 {
			rest = append(rest, m)
			continue
		}
		go m.run() // the server is not to be called from here
	}
	p.triggers = rest
}

// processLocal returns what the process's actors of a scene share, and makes it once.
func processLocal[T any](p *process, key string, make func() T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.locals[key]
	if !ok {
		v = make()
		p.locals[key] = v
	}
	return v.(T)
}

// beginFault begins a fault that lasts.
func (p *process) beginFault(k faultKind, lag time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.activeFaults[k]++
	if k == delayLink {
		p.delays = append(p.delays, lag)
	}
	p.applyFaults(false)
}

// endFault ends one, if not all were ended meanwhile.
func (p *process) endFault(k faultKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.activeFaults[k] == 0 {
		return
	}
	p.activeFaults[k]--
	if k == delayLink {
		p.delays = p.delays[:len(p.delays)-1]
	}
	p.applyFaults(k == cutLink && p.activeFaults[k] == 0)
}

// endAllFaults ends all faults of the process.
func (p *process) endAllFaults() {
	if p.frozen() {
		p.sim.checkBeforeThaw(p)
	}
	p.mu.Lock()
	clear(p.activeFaults)
	p.delays = p.delays[:1]
	p.applyFaults(true)
	p.mu.Unlock()
	p.thaw()
}

// applyFaults brings the link into the state that all faults together make.
func (p *process) applyFaults(mended bool) {
	if p.ctx.Err() != nil {
		return
	}
	if mended {
		p.link.Heal()
	}
	if p.activeFaults[cutLink] > 0 {
		p.link.Cut()
	}
	p.link.Delay(p.delays[len(p.delays)-1])
	p.link.HalfOpen(p.activeFaults[halfOpen] > 0)
	both := p.activeFaults[holdBoth] + p.activeFaults[freezeClient]
	p.link.BlackHole(p.activeFaults[holdUp]+both > 0, p.activeFaults[holdDown]+both > 0)
}
