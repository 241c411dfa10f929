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
	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

const (
	jobVariable      = "PIPELINE_JOB"      // set: this process is a worker; the job as JSON
	watchdogVariable = "PIPELINE_WATCHDOG" // whether workers have a watchdog
)

// worker is one process: it works, and campaigns for the lead, round after round.
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

// run works through the rounds, from the current one to the last.
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

// errOpened is the cause of the end of untilOpen's context.
var errOpened = errors.New("the latch has opened")

// untilOpen runs f with a context that ends when the latch opens. It returns no error in that case.
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

// event is a line of JSON from a worker to its parent.
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
	repeated kind = "repeated" // found a result that a dead worker has stored
	met      kind = "met"      // is inside the barrier with all other workers
	troubled kind = "troubled" // its lead failed and will be retried
	reported kind = "reported" // has reported the round
	vitals   kind = "vitals"   // Process, Goroutines and Heap, regularly
	killed   kind = "killed"   // the process was killed; added by the parent
	ended    kind = "ended"    // the process has ended; added by the parent
)

// work is the main function of a worker's process. It runs until the report is stored, or its parent closes its standard input or
// dies.
func work(text string) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // Ctrl-C reaches all processes; the parent decides
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // errors end it, too
		cancel()
	}()
	name := os.Getenv(framework.EnvIdentity)
	var mu sync.Mutex
	lines := json.NewEncoder(os.Stdout)
	tell := func(e event) {
		e.Worker, e.At = name, time.Now()
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(e) // fails without a parent
	}
	if err := serve(ctx, text, tell); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return demo.ExitBroken
	}
	return 0
}

// serve connects and runs a worker. LOCKSTEP_SERVERS and further variables configure the client.
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
	defer client.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session expires otherwise
	defer tellVitals(tell)()
	w := newWorker(client, j, tell)
	defer w.items.Close(context.WithoutCancel(ctx)) //nolint:errcheck // open deliveries are redelivered otherwise
	return w.run(ctx)
}
