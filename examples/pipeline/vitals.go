package main

import (
	"encoding/json"
	"errors"
	"os"
	"runtime/metrics"
	"sync"
	"time"
)

// pulse is how often a process reports its vitals.
const pulse = 5 * time.Second

// tellVitals reports vitals regularly, until the returned function is called.
func tellVitals(tell func(event)) (stop func()) {
	stopped := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(pulse)
		defer ticker.Stop()
		for {
			tell(measure())
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

func measure() event {
	sample := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return event{Kind: vitals, Process: os.Getpid(), Goroutines: sample[0].Value.Uint64(), Heap: sample[1].Value.Uint64()}
}

// keepEvents opens the file for events, if the options name one.
func keepEvents(file string) (keep func(event), closeFile func() error, err error) {
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
