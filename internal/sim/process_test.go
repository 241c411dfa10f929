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
	w      *world
	place  int // in the plan; who takes a dead one's place has the same
	name   string
	link   *zktest.Link
	clock  *clock
	client *framework.Client
	ctx    context.Context // ends when the process dies
	cancel context.CancelFunc
	skew   atomic.Int64 // of its wall clock

	mu       sync.Mutex
	active   map[kind]int
	delays   []time.Duration
	thawed   chan struct{} // not nil while the process is frozen
	woke     time.Time     // when it went on last
	moments  []*moment
	requests int
	locals   map[string]any
}

// moment is what happens when so many more requests of a process were done.
type moment struct {
	left int
	what func()
}

// start starts a process at a place.
func (w *world) start(place, life int) *process {
	name := fmt.Sprintf("p%d", place)
	if life > 0 {
		name += fmt.Sprintf(".%d", life)
	}
	r := stream(w.plan.seed, "process "+name)
	p := &process{w: w, place: place, name: name, link: w.zk.Link(name), active: map[kind]int{}, locals: map[string]any{}}
	p.clock = &clock{base: time.Now(), rate: 1 - drift + 2*drift*r.Float64()}
	p.skew.Store(int64(between(r, -3*time.Second, 3*time.Second)))
	p.delays = []time.Duration{pick(r, 0, between(r, 0, 5*time.Millisecond), between(r, 0, 50*time.Millisecond))}
	p.link.Delay(p.delays[0])
	var err error
	p.client, err = framework.New(framework.Config{Servers: w.zk.Servers(), SessionTimeout: w.plan.timeout, Identity: name},
		framework.WithDialer(p.link.DialContext), framework.WithClock(p.clock), framework.WithLogger(silent))
	if err != nil {
		panic(err)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	w.tasks.Go(p.follow)
	p.client.Start()
	return p
}

// follow tells the world which sessions are the process's.
func (p *process) follow() {
	for c := range p.client.States(context.Background()) {
		p.w.h.note("", "%s: session %x %v", p.name, c.SessionID&0xffff, c.State)
		if c.SessionID != 0 {
			p.w.eye.know(c.SessionID, p)
		}
	}
}

// die ends the process as a crash does: the server hears nothing of it.
func (p *process) die() {
	p.link.Cut()
	p.end()
}

// end closes the client and lets the actors go.
func (p *process) end() {
	p.cancel()
	p.thaw()
	p.w.tasks.Go(func() { _ = p.client.Close(context.Background()) })
}

// gate waits while the process is frozen, and tells whether it was: what was granted before may be over by now, and its
// holder would see that before anything else.
func (p *process) gate() (waited bool) {
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
	return p.thawed != nil || p.woke.Equal(time.Now())
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
		p.thawed, p.woke = nil, time.Now()
	}
}

// now is the process's wall clock.
func (p *process) now() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) }

// at has something happen when n more requests of the process were done.
func (p *process) at(n int, what func()) *moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &moment{n, what}
	p.moments = append(p.moments, m)
	return m
}

// done counts a request that was done, and has happen what is to happen then.
func (p *process) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	rest := p.moments[:0]
	for _, m := range p.moments {
		if m.left--; m.left > 0 {
			rest = append(rest, m)
			continue
		}
		go m.what() // the server is not to be called from here
	}
	p.moments = rest
}

// local returns what the process's actors of a scene share, and makes it once.
func local[T any](p *process, key string, make func() T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.locals[key]
	if !ok {
		v = make()
		p.locals[key] = v
	}
	return v.(T)
}

// suffer begins a fault that lasts.
func (p *process) suffer(k kind, lag time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active[k]++
	if k == delay {
		p.delays = append(p.delays, lag)
	}
	p.apply(false)
}

// recover ends one, if not all were ended meanwhile.
func (p *process) recover(k kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[k] == 0 {
		return
	}
	p.active[k]--
	if k == delay {
		p.delays = p.delays[:len(p.delays)-1]
	}
	p.apply(k == cut && p.active[k] == 0)
}

// mend ends all faults of the process.
func (p *process) mend() {
	if p.frozen() {
		p.w.checkThawing(p)
	}
	p.mu.Lock()
	clear(p.active)
	p.delays = p.delays[:1]
	p.apply(true)
	p.mu.Unlock()
	p.thaw()
}

// apply brings the link into the state that all faults together make.
func (p *process) apply(mended bool) {
	if p.ctx.Err() != nil {
		return
	}
	if mended {
		p.link.Heal()
	}
	if p.active[cut] > 0 {
		p.link.Cut()
	}
	p.link.Delay(p.delays[len(p.delays)-1])
	p.link.HalfOpen(p.active[halfOpen] > 0)
	both := p.active[holdBoth] + p.active[freeze]
	p.link.BlackHole(p.active[holdUp]+both > 0, p.active[holdDown]+both > 0)
}
