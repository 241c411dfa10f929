//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// goroutines lets the goroutines of one client take turns at one lock. Bare requests do not wait
// for each other: that bounds what any lock can do.
func goroutines(ctx context.Context, m measurement) (f figure, err error) {
	c, err := m.connect(ctx)
	if err != nil {
		return f, err
	}
	lockers, err := lockersOf(c, contenders)
	if err != nil {
		return f, err
	}
	g := section{shared: m.peer == barePeer}
	return together(ctx, m, contenders, func(ctx context.Context, who int) error { return g.pass(ctx, lockers[who]) })
}

func lockersOf(c connection, n int) (lockers []locker, err error) {
	lockers = make([]locker, n)
	for i := range lockers {
		if lockers[i], err = c.locker("compare-goroutines"); err != nil {
			return nil, err
		}
	}
	return lockers, nil
}

const waiters = 1000

// inLine returns a contender that holds first, and those that wait: one of each client, and again.
// Where a client can have one lock only, they have one each.
func (m measurement) inLine(ctx context.Context, clients int) (lockers []locker, err error) {
	lockers = make([]locker, waiters+1)
	if m.peer == postgresPeer {
		clients = len(lockers)
	}
	connections := make([]connection, clients)
	for i := range lockers {
		if i < clients {
			if connections[i], err = m.connect(ctx); err != nil {
				return nil, err
			}
		}
		if lockers[i], err = connections[i%clients].locker("compare-" + m.work); err != nil {
			return nil, err
		}
	}
	return lockers, nil
}

// handover measures how fast a lock passes through waiters of one client behind a holder.
func handover(ctx context.Context, m measurement) (f figure, err error) {
	lockers, err := m.inLine(ctx, 1)
	if err != nil {
		return f, err
	}
	holder, err := lockers[0](ctx)
	if err != nil {
		return f, err
	}
	var g section
	errs := make([]error, waiters)
	var all sync.WaitGroup
	for i := range waiters {
		all.Go(func() { errs[i] = g.pass(ctx, lockers[i+1]) })
	}
	time.Sleep(queueingTime)
	begun := time.Now()
	if err := holder.release(ctx); err != nil {
		return f, err
	}
	all.Wait()
	return figure{PerS: waiters / time.Since(begun).Seconds()}, errors.Join(errs...)
}

// nextHolder measures how long it takes from a release until the next of the waiters holds, which
// is mostly one of another client. Each holds for a moment before it releases, so that nothing is
// on its way then.
func nextHolder(ctx context.Context, m measurement) (f figure, err error) {
	lockers, err := m.inLine(ctx, someClients)
	if err != nil {
		return f, err
	}
	type hold struct {
		began time.Time
		err   error
	}
	holds, end := make(chan hold), make(chan struct{})
	var released time.Time // each holder writes it before the next one holds
	pass := func(lock locker) {
		held, err := lock(ctx)
		holds <- hold{time.Now(), err}
		if err != nil {
			return
		}
		<-end
		released = time.Now()
		if err := held.release(ctx); err != nil {
			holds <- hold{err: err}
		}
	}
	go pass(lockers[0])
	if first := <-holds; first.err != nil {
		return f, first.err
	}
	for _, lock := range lockers[1:] { // those of one client do not stand beside each other
		go pass(lock)
		time.Sleep(time.Millisecond)
	}
	time.Sleep(queueingTime)
	var took []float64
	for n := range waiters { // the rest only empties the line
		if n < handOvers {
			time.Sleep(20 * time.Millisecond)
		}
		end <- struct{}{}
		next := <-holds
		if next.err != nil {
			return f, next.err
		}
		took = append(took, float64(next.began.Sub(released))/float64(time.Millisecond))
	}
	end <- struct{}{}
	return figure{MS: median(took[5:handOvers])}, nil
}

// handOvers is how many nextHolder measures; the first few warm up.
const handOvers = 55

// queueingTime is enough for 1,000 waiters to stand in line; most need a third of a second.
const queueingTime = 3 * time.Second

// queueing puts items, and then takes and acknowledges them, one after the other.
func queueing(ctx context.Context, m measurement) (f figure, err error) {
	c, err := m.connect(ctx)
	if err != nil {
		return f, err
	}
	q, ok := c.(queuer)
	if !ok {
		return f, fmt.Errorf("%s has no queue", m.peer)
	}
	put, take, err := q.queue("compare-queue")
	if err != nil {
		return f, err
	}
	const items = 600
	item := make([]byte, 100)
	pass := func(n int) error {
		for range n {
			if err := put(ctx, item); err != nil {
				return err
			}
		}
		for range n {
			if err := take(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	if err := pass(items / 3); err != nil {
		return f, err
	}
	begun := time.Now()
	err = pass(items)
	return figure{PerS: items / time.Since(begun).Seconds()}, err
}

// counting lets clients add to one number.
func counting(ctx context.Context, m measurement) (f figure, err error) {
	adders := make([]func(context.Context) error, contenders)
	for i := range adders {
		c, err := m.connect(ctx)
		if err != nil {
			return f, err
		}
		n, ok := c.(counter)
		if !ok {
			return f, fmt.Errorf("%s has no counter", m.peer)
		}
		if adders[i], err = n.counter("compare-counter"); err != nil {
			return f, err
		}
	}
	return together(ctx, m, contenders, func(ctx context.Context, who int) error { return adders[who](ctx) })
}

const (
	someClients  = 20 // with several goroutines each
	watchersEach = 50
)

// watching measures how long a change takes until all watchers have seen it.
func watching(ctx context.Context, m measurement) (f figure, err error) {
	const name = "compare-setting"
	var clients []watcher
	for range someClients {
		c, err := m.connect(ctx)
		if err != nil {
			return f, err
		}
		w, ok := c.(watcher)
		if !ok {
			return f, fmt.Errorf("%s has no watchers", m.peer)
		}
		clients = append(clients, w)
	}
	if err := clients[0].set(ctx, name, "0"); err != nil {
		return f, err
	}
	var wanted atomic.Pointer[string]
	var seen atomic.Int64
	all := make(chan struct{}, 1)
	for _, c := range clients {
		err := c.watch(ctx, name, watchersEach, func(value string) {
			if w := wanted.Load(); w != nil && *w == value && seen.Add(1) == someClients*watchersEach {
				all <- struct{}{}
			}
		})
		if err != nil {
			return f, err
		}
	}
	time.Sleep(m.warmup)
	var took []float64
	for n := 1; n <= 25; n++ {
		value := strconv.Itoa(n)
		seen.Store(0)
		wanted.Store(&value)
		begun := time.Now()
		if err := clients[0].set(ctx, name, value); err != nil {
			return f, err
		}
		select {
		case <-all:
			took = append(took, float64(time.Since(begun))/float64(time.Millisecond))
		case <-time.After(10 * time.Second):
			return f, fmt.Errorf("after 10 s, %d of %d watchers have seen the change", seen.Load(),
				someClients*watchersEach)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return figure{MS: median(took[5:])}, nil
}

const idleClients = 1000

// idle measures the processor time of the servers while clients have sessions and do nothing, in
// milliseconds a second. Clients of Redis hold a lock each, since they have no session otherwise.
func idle(ctx context.Context, m measurement) (f figure, err error) {
	var shared connection
	for i := range idleClients {
		c := shared
		if c == nil {
			if c, err = m.connect(ctx); err != nil {
				return f, err
			}
		}
		switch c := c.(type) {
		case etcdConnection:
			shared = c
			_, err = c.session()
		case redisConnection:
			shared = c
			name := fmt.Sprintf("compare-idle-%d", i)
			lock, _ := c.locker(name)
			if c.peer == redsyncPeer {
				lock = c.extended(name)
			}
			_, err = lock(ctx)
		}
		if err != nil {
			return f, err
		}
	}
	time.Sleep(m.session) // what a new client does is over
	before, begun := processorTime(m.pids), time.Now()
	time.Sleep(max(10*time.Second, m.span))
	used := processorTime(m.pids) - before
	if used == 0 {
		return f, errors.New("the servers' processor time cannot be read")
	}
	return figure{MS: float64(used.Milliseconds()) / time.Since(begun).Seconds()}, nil
}

// processorTime returns how much processor time processes have used, in the kernel's ticks of 10
// ms.
func processorTime(pids string) (total time.Duration) {
	for pid := range strings.SplitSeq(pids, ",") {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		for _, field := range strings.Fields(rest)[11:13] {
			n, _ := strconv.Atoi(field)
			total += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return total
}

// member is one of the processes that want one lock: it prints UP, HELD when it holds, and OVER
// when its library tells it that it holds no longer. It releases at a line of its input, and prints
// RELEASED before it does.
func (m measurement) member(ctx context.Context) error {
	c, err := m.connect(ctx)
	if err != nil {
		return err
	}
	lock, err := c.locker(m.name)
	if e, ok := c.(candidate); ok && m.work == "election" {
		lock, err = e.candidate(m.name)
	}
	if err != nil {
		return err
	}
	switch c := c.(type) {
	case redisConnection:
		if c.peer == redsyncPeer {
			lock = c.extended(m.name)
		}
	case postgresConnection:
		lock = c.pinged(lock)
	}
	fmt.Println("UP")
	held, err := lock(ctx)
	if err != nil {
		return err
	}
	fmt.Println("HELD")
	go func() {
		if held.over != nil {
			<-held.over
			fmt.Println("OVER")
		}
	}()
	if _, err := fmt.Scanln(); err != nil && !strings.Contains(err.Error(), "newline") {
		return err
	}
	fmt.Println("RELEASED")
	return held.release(ctx)
}
