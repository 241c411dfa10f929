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

// load calls the service from several goroutines, and counts.
type load struct {
	calls, failed atomic.Int64
	stopped       chan struct{}
	workers       sync.WaitGroup
}

// start begins the calls. They go through transport, which picks the instances.
func startLoad(transport http.RoundTripper, workers int) *load {
	l := &load{stopped: make(chan struct{})}
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

// stop waits for the end of the calls under way.
func (l *load) stop() {
	close(l.stopped)
	l.workers.Wait()
}

// count is what a part of the play has cost.
type count struct {
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
}

func (l *load) count() count { return count{l.calls.Load(), l.failed.Load()} }

func (c count) since(before count) count {
	return count{c.Calls - before.Calls, c.Failed - before.Failed}
}
