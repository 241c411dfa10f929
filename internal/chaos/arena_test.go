//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/queue"
)

// patience bounds every wait; only a broken promise or a dead machine uses it up.
const patience = 2 * time.Minute

// arena is the servers, the clients and the harness's own client.
type arena struct {
	*ensemble.Ensemble
	clients []*client
	record  *record
	watcher *framework.Client
	queues  map[string]*queue.Queue[string]

	mu  sync.Mutex
	hit map[string]bool // what a fault has struck
}

// newArena starts three servers.
func newArena(t *testing.T, diskMB int, r *record) *arena {
	e := ensemble.Private(t, ensemble.Config{Links: true, NoFsync: true, Patience: patience, HeapMB: 512, DiskMB: diskMB})
	return &arena{Ensemble: e, record: r, hit: map[string]bool{}, queues: map[string]*queue.Queue[string]{}}
}

// enlist adds a client that knows these servers and starts its process.
func (a *arena) enlist(t *testing.T, role string, seed uint64, servers ...int) {
	t.Helper()
	c := &client{number: len(a.clients), role: role, record: a.record}
	for _, i := range servers {
		p, err := ensemble.NewProxy(a.Addr(i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		c.proxies = append(c.proxies, p)
	}
	if err := c.start(seed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.kill() }) // most have ended
	a.clients = append(a.clients, c)
}

// watch connects the harness itself, past all proxies, to see when nothing is left.
func (a *arena) watch(t *testing.T) {
	t.Helper()
	c, err := connect(t.Context(), a.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	a.watcher = c
	for path, options := range queueOptions {
		a.queues[path] = queue.New(c, path, queue.Text(), options...)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, q := range a.queues {
			_ = q.Close(ctx) // it has put and taken nothing
		}
		_ = c.Close(ctx)
	})
}

// claim draws one of some things that no other fault has struck; ok is false when there is none.
func (a *arena) claim(r *rand.Rand, name string, n int, fit func(int) bool) (i int, free func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range r.Perm(n) {
		key := fmt.Sprint(name, i)
		if a.hit[key] || !fit(i) {
			continue
		}
		a.hit[key] = true
		return i, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.hit, key)
		}, true
	}
	return 0, nil, false
}

// restore heals what the faults' own mending may have left, and waits until all servers serve.
func (a *arena) restore() error {
	a.Heal()
	_ = a.Slow(0)
	for _, c := range a.clients {
		_ = c.each(func(p *ensemble.Proxy) { p.Heal(); p.Slow(0) })()
	}
	silent := time.Now()
	for began := time.Now(); time.Since(began) < patience/2; time.Sleep(50 * time.Millisecond) {
		if a.Leader() >= 0 && len(a.Followers()) == len(a.Addrs())-1 {
			return nil
		}
		if time.Since(silent) > patience/8 { // what is tested here is the client
			a.restartSilent()
			silent = time.Now()
		}
	}
	return a.Await(context.Background()) // its error shows the servers' logs
}

// restartSilent starts servers again that do not come back by themselves.
func (a *arena) restartSilent() {
	for i := range a.Size() {
		if a.Mode(i) == "" {
			a.record.remark(fmt.Sprintf("server %d serves nobody: it is started again", i))
			_ = a.Kill(i) // it may have ended
			_ = a.Restart(i)
		}
	}
}

// order tells all clients their pace.
func (a *arena) order(pace string) {
	for _, c := range a.clients {
		c.order(pace)
	}
}

// nobodyLeft waits until no contender of any lock is there any more.
func (a *arena) nobodyLeft(ctx context.Context) error {
	if a.watcher == nil { // naive clients leave what they like
		return nil
	}
	for path := range rules {
		if path == strictPath {
			continue
		}
		for _, dir := range []string{path, path + "/locks", path + "/leases"} {
			if err := a.emptied(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptied waits until a directory has no child but those of a semaphore.
func (a *arena) emptied(ctx context.Context, dir string) error {
	for {
		names, _, err := a.watcher.Children(ctx, dir)
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains([]string{"locks", "leases", "permits"}, n) })
		if errors.Is(err, framework.ErrNoNode) || err == nil && len(names) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: left behind: %s: %w", dir, strings.Join(names, ", "), errors.Join(err, ctx.Err()))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// drained waits until a queue has no item, and returns when it counted none. One count can miss an item that is moved
// meanwhile, such as one that is given back with a delay, so it counts several times.
func (a *arena) drained(ctx context.Context, path string) (seen, error) {
	const counts = 3
	var seenLast string
	for none := 0; ; {
		s := seen{from: now()}
		n, err := a.count(ctx, path)
		s.to = now()
		if err == nil && n == 0 {
			none++
		} else {
			none = 0
		}
		if ctx.Err() == nil {
			seenLast = fmt.Sprint(n, " items, ", err)
		}
		if none == counts {
			return s, nil
		}
		if ctx.Err() != nil {
			a.describeNodes(path)
			return s, fmt.Errorf("%s: items are left that no consumer gets: %s: %w", path, seenLast, errors.Join(err, ctx.Err()))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// describeNodes writes all nodes below a path into the history.
func (a *arena) describeNodes(path string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	names, st, err := a.watcher.Children(ctx, path)
	a.record.remark(fmt.Sprintf("node %s: %d children, owner %x, %v", path, len(names), st.EphemeralOwner, err))
	for _, name := range names {
		a.describeNodes(framework.Join(path, name))
	}
}

// count is the number of items, as the leader knows it.
func (a *arena) count(ctx context.Context, path string) (int, error) {
	s, err := a.watcher.Session(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.Sync(ctx, path); err != nil {
		return 0, err
	}
	return a.queues[path].Len(ctx)
}

// mayMount tells whether disks can be filled here.
func mayMount() bool { return os.Geteuid() == 0 }
