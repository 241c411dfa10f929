package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

// round is what a worker does in one round: one pass through all phases.
type round struct {
	*worker
	number int
}

func (r *round) reported() *barrier.Latch {
	return barrier.NewLatch(r.client, reportedPath(r.number), 1)
}

// runRound works, and campaigns to lead, until the report is stored.
func (r *round) runRound(ctx context.Context) error {
	for p := range phases {
		if err := r.client.MakeDirs(ctx, resultsPath(r.number, p)); err != nil {
			return err
		}
	}
	r.emit(event{Kind: ready, Round: r.number})
	return runUntilOpen(ctx, r.reported(), func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		var leading sync.WaitGroup
		leading.Go(func() {
			if err := election.New(r.client, leaderPath).Lead(ctx, r.lead); err != nil {
				cancel(err)
			}
		})
		err := r.work(ctx)
		if err != nil {
			err = errors.Join(err, context.Cause(ctx))
			cancel(err)
		}
		leading.Wait()
		cancel(nil)
		return err
	})
}

// removeOldRounds removes all rounds before the last one. All workers have passed a barrier since,
// so none uses them.
func (r *round) removeOldRounds(ctx context.Context) error {
	rounds, err := existingRounds(ctx, r.client)
	for _, n := range rounds {
		if err == nil && n < r.number-1 {
			err = demo.RemoveTree(ctx, r.client, roundPath(n))
		}
	}
	return err
}

// existingRounds returns the numbers of the rounds that still exist.
func existingRounds(ctx context.Context, client *framework.Client) ([]int, error) {
	if err := syncServer(ctx, client); err != nil {
		return nil, err
	}
	names, _, err := client.Children(ctx, roundsPath)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	rounds := make([]int, len(names))
	for i, name := range names {
		if rounds[i], err = strconv.Atoi(name); err != nil {
			return nil, err
		}
	}
	return rounds, nil
}

// lastReport reads the report of the last round.
func lastReport(ctx context.Context, client *framework.Client) (result, error) {
	rounds, err := existingRounds(ctx, client)
	if err != nil {
		return result{}, err
	}
	return readReport(ctx, client, slices.Max(append(rounds, 1)))
}
