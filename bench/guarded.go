package main

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

// mostHandoffs bounds the number of measured hand-offs: some locks have millions a second.
const mostHandoffs = 1_000_000

// guarded is the critical section that the contenders of a process share. It checks mutual exclusion and
// measures hand-offs.
type guarded struct {
	inside   atomic.Int32
	entries  int // only the lock protects this field and the following ones
	owner    int
	fence    fence
	released time.Time
	self     int
	handoffs []time.Duration

	keep    bool // keep the hold periods, to compare them with other processes
	tenures []holdPeriod
}

var errViolated = errors.New("mutual exclusion violated")

// fence is a lease's token and turn, which must rise.
type fence struct{ token, turn int64 }

func fenceOf(l *locks.Lease) fence { return fence{l.Token(), l.Turn()} }

func (f fence) after(g fence) bool {
	return cmp.Or(cmp.Compare(f.token, g.token), cmp.Compare(f.turn, g.turn)) > 0
}

// holdPeriod is the time that a process held one token, by the machine's clock in nanoseconds.
type holdPeriod struct {
	Token, From, To int64
	Measured        bool
}

func (g *guarded) enter(who int, f fence, measured bool) error {
	now := time.Now()
	if g.inside.Add(1) != 1 || !f.after(g.fence) {
		return errViolated
	}
	g.entries++
	if measured && !g.released.IsZero() {
		g.handed(who, now.Sub(g.released))
	}
	g.owner = who
	g.inside.Add(-1)
	g.released = time.Now()
	if g.keep {
		g.held(f, now, measured)
	}
	g.fence = f
	return nil
}

func (g *guarded) handed(who int, took time.Duration) {
	switch {
	case g.owner == who:
		g.self++
	case len(g.handoffs) < mostHandoffs:
		g.handoffs = append(g.handoffs, took)
	}
}

// held adds a hold period, or extends the last one.
func (g *guarded) held(f fence, from time.Time, measured bool) {
	if last := len(g.tenures) - 1; last >= 0 && f.token == g.fence.token {
		g.tenures[last].To = g.released.UnixNano()
		return
	}
	g.tenures = append(g.tenures, holdPeriod{f.token, from.UnixNano(), g.released.UnixNano(), measured})
}

// pass acquires, enters and releases once.
func (g *guarded) pass(ctx context.Context, l locks.Locker, who int, measured func() bool) error {
	lease, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	if err := g.enter(who, fenceOf(lease), measured()); err != nil {
		return err
	}
	return lease.Release(ctx)
}
