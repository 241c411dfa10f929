package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/workflow"
)

const (
	stepVariable = "MIGRATION_STEP" // how long a step takes
	leaderPath   = "/migration/leader"
	ledgerPath   = "/migration/ledger"
)

// steps are the steps of the migration, in their order.
var steps = []string{"copy-1", "copy-2", "copy-3", "copy-4", "check", "switch"}

// rowsOfCopy is how many rows each step of the copy has copied.
const rowsOfCopy = 1000

// event is what a member sends its parent.
type event struct {
	Kind  kind     `json:"kind"`
	Token int64    `json:"token"`
	Step  string   `json:"step,omitempty"`
	Key   string   `json:"key,omitempty"`   // the step's idempotency key
	Known []string `json:"known,omitempty"` // the steps that were recorded when the leader opened the ledger
	Rows  int      `json:"rows,omitempty"`  // that all copies have copied
}

type kind string

const (
	leads  kind = "leads"
	begins kind = "begins" // a step
	// in the middle of a step: the member waits until the parent lets it continue, or kills it
	working  kind = "working"
	finished kind = "finished" // the whole migration
)

// runMember is the part that a service would have: it campaigns, and migrates while it leads.
// LOCKSTEP_SERVERS and further variables configure its client.
func runMember(ctx context.Context, parent *demo.Parent) error {
	stepTime, err := time.ParseDuration(os.Getenv(stepVariable))
	if err != nil {
		return err
	}
	client, err := demo.ConnectMember(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx) //nolint:errcheck // the session expires otherwise

	ledger := workflow.NewLedger(client, ledgerPath)
	return election.New(client, leaderPath).Lead(ctx, func(ctx context.Context, term *election.Term) error {
		if err := migrate(ctx, term, ledger, stepTime, parent); err != nil {
			return err // another member leads, or this one again after a pause
		}
		<-ctx.Done() // a service would continue as the leader
		return context.Cause(ctx)
	})
}

// migrate does the steps that have no record.
func migrate(ctx context.Context, term *election.Term, ledger *workflow.Ledger, stepTime time.Duration,
	parent *demo.Parent) error {
	opened, err := ledger.Open(ctx, term)
	if err != nil {
		return err
	}
	var known []string
	for _, step := range steps {
		if opened.IsRecorded(step) {
			known = append(known, step)
		}
	}
	parent.Send(event{Kind: leads, Token: term.Token(), Known: known})
	totalRows := 0
	for _, step := range steps {
		rows, err := workflow.Step(ctx, opened, step,
			func(ctx context.Context, key workflow.Key) (rows int, err error) {
				parent.Send(event{Kind: begins, Token: key.Token, Step: step, Key: key.ID})
				if err := workFor(ctx, stepTime/2); err != nil {
					return 0, err
				}
				parent.Send(event{Kind: working, Token: key.Token, Step: step})
				if err := parent.AwaitContinue(ctx); err != nil {
					return 0, err
				}
				if step != "check" && step != "switch" {
					rows = rowsOfCopy
				}
				return rows, workFor(ctx, stepTime/2)
			})
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		totalRows += rows
	}
	parent.Send(event{Kind: finished, Token: term.Token(), Rows: totalRows})
	return nil
}

// workFor simulates work: it waits.
func workFor(ctx context.Context, d time.Duration) error {
	work := time.NewTimer(d)
	defer work.Stop()
	select {
	case <-work.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
