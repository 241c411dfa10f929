package ensemble

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Await waits until every server that was not killed serves, and one of them leads.
// If ctx or Config.Patience is over first, it returns [ErrNotServing].
func (e *Ensemble) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.config.Patience)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !e.serving() {
		if err := e.startFailure(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w\n%s", ErrNotServing, context.Cause(ctx), e.report())
		case <-poll.C:
		}
	}
	return nil
}

func (e *Ensemble) serving() bool {
	leads := false
	for i, s := range e.servers {
		if s.killed() {
			continue
		}
		mode := e.Mode(i)
		if mode == "" {
			return false
		}
		leads = leads || isLeader(mode)
	}
	return leads
}

// startFailure returns an error if a server has ended by itself or did not get a port.
func (e *Ensemble) startFailure() error {
	for i, s := range e.servers {
		if s.killed() {
			continue
		}
		if strings.Contains(s.logTail(40), "Address already in use") {
			return fmt.Errorf("%w: %w\n%s", ErrNotServing, errPortTaken, e.report())
		}
		if !s.running() {
			return fmt.Errorf("%w: server %d ended\n%s", ErrNotServing, i, e.report())
		}
	}
	return nil
}

// report returns every server's mode and the end of its log.
func (e *Ensemble) report() string {
	var b strings.Builder
	for i, s := range e.servers {
		fmt.Fprintf(&b, "server %d at %s, mode %q:\n%s\n", i, s.addr, e.Mode(i), s.logTail(8))
	}
	return b.String()
}
