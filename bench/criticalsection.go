package main

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

// maxHandoffs bounds how many hand-offs are kept for the quantiles: some locks have millions a
// second.
const maxHandoffs = 1_000_000

// criticalSection is the critical section that the contenders of a process share. It checks mutual
// exclusion and measures hand-offs.
type criticalSection struct {
	inside   atomic.Int32
	entries  int // only the lock protects this field and the following ones
	owner    int
	fence    fence
	released time.Time
	self     int
	handoffs []time.Duration

	keepHoldPeriods bool // keep the hold periods, to compare them with other processes
	holdPeriods     []holdPeriod
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

func (g *criticalSection) enter(who int, f fence, measured bool) error {
	now := time.Now()
	if g.inside.Add(1) != 1 || !f.after(g.fence) {
		return errViolated
	}
	g.entries++
	if measured && !g.released.IsZero() {
		g.recordHandoff(who, now.Sub(g.released))
	}
	g.owner = who
	g.inside.Add(-1)
	g.released = time.Now()
	if g.keepHoldPeriods {
		g.recordHold(f, now, measured)
	}
	g.fence = f
	return nil
}

func (g *criticalSection) recordHandoff(who int, took time.Duration) {
	switch {
	case g.owner == who:
		g.self++
	case len(g.handoffs) < maxHandoffs:
		g.handoffs = append(g.handoffs, took)
	}
}

// recordHold adds a hold period, or extends the last one.
func (g *criticalSection) recordHold(f fence, from time.Time, measured bool) {
	if last := len(g.holdPeriods) - 1; last >= 0 && f.token == g.fence.token {
		g.holdPeriods[last].To = g.released.UnixNano()
		return
	}
	g.holdPeriods = append(g.holdPeriods, holdPeriod{f.token, from.UnixNano(), g.released.UnixNano(), measured})
}

// pass acquires, enters and releases once.
func (g *criticalSection) pass(ctx context.Context, l locks.Locker, who int, measured func() bool) error {
	lease, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	if err := g.enter(who, fenceOf(lease), measured()); err != nil {
		return err
	}
	return lease.Release(ctx)
}
