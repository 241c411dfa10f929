//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverConnection is a client of River, which works jobs of a table of PostgreSQL.
type riverConnection struct{ *pgxpool.Pool }

func connectRiver(ctx context.Context, server string) (connection, error) {
	pool, err := pgxpool.New(ctx, postgresURL(server))
	return riverConnection{pool}, err
}

func (c riverConnection) locker(string) (locker, error) { return nil, errors.New("no lock in River") }

// riverItem is an item of the measured queue.
type riverItem struct {
	Item []byte `json:"item"`
}

func (riverItem) Kind() string { return "item" }

type riverWorker struct {
	river.WorkerDefaults[riverItem]
}

func (riverWorker) Work(context.Context, *river.Job[riverItem]) error { return nil }

// queue starts River's workers at the first take, and takes what they have completed: from then on
// they work items while others are put. They fetch the next ones as soon as River allows.
func (c riverConnection) queue(string) (put putter, take taker, err error) {
	ctx := context.Background()
	driver := riverpgxv5.New(c.Pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, riverWorker{})
	client, err := river.NewClient(driver, &river.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Workers: workers,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100,
			FetchCooldown: time.Millisecond}},
	})
	if err != nil {
		return nil, nil, err
	}
	completed, _ := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: 10_000,
		Kinds: []river.EventKind{river.EventKindJobCompleted}})
	started := false
	put = func(ctx context.Context, item []byte) error {
		_, err := client.Insert(ctx, riverItem{item}, nil)
		return err
	}
	return put, func(ctx context.Context) error {
		if !started {
			started = true
			if err := client.Start(ctx); err != nil {
				return err
			}
		}
		select {
		case <-completed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, nil
}
