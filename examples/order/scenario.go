package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

const (
	orderID = "order-42"
	amount  = 100
)

// scenario kills the executors of one order.
type scenario struct {
	options
	executors *demo.Children[stopPoint]
	log       demo.Log
	started   int
	killed    map[string]bool // executors that were killed, or will be in a moment
	summary   summary
}

// summary is the result, printed as text or as JSON.
type summary struct {
	Kills   int            `json:"kills"`
	Effects map[string]int `json:"effects"` // how often the effect of each step has happened
	Tokens  []int64        `json:"tokens"`  // of the executors, in the order in which they took the run
	orderRecord
}

// run starts the order and two executors, and kills the executor that has the order as often as the
// options say. It returns when the order is done.
func (st *scenario) run(ctx context.Context, client *framework.Client) error {
	st.summary.Effects = map[string]int{}
	flows := workflow.New(client, flowsPath)
	defer flows.Close(ctx) //nolint:errcheck // the client is closed, too
	for range 2 {
		if err := st.startExecutor(); err != nil {
			return err
		}
	}
	run, err := orderKind.Start(ctx, flows, orderID, order{amount})
	if err != nil {
		return err
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := run.Wait(within)
		done <- err
	}()
	for {
		select {
		case received := <-st.executors.Events:
			if err := st.handleEvent(received); err != nil {
				return err
			}
		case err := <-done:
			if ctx.Err() != nil {
				return errors.New("interrupted; all executors were stopped")
			}
			return err
		}
	}
}

func (st *scenario) startExecutor() error {
	st.started++
	return st.executors.Start(fmt.Sprintf("executor-%d", st.started))
}

// handleEvent lets an executor that waits at a stop point continue, or kills it.
func (st *scenario) handleEvent(received demo.ChildEvent[stopPoint]) error {
	p := received.Event
	switch {
	case received.Ended && !st.killed[received.Child]:
		return fmt.Errorf("%s has ended by itself", received.Child)
	case received.Ended:
		return nil
	case p.After:
		st.summary.Effects[p.Step]++ // also of one that is dead by now
	}
	if st.killed[received.Child] {
		return nil
	}
	if tokens := st.summary.Tokens; len(tokens) == 0 || tokens[len(tokens)-1] != p.Token {
		st.summary.Tokens = append(tokens, p.Token)
	}
	after, atOnce := st.decideKill(p)
	if after == 0 && !atOnce {
		st.executors.Continue(received.Child)
		return nil
	}
	st.killed[received.Child] = true
	st.summary.Kills++
	if atOnce {
		st.executors.Kill(received.Child)
	} else {
		st.executors.Continue(received.Child)
		time.AfterFunc(after, func() { st.executors.Kill(received.Child) })
	}
	at := "before the effect"
	switch {
	case p.After && atOnce:
		at = "between effect and record"
	case p.After:
		at = fmt.Sprintf("%v after the effect", after.Round(time.Millisecond))
	case !atOnce:
		at = fmt.Sprintf("%v after the begin", after.Round(time.Millisecond))
	}
	st.log.Line(received.At, "kill -9 %2d: %-12s %s: %s", st.summary.Kills, received.Child, p.Step, at)
	return st.startExecutor()
}

// decideKill decides whether the executor is killed at the stop point, or some time after it has
// continued. At least one executor is killed between the payment and its record. Each step has its
// share of the kills, and is recorded only after them, so that all kills are done when the order
// is.
func (st *scenario) decideKill(p stopPoint) (after time.Duration, atOnce bool) {
	left := st.kills - st.summary.Kills
	unpaid := p.Step == "charge" && p.After && st.summary.Effects["charge"] == 1
	share := st.kills * (slices.Index(steps, p.Step) + 1) / len(steps)
	switch {
	case left == 0:
		return 0, false
	case unpaid || p.After && st.summary.Kills < share:
		return 0, true
	case left == 1 && st.summary.Effects["charge"] == 0: // this one is for the payment
		return 0, false
	case rand.IntN(2) == 0:
		return 0, false
	case rand.IntN(2) == 0:
		return 0, true
	}
	return time.Duration(1 + rand.IntN(int(20*time.Millisecond))), false
}

// verdict returns an error that lists all violations.
func (s summary) verdict(o options) error {
	var errs []error
	if s.Payments != 1 || s.Amount != amount {
		errs = append(errs, fmt.Errorf("the customer was charged %d times, %d in all; want once %d", s.Payments,
			s.Amount, amount))
	}
	if s.State != steps[len(steps)-1] {
		errs = append(errs, fmt.Errorf("the order's state is %q", s.State))
	}
	if s.Kills != o.kills {
		errs = append(errs, fmt.Errorf("%d executors were killed, not %d", s.Kills, o.kills))
	}
	errs = append(errs, demo.CheckTokensRise(s.Tokens, func(token int64) int64 { return token }))
	for _, step := range steps {
		if s.Effects[step] == 0 {
			errs = append(errs, fmt.Errorf("step %q was not seen", step))
		}
	}
	return errors.Join(errs...)
}

// write writes the summary as text, and what its numbers mean.
func (s summary) write(out io.Writer) {
	fmt.Fprintf(out, "\nSummary\n  killed    %d executors\n  effects   ", s.Kills)
	again := 0
	for _, step := range steps {
		fmt.Fprintf(out, "%s %d  ", step, s.Effects[step])
		again += s.Effects[step] - 1
	}
	fmt.Fprintf(out, "\n            %d executors died after an effect and before its record, so\n"+
		"            the next executor ran the step, and its effect, again\n  payments  %d, %d in all", again,
		s.Payments, s.Amount)
	if charges := s.Effects["charge"]; charges > 1 && s.Payments == 1 {
		fmt.Fprintf(out, ": the customer was charged %d times with one idempotency\n"+
			"            key, that of the step, and the database took the first only", charges)
	}
	fmt.Fprintf(out, "\n  state     %s, which is the last step\n", s.State)
}
