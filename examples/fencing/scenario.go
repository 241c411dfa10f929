package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

const (
	opening     = 100 // the first balance
	annsDeposit = 10
	bobsDeposit = 5
)

// runScenario freezes ann before she writes, lets bob write, and lets ann continue.
func runScenario(ctx context.Context, o options, s *recorder) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*o.timeout+time.Minute, errors.New("the holders take too long"))
	defer cancel()
	env, err := demo.Open(ctx, o.servers, o.timeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	session, err := env.Client.Session(ctx)
	if err != nil {
		return err
	}
	s.timeout = session.Timeout()
	s.Marked(time.Now(), " ", "an account with %d in SQLite; a session timeout of %v", opening, s.timeout)
	s.Marked(time.Now(), " ", "a lock on %s", env.Name())
	s.Marked(time.Now(), " ", "its nodes are below %s", env.Config.Root)
	dir, err := os.MkdirTemp("", "fencing-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	database := filepath.Join(dir, "accounts.db")
	accounts, err := openAccountStore(database, !o.unfenced)
	if err != nil {
		return err
	}
	defer accounts.close() //nolint:errcheck // every write was answered
	if err := accounts.create(ctx, accountID, opening); err != nil {
		return err
	}
	holders := demo.NewChildren[event](demo.Environment(env.Config, false))
	defer holders.Stop()
	if err := s.runHolders(ctx, holders, holderTask{Database: database, Fenced: !o.unfenced}); err != nil {
		return err
	}
	s.balance, s.token, err = accounts.read(ctx, accountID)
	return err
}

// runHolders runs both holders until they end.
func (rec *recorder) runHolders(ctx context.Context, holders *demo.Children[event], task holderTask) error {
	task.Amount, task.Pause = annsDeposit, true
	if err := holders.Start("ann", task.variable()); err != nil {
		return err
	}
	if err := rec.readUntil(ctx, holders, ready, "ann"); err != nil {
		return err
	}
	if err := holders.Freeze("ann"); err != nil {
		return err
	}
	rec.holderFrozen("ann")
	task.Amount, task.Pause = bobsDeposit, false
	if err := holders.Start("bob", task.variable()); err != nil {
		return err
	}
	if err := rec.readUntil(ctx, holders, ended, "bob"); err != nil {
		return err
	}
	holders.Continue("ann") // as soon as she runs again
	if err := holders.Resume("ann"); err != nil {
		return err
	}
	rec.holderContinues("ann")
	return rec.readUntil(ctx, holders, ended, "ann")
}

// readUntil records the holders' events up to a given one.
func (rec *recorder) readUntil(ctx context.Context, holders *demo.Children[event], k kind, holder string) error {
	for {
		select {
		case received := <-holders.Events:
			e := received.Event
			e.Holder, e.At = received.Child, received.At
			if received.Ended {
				e.Kind = ended
			}
			rec.record(e)
			if received.Err != nil {
				return fmt.Errorf("%s has failed: %w", e.Holder, received.Err)
			}
			if e.Kind == k && e.Holder == holder {
				return nil
			}
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return errors.New("interrupted; all holders were stopped")
			}
			return context.Cause(ctx)
		}
	}
}
