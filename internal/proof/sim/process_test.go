package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/zktest"
)

// process is one process of the cluster: a client with a link and a clock of its own. Its actors
// are goroutines that call waitWhileFrozen before each action.
type process struct {
	sim    *simulation
	slot   int // in the plan; the replacement of a crashed process has the same
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
	thawed       chan struct{} // set while the process is frozen
	thawedAt     time.Time     // time of the last thaw
	triggers     []*requestTrigger
	atPings      []func() // run at the next ping
	roused       chan struct{}
	requests     int
	locals       map[string]any
}

// requestTrigger runs a function after some requests of a process.
type requestTrigger struct {
	remaining int
	run       func()
}

// startProcess starts a process in a slot.
func (sim *simulation) startProcess(place, life int) *process {
	name := fmt.Sprintf("p%d", place)
	if life > 0 {
		name += fmt.Sprintf(".%d", life)
	}
	r := newRand(sim.plan.seed, "process "+name)
	p := &process{sim: sim, slot: place, name: name, link: sim.zk.Link(name), activeFaults: map[faultKind]int{},
		roused: make(chan struct{}), locals: map[string]any{}}
	p.clock = &clock{base: time.Now(), rate: 1 - maxDrift + 2*maxDrift*r.Float64()}
	p.skew.Store(int64(durationBetween(r, -3*time.Second, 3*time.Second)))
	p.delays = []time.Duration{pickOne(r, 0, durationBetween(r, 0, 5*time.Millisecond),
		durationBetween(r, 0, 50*time.Millisecond))}
	p.link.Delay(p.delays[0])
	var err error
	p.client, err = framework.New(framework.Config{Servers: sim.zk.Servers(), SessionTimeout: sim.plan.sessionTimeout,
		Identity: name},
		framework.WithDialer(p.link.DialContext), testclock.WithClock(p.clock), framework.WithLogger(discardLogger))
	if err != nil {
		panic(err)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	sim.tasks.Go(p.followStates)
	p.client.Start()
	return p
}

// followStates notes which sessions belong to the process.
func (p *process) followStates() {
	for c := range p.client.FollowState(context.Background()) {
		p.sim.history.add("", "%s: session %x %v", p.name, uint64(c.SessionID&0xffff), c.State)
		if c.SessionID != 0 {
			p.sim.observer.addSession(c.SessionID, p)
		}
	}
}

// crash ends the process without a message to the server.
func (p *process) crash() {
	p.link.Cut()
	p.close()
}

// close closes the client and ends the actors.
func (p *process) close() {
	p.cancel()
	p.thaw()
	p.sim.tasks.Go(func() { _ = p.client.Close(context.Background()) })
}

// waitWhileFrozen waits while the process is frozen, and reports whether it was. A grant from
// before may have ended by now; a holder would notice that first.
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

// frozen reports whether the process cannot have handled its timers: it is frozen, or it was thawed
// at this very instant.
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

// afterRequests runs a function after n more requests of the process.
func (p *process) afterRequests(n int, what func()) *requestTrigger {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &requestTrigger{n, what}
	p.triggers = append(p.triggers, m)
	return m
}

// requestDone counts a request and runs the functions that wait for it.
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
		go m.run() // the server must not be called from here
	}
	p.triggers = rest
}

// atNextPing runs a function at the next ping of the process.
func (p *process) atNextPing(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atPings = append(p.atPings, what)
}

// pingDone runs the functions that wait for a ping.
func (p *process) pingDone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, run := range p.atPings {
		go run()
	}
	p.atPings = nil
}

// rouse ends the long pauses of the process's actors.
func (p *process) rouse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.roused)
	p.roused = make(chan struct{})
}

// untilRoused returns a context that ends when the process is roused.
func (p *process) untilRoused() (context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	roused := p.roused
	ctx, cancel := context.WithCancel(p.ctx)
	go func() {
		select {
		case <-roused:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// processLocal returns a value that the process's actors share, and makes it once.
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

// endFault ends a fault, unless endAllFaults has.
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

// applyFaults sets the link to the sum of all active faults.
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
