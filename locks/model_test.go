package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestRandomReadersAndWriters runs random programs of requests, tries, give-ups, releases, writers
// that go on as readers and cuts, on several sessions, and compares each grant with the rules and
// with the server's nodes. With -short it runs fewer programs.
func TestRandomReadersAndWriters(t *testing.T) {
	programs := 100
	if testing.Short() {
		programs = 40
	}
	count := map[string]int{}
	for seed := range programs {
		in(t, func(t *testing.T, w *world) {
			p := newProgram(t, w, uint64(seed), count)
			for range 120 {
				p.step()
			}
			p.finish()
		})
	}
	t.Log(count)
	for _, what := range []string{"grants", "given up", "gone on", "cuts", "settled"} {
		require.Greater(t, count[what], programs/2, what)
	}
}

// program is a random program and the model of one read-write lock.
type program struct {
	t       *testing.T
	w       *world
	r       *rand.Rand
	seed    uint64
	members []*zktest.Member
	locks   int

	mu    sync.Mutex
	asks  map[string]*ask
	token int64 // of the last writer
	done  sync.WaitGroup
	count map[string]int
}

// ask is one contender of the model, whose node carries its name.
type ask struct {
	name   string
	lock   *locks.RWLock
	shared bool
	try    bool // may leave at any time
	from   *ask // the writer that it goes on from
	ctx    context.Context
	cancel context.CancelFunc

	lease *locks.Lease
	over  bool // given up, failed or released; its node may still be there
}

func newProgram(t *testing.T, w *world, seed uint64, count map[string]int) *program {
	p := &program{t: t, w: w, r: rand.New(rand.NewPCG(seed, 4)), seed: seed, asks: map[string]*ask{}, count: count}
	for i := range 1 + p.r.IntN(4) {
		m := w.member(fmt.Sprintf("m%d", i))
		m.Link.Delay(time.Duration(p.r.IntN(4)) * time.Millisecond)
		p.members = append(p.members, m)
	}
	return p
}

// stands reports whether a grant was made and has not ended.
func (a *ask) stands() bool { return a.lease != nil && !a.over && a.lease.Err() == nil }

// step does something at random.
func (p *program) step() {
	switch n := p.r.IntN(100); {
	case n < 22:
		p.ask(false, false)
	case n < 44:
		p.ask(true, false)
	case n < 50:
		p.ask(p.r.IntN(2) == 0, true)
	case n < 60:
		p.giveUp()
	case n < 78:
		p.release()
	case n < 88:
		p.goOn()
	case n < 90:
		p.cut(time.Duration(p.r.IntN(1000)) * time.Millisecond)
	case n < 91:
		p.cut(timeout + time.Duration(p.r.IntN(10000))*time.Millisecond)
	case n < 94:
		p.settle()
	default:
		time.Sleep(time.Duration(p.r.IntN(10)) * time.Millisecond)
	}
}

// ask asks in the background.
func (p *program) ask(shared, try bool) {
	p.locks++
	a := &ask{name: strconv.Itoa(p.locks), shared: shared, try: try}
	a.lock = locks.NewRWLock(p.members[p.r.IntN(len(p.members))].Client, path, locks.WithData([]byte(a.name)))
	a.ctx, a.cancel = context.WithCancel(p.t.Context())
	p.begin(a)
}

func (p *program) begin(a *ask) {
	p.mu.Lock()
	p.asks[a.name] = a
	p.mu.Unlock()
	p.done.Go(func() {
		lease, err := a.granting()(a.ctx)
		p.ended(a, lease, err)
	})
}

func (a *ask) granting() func(context.Context) (*locks.Lease, error) {
	switch {
	case a.try && a.shared:
		return a.lock.TryRLock
	case a.try:
		return a.lock.TryLock
	case a.shared:
		return a.lock.RLock
	}
	return a.lock.Lock
}

// ended notes how a request has ended.
func (p *program) ended(a *ask, lease *locks.Lease, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		a.lease = lease
		p.granted(a)
		return
	}
	switch {
	case a.over:
		require.ErrorIs(p.t, err, context.Canceled)
	case a.try:
		require.ErrorIs(p.t, err, locks.ErrNotAcquired)
	default:
		require.True(p.t, a.from != nil && !a.from.stands(), "seed %d: %s fails: %v", p.seed, a.name, err)
	}
	a.over = true
}

// granted compares a grant with the rules. It is called with the lock held.
func (p *program) granted(a *ask) {
	if a.over { // given up at the same time
		go func() { _ = a.lease.Release(p.t.Context()) }()
		return
	}
	if a.lease.Err() != nil {
		return
	}
	p.count["grants"]++
	for _, o := range p.asks {
		if o != a && o.stands() && !(a.shared && o.shared) && a.from != o && o.from != a {
			require.NoError(p.t, a.lease.Err(), "lost meanwhile, before the other was granted")
			require.Fail(p.t, "two holders", "seed %d: %s beside %s", p.seed, a.name, o.name)
		}
	}
	if a.from == nil && !a.shared {
		require.Greater(p.t, a.lease.Token(), p.token, "seed %d: tokens rise", p.seed)
		p.token = a.lease.Token()
	}
	for _, before := range p.before(a) {
		// One whose context has ended leaves: it wakes the next of its session while its deletion
		// is still on its way. If it was granted after all, it is compared with the holders when it
		// tells so.
		require.True(p.t, before.over || before.try || before.ctx.Err() != nil ||
			before.lease != nil && before.lease.Err() != nil,
			"seed %d: %s overtakes %s, which waits", p.seed, a.name, before.name)
	}
}

// before are those that a must wait for, by the server's nodes.
func (p *program) before(a *ask) (all []*ask) {
	for _, n := range p.line() {
		if n.ask != a && number(n.path) < number(a.lease.Node()) && !(a.shared && n.ask.shared) && a.from != n.ask {
			all = append(all, n.ask)
		}
	}
	return all
}

// waitState is a node in line.
type waitState struct {
	path string
	*ask
}

// line is what the server has, in order.
func (p *program) line() (line []waitState) {
	for _, n := range p.w.zk.Tree(path) {
		if n.Path != path {
			line = append(line, waitState{n.Path, p.asks[string(n.Data)]})
		}
	}
	slices.SortStableFunc(line, func(a, b waitState) int {
		if number(a.path) < number(b.path) {
			return -1
		}
		return 1
	})
	return line
}

// pick returns a request that is wanted, at random, or nil.
func (p *program) pick(wanted func(*ask) bool) *ask {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.r.Perm(p.locks) {
		if a := p.asks[strconv.Itoa(i+1)]; a != nil && wanted(a) {
			return a
		}
	}
	return nil
}

// giveUp ends a wait.
func (p *program) giveUp() {
	a := p.pick(func(a *ask) bool { return a.lease == nil && !a.over && !a.try && a.from == nil })
	if a == nil {
		return
	}
	p.mu.Lock()
	granted := a.lease != nil
	a.over = a.over || !granted
	p.mu.Unlock()
	if !granted {
		a.cancel()
		p.note("given up")
	}
}

// release gives a lease back, in the background or not.
func (p *program) release() {
	if a := p.pick((*ask).stands); a != nil {
		p.releaseOf(a)
	}
}

func (p *program) releaseOf(a *ask) {
	p.mu.Lock()
	a.over = true
	p.mu.Unlock()
	if p.r.IntN(2) == 0 {
		p.done.Go(func() { _ = a.lease.Release(p.t.Context()) })
		return
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Millisecond)
	defer cancel()
	_ = a.lease.Release(ctx)
}

// downgrade has a writer go on as a reader.
func (p *program) goOn() {
	w := p.pick(func(a *ask) bool { return a.stands() && !a.shared })
	if w == nil {
		return
	}
	p.locks++
	a := &ask{name: strconv.Itoa(p.locks), shared: true, from: w, ctx: w.lease.Context(), cancel: func() {}}
	a.lock = locks.NewRWLock(p.client(w), path, locks.WithData([]byte(a.name)))
	p.begin(a)
	if p.r.IntN(2) == 0 {
		synctest.Wait()
	}
	if p.r.IntN(2) == 0 {
		p.note("gone on")
		p.releaseOf(w)
	}
}

// client is the member that holds a lease.
func (p *program) client(a *ask) *framework.Client {
	for _, m := range p.members {
		if s, err := m.Session(p.t.Context()); err == nil && s.ID() == a.lease.Session() {
			return m.Client
		}
	}
	return p.members[0].Client // its session is over, and so is the lease
}

// cut cuts a member off for a while.
func (p *program) cut(d time.Duration) {
	m := p.members[p.r.IntN(len(p.members))]
	m.Link.Cut()
	p.note("cuts")
	time.Sleep(d)
	m.Link.Heal()
}

func (p *program) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[what]++
}

// settle waits until nothing moves and makes sure that whoever may be granted was.
func (p *program) settle() {
	time.Sleep(timeout)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.line()
	for i, n := range line {
		blocked := slices.ContainsFunc(line[:i],
			func(o waitState) bool { return !(n.shared && o.shared) && number(o.path) != number(n.path) })
		require.False(p.t, n.over, "seed %d: %s was left behind", p.seed, n.path)
		require.Equal(p.t, !blocked, n.stands(), "seed %d: %s, the %d. of %d, granted", p.seed, n.path, i+1, len(line))
	}
	p.count["settled"]++
}

// finish releases until everybody has been served.
func (p *program) finish() {
	p.settle()
	for a := p.pick((*ask).stands); a != nil; a = p.pick((*ask).stands) {
		p.releaseOf(a)
		time.Sleep(50 * time.Millisecond) // enough for the next one, if nobody was cut off lately
	}
	p.settle()
	require.Nil(p.t, p.pick((*ask).stands), "seed %d: granted late", p.seed)
	p.done.Wait()
	for name, a := range p.asks {
		require.True(p.t, a.over || a.lease != nil && a.lease.Err() != nil, "seed %d: %s was never served", p.seed,
			name)
		a.cancel()
	}
	p.w.nothingLeft(p.t)
}
