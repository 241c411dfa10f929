package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

const (
	databaseVariable = "ORDER_DATABASE" // the file
	keyVariable      = "ORDER_KEY"      // "false": payments have no idempotency key
	flowsPath        = "/orders"
)

// orderKind is shared by those who start orders and those who execute them. The result of a run is
// the order's state.
var orderKind = workflow.NewKind[order, string]("order")

// order is the input of a run.
type order struct {
	Amount int64 `json:"amount"`
}

// stopPoint is a point in a step at which an executor waits until its parent lets it continue, or
// kills it.
type stopPoint struct {
	Step  string `json:"step"`
	After bool   `json:"after"` // the effect has happened, and the step has no record yet
	Token int64  `json:"token"`
}

// steps are the steps of an order. The last one ends it.
var steps = []string{"reserve", "charge", "pack", "send"}

// orderFunction is the part that a service would have: the steps of an order, each of which writes
// to the database. It calls stop in each step, before and after the effect. If it is not keyed,
// each charge is a payment of its own.
func orderFunction(l *database, keyed bool, stop func(ctx context.Context, p stopPoint) error) workflow.Function {
	return orderKind.Function(func(ctx context.Context, run *workflow.Run, o order) (string, error) {
		for _, step := range steps {
			err := run.Do(ctx, step, func(ctx context.Context, key workflow.Key) error {
				if err := stop(ctx, stopPoint{step, false, key.Token}); err != nil {
					return err
				}
				if !keyed {
					key.ID = rand.Text()
				}
				var err error
				if step == "charge" {
					err = l.charge(ctx, run.ID(), o.Amount, key)
				} else {
					err = l.setState(ctx, run.ID(), step, key)
				}
				if err != nil {
					return err
				}
				return stop(ctx, stopPoint{step, true, key.Token})
			})
			if err != nil {
				return "", err
			}
		}
		return "sent", nil
	}, workflow.WithWorkers(1))
}

// runExecutor is the main function of an executor's process: it takes runs and executes them.
// LOCKSTEP_SERVERS and further variables configure its client.
func runExecutor(ctx context.Context, parent *demo.Parent) error {
	l, err := openDatabase(os.Getenv(databaseVariable))
	if err != nil {
		return err
	}
	defer l.close() //nolint:errcheck // each write was answered
	client, err := demo.ConnectMember(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx) //nolint:errcheck // the session expires otherwise

	flows := workflow.New(client, flowsPath, workflow.WithGrace(0))
	err = flows.Register(orderFunction(l, os.Getenv(keyVariable) != "false",
		func(ctx context.Context, p stopPoint) error {
			parent.Send(p)
			return parent.AwaitContinue(ctx)
		}))
	if err == nil {
		err = flows.Work(ctx)
	}
	if errors.Is(err, framework.ErrDraining) { // the grace is 0: the parent ends this process when the order is done
		err = nil
	}
	_ = flows.Close(ctx) // the client's close gives back what is left
	return err
}
