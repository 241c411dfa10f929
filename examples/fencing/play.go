package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

const (
	opening     = 100 // the first balance
	annsDeposit = 10
	bobsDeposit = 5
)

// play freezes ann before she writes, lets bob write, and lets ann continue.
func play(ctx context.Context, o options, s *story) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*o.timeout+time.Minute, errors.New("the holders take too long"))
	defer cancel()
	servers, closeServers, err := demo.Servers(o.servers, o.timeout)
	if err != nil {
		return err
	}
	defer closeServers()
	dir, err := os.MkdirTemp("", "fencing-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	database := filepath.Join(dir, "accounts.db")
	ledger, err := openLedger(database, !o.unfenced)
	if err != nil {
		return err
	}
	defer ledger.close() //nolint:errcheck // every write was answered
	if err := ledger.create(ctx, accountID, opening); err != nil {
		return err
	}
	c := newCast(demo.Environment(framework.Config{Servers: servers, Root: demo.NewRoot(), SessionTimeout: o.timeout}))
	defer c.stop()
	if err := s.act(ctx, c, part{Database: database, Fenced: !o.unfenced}); err != nil {
		return err
	}
	s.balance, _, err = ledger.read(ctx, accountID)
	return err
}

// act runs both holders to their end.
func (s *story) act(ctx context.Context, c *cast, p part) error {
	p.Holder, p.Amount, p.Pause = "ann", annsDeposit, true
	ann, err := c.start(p)
	if err != nil {
		return err
	}
	if err := s.until(ctx, c, ready, "ann"); err != nil {
		return err
	}
	if err := freeze(ann.cmd.Process); err != nil {
		return err
	}
	s.freezes("ann")
	p.Holder, p.Amount, p.Pause = "bob", bobsDeposit, false
	if _, err := c.start(p); err != nil {
		return err
	}
	if err := s.until(ctx, c, ended, "bob"); err != nil {
		return err
	}
	if err := ann.goOn(); err != nil {
		return err
	}
	s.goesOn("ann")
	return s.until(ctx, c, ended, "ann")
}

// until reads the holders' events up to a given one.
func (s *story) until(ctx context.Context, c *cast, k kind, holder string) error {
	for {
		select {
		case e := <-c.events:
			s.take(e)
			if e.Kind == ended && e.Reason != "" {
				return fmt.Errorf("%s has failed: %s", e.Holder, e.Reason)
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
