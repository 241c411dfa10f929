//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// measurement is what one process of this program measures.
type measurement struct {
	work, peer, servers string
	warmup, span        time.Duration
	session             time.Duration // session timeout, time to live or expiry
	name                string        // what members share
	pids                string        // of the servers, separated by commas
}

// connection is one client of a library: a session, or a pool, as the library has it.
type connection interface {
	// locker returns a contender for a lock.
	locker(name string) (locker, error)
}

// These are connections to which more can be done.
type (
	candidate interface {
		candidate(name string) (locker, error)
	}
	counter interface {
		// counter returns a function that adds 1.
		counter(name string) (func(context.Context) error, error)
	}
	queuer interface {
		// queue returns functions that put an item, and that take one and acknowledge it.
		queue(name string) (put putter, take taker, err error)
	}
	watcher interface {
		// watch calls seen with each value of a setting that it learns of, from n watchers.
		watch(ctx context.Context, name string, n int, seen func(value string)) error
		set(ctx context.Context, name, value string) error
	}
)

type (
	putter func(ctx context.Context, item []byte) error
	taker  func(ctx context.Context) error
)

// locker waits until its contender holds the lock.
type locker func(ctx context.Context) (grant, error)

// grant is a hold.
type grant struct {
	release func(context.Context) error
	// over is closed when the library tells the holder that it holds no longer. It is nil if it
	// never does.
	over <-chan struct{}
}

var measurements = map[string]func(context.Context, measurement) (figure, error){
	"uncontended": uncontended, "contended": contended, "longest": longestWait, "goroutines": goroutines,
	"handover": handover, "next": nextHolder, "queue": queueing, "counter": counting, "watchers": watching,
	"idle": idle,
}

func (m measurement) run(ctx context.Context) error {
	if m.work == "lock" || m.work == "election" {
		return m.member(ctx)
	}
	measure := measurements[m.work]
	if measure == nil {
		return fmt.Errorf("-measure %q: no such work", m.work)
	}
	f, err := measure(ctx, m)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f) // the sessions end with the process
}

func (m measurement) connect(ctx context.Context) (connection, error) {
	servers := strings.Split(m.servers, ",")
	switch m.peer {
	case lockstepPeer, watchdogPeer:
		return connectLockstep(ctx, servers, m.session, m.peer == watchdogPeer)
	case zkPeer, barePeer:
		return connectZooKeeper(ctx, servers, m.session, m.peer == barePeer)
	case etcdPeer:
		return connectEtcd(servers, m.session)
	case redislockPeer, endlessPeer, orderedPeer, redsyncPeer, redisPeer:
		return connectRedis(servers[0], m.session, m.peer), nil
	case postgresPeer:
		return connectPostgres(ctx, servers[0])
	case riverPeer:
		return connectRiver(ctx, servers[0])
	}
	return nil, fmt.Errorf("-peer %q: no such library", m.peer)
}

func uncontended(ctx context.Context, m measurement) (f figure, err error) {
	c, err := m.connect(ctx)
	if err != nil {
		return f, err
	}
	lock, err := c.locker("compare-uncontended")
	if err != nil {
		return f, err
	}
	return repeat(m, func() error {
		held, err := lock(ctx)
		if err != nil {
			return err
		}
		return held.release(ctx)
	})
}

// repeat calls f one after the other, for the warm-up and then for the measured time.
func repeat(m measurement, f func() error) (figure, error) {
	for begun := time.Now(); time.Since(begun) < m.warmup; {
		if err := f(); err != nil {
			return figure{}, err
		}
	}
	n, begun := 0, time.Now()
	for time.Since(begun) < m.span {
		if err := f(); err != nil {
			return figure{}, err
		}
		n++
	}
	return figure{PerS: float64(n) / time.Since(begun).Seconds()}, nil
}

// contenders is how many clients want one lock at the same time.
const contenders = 32

// contended lets clients with a session each take turns at one lock. It fails if two hold at once.
func contended(ctx context.Context, m measurement) (f figure, err error) {
	lockers, err := m.lockersOfClients(ctx)
	if err != nil {
		return f, err
	}
	var g section
	return together(ctx, m, contenders, func(ctx context.Context, who int) error { return g.pass(ctx, lockers[who]) })
}

// lockersOfClients returns a contender of each of several clients.
func (m measurement) lockersOfClients(ctx context.Context) (lockers []locker, err error) {
	lockers = make([]locker, contenders)
	for i := range lockers {
		c, err := m.connect(ctx)
		if err != nil {
			return nil, err
		}
		if lockers[i], err = c.locker("compare-" + m.work); err != nil {
			return nil, err
		}
	}
	return lockers, nil
}

// longestWait measures how long the unluckiest call waits while all clients want the lock all the
// time. One that still waits at the end counts until then.
func longestWait(ctx context.Context, m measurement) (f figure, err error) {
	lockers, err := m.lockersOfClients(ctx)
	if err != nil {
		return f, err
	}
	m.span = 12 * time.Second
	waits := make([]time.Duration, contenders)
	begun := time.Now()
	var g section
	_, err = together(ctx, m, contenders, func(ctx context.Context, who int) error {
		asked := time.Now()
		return g.pass(ctx, func(ctx context.Context) (grant, error) {
			held, err := lockers[who](ctx)
			if time.Since(begun) > m.warmup {
				waits[who] = max(waits[who], time.Since(asked))
			}
			return held, err
		})
	})
	return figure{MS: float64(slices.Max(waits)) / float64(time.Millisecond)}, err
}

// section is a critical section. It notices if two are inside.
type section struct {
	shared  bool // nothing excludes
	inside  atomic.Int32
	entries int // only the lock protects it
}

var errViolated = errors.New("mutual exclusion violated")

func (s *section) pass(ctx context.Context, lock locker) error {
	held, err := lock(ctx)
	if err != nil {
		return err
	}
	if s.shared {
		return held.release(ctx)
	}
	if s.inside.Add(1) != 1 {
		return errViolated
	}
	s.entries++
	s.inside.Add(-1)
	return held.release(ctx)
}

// together lets n goroutines each repeat f, and counts the calls that end in the measured time.
func together(ctx context.Context, m measurement, n int, f func(ctx context.Context, who int) error) (figure, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	for who := range n {
		all.Go(func() {
			for !stop.Load() && ctx.Err() == nil {
				if err := f(ctx, who); err != nil {
					cancel(err)
				}
				calls.Add(1)
			}
		})
	}
	if err := pause(ctx, m.warmup); err != nil {
		return figure{}, err
	}
	before, begun := calls.Load(), time.Now()
	err := pause(ctx, m.span)
	done, took := calls.Load()-before, time.Since(begun)
	stop.Store(true)
	all.Wait()
	return figure{PerS: float64(done) / took.Seconds()}, errors.Join(err, context.Cause(ctx))
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
