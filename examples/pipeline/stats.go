package main

import (
	"encoding/json"
	"errors"
	"os"
	"runtime/metrics"
	"sync"
	"time"
)

// statsInterval is how often a process reports its goroutines and its heap.
const statsInterval = 5 * time.Second

// reportStats reports the goroutines and the heap of this process regularly, until stop is called.
func reportStats(emit func(event)) (stop func()) {
	stopped := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(statsInterval)
		defer ticker.Stop()
		for {
			emit(readStats())
			select {
			case <-ticker.C:
			case <-stopped:
				return
			}
		}
	})
	return func() {
		close(stopped)
		telling.Wait()
	}
}

func readStats() event {
	sample := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return event{Kind: processStats, Process: os.Getpid(), Goroutines: sample[0].Value.Uint64(),
		Heap: sample[1].Value.Uint64()}
}

// openEventFile opens the file for events. Without a name, keep does nothing.
func openEventFile(file string) (keep func(event), closeFile func() error, err error) {
	if file == "" {
		return func(event) {}, func() error { return nil }, nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	var failed error
	lines := json.NewEncoder(f)
	keep = func(e event) {
		if err := lines.Encode(e); failed == nil {
			failed = err
		}
	}
	return keep, func() error { return errors.Join(failed, f.Close()) }, nil
}
