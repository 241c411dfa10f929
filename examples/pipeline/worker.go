package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

const jobVariable = "PIPELINE_JOB" // the job as JSON

// worker is one process: it works, and campaigns to lead, in one round after the other.
type worker struct {
	job
	client  *framework.Client
	items   *queue.Queue[item]
	meeting *barrier.DoubleBarrier
	emit    func(event)
}

func newWorker(client *framework.Client, j job, emit func(event)) *worker {
	return &worker{
		job: j, client: client, emit: emit,
		items: queue.New(client, queuePath, codec.JSON[item](), queue.WithDedup(j.dedupWindow()),
			queue.WithMaxInFlight(1)),
		meeting: barrier.NewDoubleBarrier(client, barrierPath, j.Workers),
	}
}

func (w *worker) done(round, phase int) *barrier.Latch {
	return barrier.NewLatch(w.client, donePath(round, phase), w.Items)
}

func (w *worker) over(round, phase int) *barrier.Latch {
	return barrier.NewLatch(w.client, overPath(round, phase), 1)
}

// run works through the rounds, from the current one to the last.
func (w *worker) run(ctx context.Context) error {
	rounds, err := existingRounds(ctx, w.client)
	if err != nil {
		return err
	}
	for number := slices.Max(append(rounds, 1)); ; number++ {
		r := &round{w, number}
		if err := r.runRound(ctx); err != nil {
			return err
		}
		report, err := readReport(ctx, w.client, number)
		if err != nil || report.Last {
			return err
		}
	}
}

// errOpened is the cause with which runUntilOpen ends its context.
var errOpened = errors.New("the latch has opened")

// runUntilOpen runs f with a context that ends when the latch opens. In that case it returns nil.
func runUntilOpen(ctx context.Context, latch *barrier.Latch, f func(context.Context) error) error {
	within, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		err := latch.Wait(within)
		if err == nil {
			err = errOpened
		}
		cancel(err) // the first cause counts
	})
	err := f(within)
	cause := context.Cause(within)
	cancel(nil)
	watch.Wait()
	switch {
	case errors.Is(cause, errOpened):
		return nil
	case cause != nil:
		return cause
	}
	return err
}

// event is what a worker sends its parent, which adds Worker and At. The file of events has a line
// of JSON for each.
type event struct {
	Kind    kind      `json:"kind"`
	Worker  string    `json:"worker"`
	At      time.Time `json:"at"`
	Round   int       `json:"round,omitempty"`
	Phase   int       `json:"phase,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Count   int       `json:"count,omitempty"`
	Token   int64     `json:"token,omitempty"`
	Reason  string    `json:"reason,omitempty"`

	Process    int    `json:"process,omitempty"`    // its process id
	Goroutines uint64 `json:"goroutines,omitempty"` // how many run
	Heap       uint64 `json:"heap,omitempty"`       // bytes that the last collection found in use
}

type kind string

const (
	ready        kind = "ready"       // begins Round
	leading      kind = "leading"     // leads, with Token
	planned      kind = "planned"     // has put Count items of Phase
	delivered    kind = "delivered"   // has an item of Phase, for the Attempt-th time
	worked       kind = "worked"      // has stored its result
	repeated     kind = "repeated"    // found a result that a dead worker has stored
	met          kind = "met"         // is inside the barrier with all other workers
	leadFailed   kind = "lead_failed" // its lead failed and will be retried
	reported     kind = "reported"    // has reported the round
	processStats kind = "stats"       // Process, Goroutines and Heap, regularly
	killed       kind = "killed"      // the process was killed; added by the parent
	ended        kind = "ended"       // the process has ended; added by the parent
)

// eventOf returns an event that a worker has sent, or its end, with the worker's name and the time.
func eventOf(received demo.ChildEvent[event]) event {
	e := received.Event
	e.Worker, e.At = received.Child, received.At
	if received.Ended {
		e.Kind = ended
	}
	if received.Err != nil {
		e.Reason = received.Err.Error()
	}
	return e
}

// runWorker is the main function of a worker's process. It runs until the report of the last round
// is stored. LOCKSTEP_SERVERS and further variables configure the client.
func runWorker(ctx context.Context, parent *demo.Parent) error {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(jobVariable)), &j); err != nil {
		return fmt.Errorf("%s: %w", jobVariable, err)
	}
	client, err := demo.ConnectMember(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx) //nolint:errcheck // the session expires otherwise
	emit := func(e event) { parent.Send(e) }
	defer reportStats(emit)()
	w := newWorker(client, j, emit)
	defer w.items.Close(ctx) //nolint:errcheck // open deliveries are redelivered otherwise
	return w.run(ctx)
}
