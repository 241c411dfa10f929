package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// readWrite is W8. The quantiles are of the time that an acquire takes.
func readWrite(s settings) error {
	clients, err := openAll(s, s.readers+s.writers)
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	b := newSharedRegister(s, clients)
	t, err := loop(s, len(clients), b.turn)
	if err != nil {
		return err
	}
	total := sum(t.counts)
	for _, half := range []struct {
		op       string
		from, to int
	}{{"read", 0, s.readers}, {"write", s.readers, len(clients)}} {
		if half.from == half.to {
			continue
		}
		params := s.params(map[string]any{"readers": s.readers, "writers": s.writers, "op": half.op})
		laps := slices.Concat(b.laps[half.from:half.to]...)
		r := newResult(s, "lockstep", params, sum(t.counts[half.from:half.to]), t.took, laps)
		if err := r.requestsOf(t.traffic, total).print(); err != nil {
			return err
		}
	}
	return nil
}

// sharedRegister is read and written under one lock. Readers have the first indexes, writers the
// last ones.
type sharedRegister struct {
	readers int
	lockers []locks.Locker
	laps    [][]time.Duration
	inside  atomic.Int32 // readers, or -1 while a writer is
	fence   fence        // of the last writer; only the lock protects it
}

func newSharedRegister(s settings, clients []*framework.Client) *sharedRegister {
	b := &sharedRegister{readers: s.readers, laps: make([][]time.Duration, len(clients))}
	for i, c := range clients {
		l := locks.NewRWLock(c, root+"/w8", s.rwOptions()...)
		if i < s.readers {
			b.lockers = append(b.lockers, l.RLocker())
		} else {
			b.lockers = append(b.lockers, l)
		}
	}
	return b
}

func (r *sharedRegister) turn(who int, measured func() bool) error {
	ctx, start := context.Background(), time.Now()
	lease, err := r.lockers[who].Lock(ctx)
	if err != nil {
		return err
	}
	took := time.Since(start)
	use := r.write
	if who < r.readers {
		use = r.read
	}
	if err := use(fenceOf(lease)); err != nil {
		return err
	}
	if measured() {
		r.laps[who] = append(r.laps[who], took)
	}
	return lease.Release(ctx)
}

func (r *sharedRegister) read(fence) error {
	if r.inside.Add(1) < 1 {
		return errViolated
	}
	r.inside.Add(-1)
	return nil
}

func (r *sharedRegister) write(f fence) error {
	if !r.inside.CompareAndSwap(0, -1) || !f.after(r.fence) {
		return errViolated
	}
	r.fence = f
	r.inside.Store(0)
	return nil
}
