package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// memory is M: how much memory a waiter takes, beside that of a goroutine that waits on a channel.
//
// It compares n goroutines that wait in Lock with n that wait on a channel. The heap is what is
// reachable after a collection: the waiter with its node's path and its place among its client's
// waiters, contexts, and the state of the connection. The stacks are those that goroutines have in
// use; Lock's are deeper than those of goroutines that wait on a channel. A first round that is not
// measured takes the memory that only the start of the waiters needs, such as that of goroutines
// that have ended. The memory of the servers is not included.
func memory(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	n := orDefault(s.c, 10_000)
	if _, _, err := measureQueued(s, c, n); err != nil {
		return err
	}
	bare := parkedWaiters(n)
	start := time.Now()
	waiting, goroutines, err := measureQueued(s, c, n)
	if err != nil {
		return err
	}
	r := newResult(s, "lockstep", s.params(map[string]any{"c": n}), n, time.Since(start), nil)
	r.OpsPerS = nil
	r.HeapBytes, r.StackBytes = ptr((waiting.heap-bare.heap)/n), ptr((waiting.stack-bare.stack)/n)
	r.Bytes = ptr(*r.HeapBytes + *r.StackBytes)
	r.Goroutines = &goroutines
	return r.print()
}

// footprint is memory in use, in bytes.
type footprint struct{ heap, stack int }

func measureMemory() footprint {
	for range 4 { // stacks shrink by halves
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{int(m.HeapAlloc), int(m.StackInuse)}
}

// parkedWaiters measures n goroutines that wait on a channel.
func parkedWaiters(n int) footprint {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { <-done })
	}
	defer wg.Wait()
	defer close(done)
	return measureMemory()
}

// measureQueued measures n waiters behind a holder, and counts the goroutines. Then the waiters
// give up.
func measureQueued(s settings, c *framework.Client, n int) (f footprint, goroutines int, err error) {
	m := locks.NewMutex(c, root+"/m", s.options()...)
	holder, err := m.Lock(context.Background())
	if err != nil {
		return f, 0, err
	}
	defer func() { err = errors.Join(err, holder.Release(context.Background())) }()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range n {
		wg.Go(func() { _, _ = m.Lock(ctx) }) // it is given up
	}
	if err := awaitChildren(holder.Context(), c, m.Path(), n+1); err != nil {
		return f, 0, err
	}
	settle(s)
	return measureMemory(), runtime.NumGoroutine(), nil
}
