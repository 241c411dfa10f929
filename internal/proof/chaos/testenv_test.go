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

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/queue"
)

// waitLimit bounds every wait. Only a violation or a stalled machine reaches it.
const waitLimit = 2 * time.Minute

// testEnv has the servers, the client processes, and the harness's own client.
type testEnv struct {
	*ensemble.Ensemble
	clients  []*clientSlot
	history  *history
	observer *framework.Client
	queues   map[string]*queue.Queue[string]

	mu           sync.Mutex
	takenTargets map[string]bool // targets of faults that last

	services *services         // the harness's own; nil if the clients are naive
	atRest   *servicesAtRest   // of the latest segment
	sink     string            // the directory of the sinks of runs
	runs     []finishedRun     // of the latest segment
	runEnds  map[string]string // how the runs of all segments have ended
}

// newTestEnv starts three servers.
func newTestEnv(t *testing.T, diskMB int, h *history) *testEnv {
	e := ensemble.Private(t, ensemble.Config{Links: true, NoFsync: true, Patience: waitLimit, HeapMB: 512,
		DiskMB: diskMB})
	return &testEnv{Ensemble: e, history: h, takenTargets: map[string]bool{}, queues: map[string]*queue.Queue[string]{},
		sink: t.TempDir(), runEnds: map[string]string{}}
}

// startClient adds a client that knows these servers, and starts its process.
func (env *testEnv) startClient(t *testing.T, role string, seed uint64, servers ...int) {
	t.Helper()
	c := &clientSlot{number: len(env.clients), role: role, files: t.TempDir(), sink: env.sink, history: env.history}
	for _, i := range servers {
		p, err := ensemble.NewProxy(env.Addr(i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		c.proxies = append(c.proxies, p)
	}
	if err := c.start(seed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.kill() }) // fails if it has ended
	env.clients = append(env.clients, c)
}

// connectObserver connects the harness itself, without a proxy, to read what the clients have left.
func (env *testEnv) connectObserver(t *testing.T) {
	t.Helper()
	c, err := connect(t.Context(), env.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	env.observer, env.services = c, newServices(c, t.TempDir())
	require.NoError(t, env.prepareServices(t.Context()))
	for path, options := range queueOptions {
		env.queues[path] = queue.New(c, path, codec.Text(), options...)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		for _, q := range env.queues {
			_ = q.Close(ctx) // it has no deliveries
		}
		_ = env.services.close(ctx) // it has given no ids
		_ = c.Close(ctx)
	})
}

// claimTarget picks a random target that fits and that no other fault has. It returns false if
// there is none.
func (env *testEnv) claimTarget(rng *rand.Rand, name string, n int, fit func(int) bool) (i int, free func(), ok bool) {
	env.mu.Lock()
	defer env.mu.Unlock()
	for _, i := range rng.Perm(n) {
		key := fmt.Sprint(name, i)
		if env.takenTargets[key] || !fit(i) {
			continue
		}
		env.takenTargets[key] = true
		env.history.logHarness("target: " + key)
		return i, func() {
			env.mu.Lock()
			defer env.mu.Unlock()
			delete(env.takenTargets, key)
		}, true
	}
	return 0, nil, false
}

// restore heals all links, and waits until all servers serve.
func (env *testEnv) restore() error {
	env.Heal()
	_ = env.Slow(0)
	for _, c := range env.clients {
		_ = c.eachProxy(func(p *ensemble.Proxy) { p.Heal(); p.Slow(0) })()
	}
	silent := time.Now()
	for began := time.Now(); time.Since(began) < waitLimit/2; time.Sleep(50 * time.Millisecond) {
		if env.Leader() >= 0 && len(env.Followers()) == len(env.Addrs())-1 {
			return nil
		}
		if time.Since(silent) > waitLimit/8 { // the servers' own recovery is not under test
			env.restartSilent()
			silent = time.Now()
		}
	}
	return env.Await(context.Background()) // its error includes the servers' logs
}

// restartSilent restarts servers that do not recover by themselves.
func (env *testEnv) restartSilent() {
	for i := range env.Size() {
		if env.Mode(i) == "" {
			env.history.logHarness(fmt.Sprintf("server %d does not serve: restarting it", i))
			_ = env.Kill(i) // fails if it has ended
			_ = env.Restart(i)
		}
	}
}

// sendOrder sends an order to all clients.
func (env *testEnv) sendOrder(order string) {
	for _, c := range env.clients {
		c.sendOrder(order)
	}
}

// awaitNoContenders waits until no lock has a contender's node.
func (env *testEnv) awaitNoContenders(ctx context.Context) error {
	if env.observer == nil { // naive clients do not clean up
		return nil
	}
	for path := range holdRules {
		if path == strictPath {
			continue
		}
		for _, dir := range []string{path, path + "/locks", path + "/leases"} {
			if err := env.awaitEmptyDir(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitEmptyDir waits until a directory has no children except those of a semaphore.
func (env *testEnv) awaitEmptyDir(ctx context.Context, dir string) error {
	for {
		names, _, err := env.observer.Children(ctx, dir)
		names = slices.DeleteFunc(names,
			func(n string) bool { return slices.Contains([]string{"locks", "leases", "permits"}, n) })
		if errors.Is(err, framework.ErrNoNode) || err == nil && len(names) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: nodes left behind: %s: %w", dir, strings.Join(names, ", "),
				errors.Join(err, ctx.Err()))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitEmptyQueue waits until a queue has no item, and returns when it counted none. One count can
// miss an item that moves meanwhile, such as one that is returned with a delay, so it counts
// several times.
func (env *testEnv) awaitEmptyQueue(ctx context.Context, path string) (drainedQueue, error) {
	const counts = 3
	var lastCount string
	for zeros := 0; ; {
		s := drainedQueue{from: now()}
		n, err := env.queueLength(ctx, path)
		s.to = now()
		if err == nil && n == 0 {
			zeros++
		} else {
			zeros = 0
		}
		if ctx.Err() == nil {
			lastCount = fmt.Sprint(n, " items, ", err)
		}
		if zeros == counts {
			return s, nil
		}
		if ctx.Err() != nil {
			return s, errors.Join(env.recordStall([]string{path}),
				fmt.Errorf("%s: items remain that no consumer gets: %s: %w", path, lastCount,
					errors.Join(err, ctx.Err())))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// queueLength returns the number of items after a sync.
func (env *testEnv) queueLength(ctx context.Context, path string) (int, error) {
	s, err := env.observer.Session(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.Sync(ctx, path); err != nil {
		return 0, err
	}
	return env.queues[path].Len(ctx)
}

// canMountDisks reports whether full disks can be injected here.
func canMountDisks() bool { return os.Geteuid() == 0 }
