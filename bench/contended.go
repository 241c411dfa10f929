package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// guarded is the critical section that all contenders share. It checks mutual exclusion and measures
// hand-offs.
type guarded struct {
	inside   atomic.Int32
	entries  int // only the lock protects it, and what follows
	owner    int
	token    int64
	released time.Time
	self     int
	handoffs []time.Duration
}

var errViolated = errors.New("mutual exclusion violated")

func (g *guarded) enter(who int, token int64, measured bool) error {
	now := time.Now()
	if g.inside.Add(1) != 1 || token <= g.token {
		return errViolated
	}
	g.token = token
	g.entries++
	if measured && !g.released.IsZero() {
		if g.owner == who {
			g.self++
		} else {
			g.handoffs = append(g.handoffs, now.Sub(g.released))
		}
	}
	g.owner = who
	g.inside.Add(-1)
	g.released = time.Now()
	return nil
}

// pass acquires, enters and releases once.
func (g *guarded) pass(ctx context.Context, m *locks.Mutex, who int, measured func() bool) error {
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	if err := g.enter(who, lease.Token(), measured()); err != nil {
		return err
	}
	return lease.Release(ctx)
}

// contended is W2.
func contended(s settings) error {
	ctx, n := context.Background(), or(s.c, 32)
	clients, err := openAll(s, n)
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	var g guarded
	var phase atomic.Int32 // 0 before, 1 during, 2 after the measured time
	all, counts, errs := make([]int, n), make([]int, n), make(chan error, n)
	measured := func() bool { return phase.Load() == 1 }
	var wg sync.WaitGroup
	for i, c := range clients {
		m := locks.NewMutex(c, root+"/w2")
		wg.Go(func() {
			for phase.Load() < 2 {
				if err := g.pass(ctx, m, i, measured); err != nil {
					errs <- err
					phase.Store(2)
					return
				}
				all[i]++
				if measured() {
					counts[i]++
				}
			}
		})
	}
	time.Sleep(s.warmup)
	before, ok := requests(s)
	start := time.Now()
	phase.CompareAndSwap(0, 1)
	time.Sleep(s.span)
	phase.Store(2)
	took := time.Since(start)
	after, _ := requests(s)
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	if sum(all) != g.entries {
		return errViolated
	}
	r := newResult(s, "lockstep", map[string]any{"c": n}, sum(counts), took, g.handoffs).requests(before, after, ok)
	r.Self, r.Least, r.Most = &g.self, of(slices.Min(counts)), of(slices.Max(counts))
	return r.print()
}

// convoy is W4.
func convoy(s settings) error {
	ctx, n := context.Background(), or(s.c, 1000)
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	m := locks.NewMutex(c, root+"/w4")
	holder, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	var g guarded
	errs := make(chan error, n)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range n {
		wg.Go(func() {
			if err := g.pass(ctx, m, i, func() bool { return true }); err != nil {
				errs <- err
			}
		})
	}
	if err := await(ctx, c, root+"/w4", n+1); err != nil {
		return err
	}
	queueing := time.Since(start)
	settle(s)
	before, ok := requests(s)
	start = time.Now()
	g.owner, g.released = -1, start
	if err := holder.Release(ctx); err != nil {
		return err
	}
	wg.Wait()
	took := time.Since(start)
	after, _ := requests(s)
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	if g.entries != n {
		return errViolated
	}
	r := newResult(s, "lockstep", map[string]any{"c": n}, n, took, g.handoffs).requests(before, after, ok)
	r.PerHand, r.QueueingS = of(ms(took)/float64(n)), of(queueing.Seconds())
	return r.print()
}

// await polls until path has n children.
func await(ctx context.Context, c *framework.Client, path string, n int) error {
	for {
		st, err := c.Exists(ctx, path)
		if err != nil {
			return err
		}
		if int(st.NumChildren) >= n {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func openAll(s settings, n int) ([]*framework.Client, error) {
	clients := make([]*framework.Client, n)
	for i := range clients {
		var err error
		if clients[i], err = open(s); err != nil {
			closeAll(clients[:i]...)
			return nil, err
		}
	}
	return clients, nil
}

func closeAll(clients ...*framework.Client) {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { _ = c.Close(context.Background()) })
	}
	wg.Wait()
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}
