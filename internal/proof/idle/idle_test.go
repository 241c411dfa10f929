package idle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

const timeout = 10 * time.Second

// role is one way in which many clients of an ensemble wait or are present.
type role struct {
	name string
	// run runs the role of one client until ctx ends. It is called for one client after the other.
	run func(ctx context.Context, c *framework.Client)
	// busy is how many of the clients, from the first one, hold something or are next in line.
	busy int
}

// acquireAndHold waits for a lock in the background and keeps it.
func acquireAndHold(locker locks.Locker) func(context.Context) {
	return func(ctx context.Context) {
		if l, err := locker.Lock(ctx); err == nil {
			<-ctx.Done()
			_ = l.Release(context.WithoutCancel(ctx))
		}
	}
}

var roles = []role{
	{name: "a client that has done nothing", run: func(ctx context.Context, _ *framework.Client) { <-ctx.Done() }},
	{name: "waiters in the line of a lock", busy: 2, run: func(ctx context.Context, c *framework.Client) {
		acquireAndHold(locks.NewMutex(c, "/mutex"))(ctx)
	}},
	{name: "writers in the line of a read-write lock", busy: 2, run: func(ctx context.Context, c *framework.Client) {
		acquireAndHold(locks.NewRWLock(c, "/rw"))(ctx)
	}},
	{name: "waiters for a permit", busy: 3, /* the holder, the first in line, and the second in line */
		run: func(ctx context.Context, c *framework.Client) {
			acquireAndHold(locks.NewSemaphore(c, "/semaphore", 1))(ctx)
		}},
	{name: "waiters for a claim", busy: 1, run: func(ctx context.Context, c *framework.Client) {
		acquireAndHold(locks.NewClaim(c, "/claims/claim"))(ctx)
	}},
	{name: "candidates", busy: 2, run: func(ctx context.Context, c *framework.Client) {
		_ = election.New(c, "/election").Lead(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			return nil
		})
	}},
	{name: "observers of an election", run: func(ctx context.Context, c *framework.Client) {
		for range election.New(c, "/election").Follow(ctx) {
		}
	}},
	{name: "members of a group", run: func(ctx context.Context, c *framework.Client) {
		if m, err := members.New(c, "/group").Join(ctx, c.Config().Identity, members.Info{}); err == nil {
			<-ctx.Done()
			_ = m.Leave(context.WithoutCancel(ctx))
		}
	}},
	{name: "watchers of a group", run: func(ctx context.Context, c *framework.Client) {
		for range members.New(c, "/group").Follow(ctx) {
		}
	}},
	{name: "consumers of an empty parallel queue", busy: 2, run: consume(queue.Parallel)},
	{name: "consumers of an empty strict queue", busy: 2, run: consume(queue.Strict)},
	{name: "schedulers without jobs", run: schedule()},
	{name: "schedulers with a job of the leader", busy: 2, run: schedule(scheduler.Job{
		Name: "yearly", Spec: "@yearly", Run: func(context.Context, scheduler.Run) error { return nil },
	})},
	{name: "members of a barrier that are too few", run: func(ctx context.Context, c *framework.Client) {
		_, _ = barrier.NewDoubleBarrier(c, "/barrier", 100).Enter(ctx)
	}},
	{name: "members of a barrier of Curator's that are too few", run: func(ctx context.Context, c *framework.Client) {
		_, _ = barrier.NewDoubleBarrier(c, "/curator", 100, barrier.WithCuratorLayout()).Enter(ctx)
	}},
	{name: "waiters at a gate", run: func(ctx context.Context, c *framework.Client) {
		g := barrier.NewGate(c, "/gate")
		_ = g.Raise(ctx)
		_ = g.Wait(ctx)
	}},
	{name: "readers of a configuration", run: func(ctx context.Context, c *framework.Client) {
		_ = config.New(c, "/config", codec.Text(), config.WithDefault("none")).Run(ctx)
	}},
}

func consume(order queue.Order) func(ctx context.Context, c *framework.Client) {
	return func(ctx context.Context, c *framework.Client) {
		q := queue.New(c, "/queue/"+string(order), codec.Text(), queue.WithOrder(order))
		_, _ = q.Take(ctx)
		_ = q.Close(context.WithoutCancel(ctx))
	}
}

func schedule(jobs ...scheduler.Job) func(ctx context.Context, c *framework.Client) {
	return func(ctx context.Context, c *framework.Client) {
		s := scheduler.New(c, fmt.Sprint("/scheduler", len(jobs)), scheduler.WithWaitForJobs())
		for _, j := range jobs {
			_ = s.Add(j)
		}
		_ = s.Run(ctx)
	}
}

// TestWaitersSendNothing checks that waiters still wait after ten session timeouts and have sent
// neither a write nor a read. A holder, and the next in line, send heartbeats only.
func TestWaitersSendNothing(t *testing.T) {
	for _, r := range roles {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients = 5
				zk := zktest.Start(t)
				ctx, cancel := context.WithCancel(t.Context())
				var done sync.WaitGroup
				var running atomic.Int32
				var sessions []framework.SessionID
				for i := range clients {
					m := zk.Member(t, fmt.Sprint("client ", i), framework.Config{SessionTimeout: timeout})
					s, err := m.Session(ctx)
					require.NoError(t, err)
					sessions = append(sessions, s.ID())
					running.Add(1)
					done.Go(func() {
						defer running.Add(-1)
						r.run(ctx, m.Client)
					})
					time.Sleep(time.Second)
				}
				time.Sleep(3 * timeout)
				asked := requestsOf(zk, func() { time.Sleep(10 * timeout) })
				require.EqualValues(t, clients, running.Load(),
					"the role of a client has ended, so its silence proves nothing")
				for i, id := range sessions {
					if i >= r.busy {
						require.Empty(t, asked[id], "client %d", i)
					} else {
						require.Subset(t, []zktest.Op{zktest.OpMulti, zktest.OpSync}, asked[id], "client %d", i)
						require.InDelta(t, 10*4, len(asked[id])/2, 1, "client %d: four heartbeats in each timeout", i)
					}
				}
				cancel()
				done.Wait()
			})
		})
	}
}

// requestsOf returns the requests of each session while f runs, without its pings.
func requestsOf(zk *zktest.Server, f func()) map[framework.SessionID][]zktest.Op {
	var mu sync.Mutex
	asked := map[framework.SessionID][]zktest.Op{}
	stop := zk.Observe(func(r zktest.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Op != zktest.OpPing {
			asked[r.Session] = append(asked[r.Session], r.Op)
		}
	})
	f()
	stop()
	mu.Lock()
	defer mu.Unlock()
	return asked
}

// TestTheNextInLineIsGrantedAtOnce checks the next in line after an hour in line: its grant takes
// as much time, and as many requests, as on a session that never becomes dormant.
func TestTheNextInLineIsGrantedAtOnce(t *testing.T) {
	for name, acquire := range map[string]acquireFunc{
		"mutex":      acquireFrom(func(c *framework.Client) locks.Locker { return locks.NewMutex(c, "/lock") }),
		"write lock": acquireFrom(func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, "/lock") }),
		"semaphore":  acquireFrom(func(c *framework.Client) locks.Locker { return locks.NewSemaphore(c, "/lock", 1) }),
		"election": func(ctx context.Context, c *framework.Client) (context.Context, func(context.Context) error,
			error) {
			term, err := election.New(c, "/election").Campaign(ctx)
			if err != nil {
				return nil, nil, err
			}
			return term.Context(), term.Resign, nil
		},
	} {
		for how, leave := range map[string]func(holder *zktest.Member, release func(context.Context) error) error{
			"gives it back": func(_ *zktest.Member, release func(context.Context) error) error {
				return release(context.Background())
			},
			"closes its session": func(holder *zktest.Member, _ func(context.Context) error) error {
				return holder.Close(context.Background())
			},
		} {
			t.Run(name+" whose holder "+how, func(t *testing.T) {
				asleep, requests := handOver(t, acquire, leave, false)
				awake, most := handOver(t, acquire, leave, true)
				require.Equal(t, awake, asleep)
				require.Equal(t, most, requests)
			})
		}
	}
}

// acquireFunc acquires something that one client holds at a time. It returns the context of the
// hold, and what gives it back.
type acquireFunc func(context.Context, *framework.Client) (context.Context, func(context.Context) error, error)

func acquireFrom(lockerOf func(*framework.Client) locks.Locker) acquireFunc {
	return func(ctx context.Context, c *framework.Client) (context.Context, func(context.Context) error, error) {
		l, err := lockerOf(c).Lock(ctx)
		if err != nil {
			return nil, nil, err
		}
		return l.Context(), l.Release, nil
	}
}

// handOver returns how long the next in line waits for its grant after the holder has left, and its
// requests meanwhile.
func handOver(t *testing.T, acquire acquireFunc, leave func(*zktest.Member, func(context.Context) error) error,
	alwaysAwake bool) (took time.Duration, requests []zktest.Op) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		cfg := framework.Config{SessionTimeout: timeout, AlwaysAwake: alwaysAwake}
		holder, next := zk.Member(t, "holder", cfg), zk.Member(t, "next", cfg)
		_, release, err := acquire(t.Context(), holder.Client)
		require.NoError(t, err)
		granted := make(chan context.Context, 1)
		go func() {
			if hold, _, err := acquire(t.Context(), next.Client); err == nil {
				granted <- hold
			}
		}()
		time.Sleep(time.Hour + time.Second)
		next.Link.Delay(time.Millisecond)
		s, err := next.Session(t.Context())
		require.NoError(t, err)
		began := time.Now()
		requests = requestsOf(zk, func() {
			require.NoError(t, leave(holder, release))
			require.NoError(t, (<-granted).Err())
			took = time.Since(began)
		})[s.ID()]
	})
	return took, requests
}
