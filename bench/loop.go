package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// tally is the result of a closed loop.
type tally struct {
	all, counts []int // cycles of each contender: all, and those of the measured time
	took        time.Duration
	traffic     traffic // of the measured time
}

// loop runs n contenders for the warm-up and the measured time. Each runs one cycle after the other
// without a pause.
func loop(s settings, n int, turn func(who int, measured func() bool) error) (tally, error) {
	var phase atomic.Int32 // 0 before, 1 during, 2 after the measured time
	measured := func() bool { return phase.Load() == 1 }
	t := tally{all: make([]int, n), counts: make([]int, n)}
	errs := make(chan error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for phase.Load() < 2 {
				if err := turn(i, measured); err != nil {
					errs <- err
					phase.Store(2)
					return
				}
				t.all[i]++
				if measured() {
					t.counts[i]++
				}
			}
		})
	}
	time.Sleep(s.warmup)
	before, start := s.traffic(), time.Now()
	phase.CompareAndSwap(0, 1)
	time.Sleep(s.span)
	phase.Store(2)
	t.took = time.Since(start)
	t.traffic = s.traffic().since(before)
	wg.Wait()
	close(errs)
	return t, <-errs
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}
