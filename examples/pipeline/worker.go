package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

const (
	jobVariable      = "PIPELINE_JOB"      // set: this process is a worker; the job as JSON
	watchdogVariable = "PIPELINE_WATCHDOG" // whether workers have a watchdog
)

// worker is one process: it works, and stands by to lead, round after round.
type worker struct {
	job
	client  *framework.Client
	items   *queue.Queue[item]
	meeting *barrier.DoubleBarrier
	tell    func(event)
}

func newWorker(client *framework.Client, j job, tell func(event)) *worker {
	return &worker{
		job: j, client: client, tell: tell,
		items:   queue.New(client, queuePath, queue.JSON[item](), queue.WithDedup(j.memory()), queue.WithMaxInFlight(1)),
		meeting: barrier.NewDoubleBarrier(client, barrierPath, j.Workers),
	}
}

func (w *worker) done(round, phase int) *barrier.Latch {
	return barrier.NewLatch(w.client, donePath(round, phase), w.Items)
}

func (w *worker) over(round, phase int) *barrier.Latch {
	return barrier.NewLatch(w.client, overPath(round, phase), 1)
}

// run plays round after round, from the one that the others are in to the last.
func (w *worker) run(ctx context.Context) error {
	rounds, err := roundsThere(ctx, w.client)
	if err != nil {
		return err
	}
	for number := slices.Max(append(rounds, 1)); ; number++ {
		r := &round{w, number}
		if err := r.play(ctx); err != nil {
			return err
		}
		report, err := readReport(ctx, w.client, number)
		if err != nil || report.Last {
			return err
		}
	}
}

// errOpened ends what is done until a latch opens.
var errOpened = errors.New("the latch has opened")

// untilOpen runs f with a context that ends when the latch opens, which is no error, however f has ended then.
func untilOpen(ctx context.Context, latch *barrier.Latch, f func(context.Context) error) error {
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

// event is what a worker tells its parent, as a line of JSON.
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

	Process    int    `json:"process,omitempty"`    // its number
	Goroutines uint64 `json:"goroutines,omitempty"` // there are now
	Heap       uint64 `json:"heap,omitempty"`       // bytes that the last collection found in use
}

type kind string

const (
	ready    kind = "ready"    // begins Round
	leading  kind = "leading"  // leads, with Token
	planned  kind = "planned"  // has put Count items of Phase
	took     kind = "took"     // has an item of Phase, for the Attempt-th time
	worked   kind = "worked"   // has stored its result
	repeated kind = "repeated" // has found its result: a dead worker has stored it
	met      kind = "met"      // is inside the barrier with all others
	troubled kind = "troubled" // its leading has failed, and is tried again
	reported kind = "reported" // has reported the round
	vitals   kind = "vitals"   // how it is: Process, Goroutines and Heap, once in a while
	killed   kind = "killed"   // the process was killed: told by the parent
	ended    kind = "ended"    // the process has ended: told by the parent
)

// work is the main function of a worker's process. It lasts until the report is there, or its parent closes its
// standard input or dies.
func work(text string) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // a Ctrl-C reaches everybody; the parent decides
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any end will do
		cancel()
	}()
	name := os.Getenv(framework.EnvIdentity)
	var mu sync.Mutex
	lines := json.NewEncoder(os.Stdout)
	tell := func(e event) {
		e.Worker, e.At = name, time.Now()
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(e) // without a parent there is nobody to tell
	}
	if err := serve(ctx, text, tell); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return exitBroken
	}
	return 0
}

// serve connects, and runs a worker. LOCKSTEP_SERVERS and others say where ZooKeeper is.
func serve(ctx context.Context, text string, tell func(event)) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return fmt.Errorf("%s: %w", jobVariable, err)
	}
	config, err := framework.ConfigFromEnv()
	if err != nil {
		return err
	}
	options := []framework.Option{framework.WithLogger(slog.New(slog.DiscardHandler))}
	if os.Getenv(watchdogVariable) == "true" {
		options = append(options, framework.WithWatchdog()) // main begins with framework.WatchdogMain
	}
	client, err := framework.Connect(ctx, config, options...)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session ends by itself otherwise
	defer tellVitals(tell)()
	w := newWorker(client, j, tell)
	defer w.items.Close(context.WithoutCancel(ctx)) //nolint:errcheck // what is open comes back otherwise
	return w.run(ctx)
}
