package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// load calls the service from several goroutines, and counts the calls and the failures.
type load struct {
	calls, failed atomic.Int64
	started       int64 // workers
	stopped       chan struct{}
	workers       sync.WaitGroup
}

// startLoad begins the calls. They go through transport, which picks the instances.
func startLoad(transport http.RoundTripper, workers int) *load {
	l := &load{started: int64(workers), stopped: make(chan struct{})}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	for range workers {
		l.workers.Go(func() {
			for {
				select {
				case <-l.stopped:
					return
				default:
				}
				l.calls.Add(1)
				if err := call(client); err != nil {
					l.failed.Add(1)
					time.Sleep(answerTakes) // a refused connection costs no time
				}
			}
		})
	}
	return l
}

func call(client *http.Client) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+service+"/invoices", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}

// stop begins no more calls, and waits until those under way have ended.
func (l *load) stop() {
	close(l.stopped)
	l.workers.Wait()
}

// callCount is how many calls a part of the scenario made, and how many of them failed.
type callCount struct {
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
}

// These bound the part after a kill. So many calls are more than twice those that can fail before
// the pool ejects the instance, however slow the machine is.
const (
	shortest, longest = 2 * time.Second, time.Minute
	fewestCalls       = 100 // for each worker: its call that was under way may fail, too
)

// awaitEjection returns the calls since before. It waits until calls have failed, because an
// instance was killed, and many have been made.
func (l *load) awaitEjection(ctx context.Context, before callCount) (since callCount, err error) {
	began := time.Now()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return since, errInterrupted
		}
		since = l.count().since(before)
		enough := since.Failed > 0 && since.Calls >= fewestCalls*l.started
		if took := time.Since(began); enough && took >= shortest || took >= longest {
			return since, nil
		}
	}
}

func (l *load) count() callCount { return callCount{l.calls.Load(), l.failed.Load()} }

func (c callCount) since(before callCount) callCount {
	return callCount{c.Calls - before.Calls, c.Failed - before.Failed}
}
