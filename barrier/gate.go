package barrier

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/locks"
)

// Gate is up while its node exists: who waits at it goes on when it falls. Its layout is that of Apache
// Curator's DistributedBarrier. It holds no state but its arguments, and may be used by many goroutines at once.
//
//	<path>   exists while the gate is up; ephemeral if a lease holds it, else persistent
//
// Guarantee: who begins to wait after Raise or Hold has returned waits until the gate falls, and misses no
// fall, however short.
type Gate struct {
	client *framework.Client
	path   string
	tel    telemetry
	err    error // of the arguments
}

// NewGate returns the gate at path. Nothing is created before it is raised. An argument that cannot be
// used makes every call return an error that says so.
func NewGate(client *framework.Client, path string) *Gate {
	g := &Gate{client: client, path: path}
	if g.err = checkClientAndPath(client, path); g.err == nil {
		g.tel = newTelemetry(client)
	}
	return g
}

// Path is the gate's node.
func (g *Gate) Path() string { return g.path }

// Raise raises the gate; it stays up until it is lowered, whatever becomes of this process. A gate
// that stays up already is left alone. The error wraps ErrRaised if a lease holds the gate, or
// ErrForeign.
func (g *Gate) Raise(ctx context.Context) error {
	return g.onSessions(ctx, "raise", func(s *framework.Session) error {
		err := s.Create(ctx, g.path, ownedRecord(g.client, gateKind).encode(), framework.Persistent)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			dir, _ := framework.Split(g.path)
			if err := s.MakeDirs(ctx, dir); err != nil {
				return err
			}
			return recipe.ErrAgain
		case errors.Is(err, framework.ErrNodeExists):
			return g.isUpForGood(ctx, s)
		case errors.Is(err, framework.ErrSuspended):
			return recipe.ErrAgain
		}
		return err
	})
}

// isUpForGood reports whether the gate is up and stays so.
func (g *Gate) isUpForGood(ctx context.Context, s *framework.Session) error {
	st, err := g.readGate(ctx, s)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return recipe.ErrAgain
	case err == nil && st.EphemeralOwner != 0:
		return fmt.Errorf("%w, and held by a lease of session %#x", ErrRaised, st.EphemeralOwner)
	}
	return err
}

// Hold raises the gate for as long as the lease stands: it falls when the lease is released, and when
// this process dies. The error wraps ErrRaised if the gate is up already, or ErrForeign.
func (g *Gate) Hold(ctx context.Context) (lease *locks.Lease, err error) {
	err = g.onSessions(ctx, "hold", func(s *framework.Session) error {
		claim := locks.NewClaim(g.client, g.path, locks.WithData(ownedRecord(g.client, gateKind).encode()))
		lease, err = claim.TryLock(ctx)
		if !errors.Is(err, locks.ErrNotAcquired) {
			return err
		}
		_, err := g.readGate(ctx, s)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return recipe.ErrAgain
		case err == nil:
			return ErrRaised
		}
		return err
	})
	return lease, err
}

// Lower makes the gate fall, whoever has raised it; a lease that holds it ends then, with
// framework.ErrNodeGone as its cause. A gate that is down stays so. When the reply is lost it looks again, and
// leaves a gate alone that was raised anew. The error wraps ErrForeign if the node is no gate.
func (g *Gate) Lower(ctx context.Context) error {
	var first int64
	return g.onSessions(ctx, "lower", func(s *framework.Session) error {
		if err := s.Sync(ctx, g.path); err != nil {
			return err
		}
		st, err := g.readGate(ctx, s)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case err != nil:
			return err
		case first == 0:
			first = st.Czxid
		case first != st.Czxid:
			return nil
		}
		_, err = s.Multi(ctx, framework.DeleteOp(g.path, st.Version))
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):
			return recipe.ErrAgain
		case errors.Is(err, framework.ErrNotEmpty):
			return fmt.Errorf("%w: %s has children", ErrForeign, g.path)
		}
		return err
	})
}

// Raised reports whether the gate is up. What it tells may have changed by the time it is read.
func (g *Gate) Raised(ctx context.Context) (up bool, err error) {
	err = g.onSessions(ctx, "look at", func(s *framework.Session) error {
		if err := s.Sync(ctx, g.path); err != nil {
			return err
		}
		_, err := g.readGate(ctx, s)
		up = err == nil
		if errors.Is(err, framework.ErrNoNode) {
			return nil
		}
		return err
	})
	return up, err
}

// Wait returns nil when the gate is down, or has been down for a moment since Wait began. Its error is that of
// ctx when that ended the wait, or wraps ErrForeign, framework.ErrClosed or framework.ErrNoAuth. It
// leaves nothing behind, and never waits for more than one fall.
func (g *Gate) Wait(ctx context.Context) (err error) {
	if g.err != nil {
		return framework.Wrap("wait at", g.path, g.err)
	}
	ctx, end := g.tel.wait(ctx, "gate.wait", g.path)
	defer func() { end(err) }()
	var first int64 // the gate that this wait is for
	return g.onSessions(ctx, "wait at", func(s *framework.Session) error {
		if err := s.Sync(ctx, g.path); err != nil { // who has raised it may have done so on another server
			return err
		}
		for {
			down, err := g.waitForChange(ctx, s, &first)
			if down || err != nil {
				return err
			}
		}
	})
}

// waitForChange looks once, and waits for a change.
func (g *Gate) waitForChange(ctx context.Context, s *framework.Session, first *int64) (down bool, err error) {
	data, st, w, err := s.WatchData(ctx, g.path)
	if errors.Is(err, framework.ErrNoNode) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer w.Stop()
	if *first == 0 {
		*first = st.Czxid
	}
	if st.Czxid != *first { // it fell and was raised anew
		return true, nil
	}
	if err := g.checkIsGate(data, st); err != nil {
		return false, err
	}
	event, err := recipe.WaitForWatch(ctx, s, w)
	return event.Kind == framework.NodeDeleted, err
}

func (g *Gate) readGate(ctx context.Context, s *framework.Session) (framework.Stat, error) {
	data, st, err := s.Get(ctx, g.path)
	if err == nil {
		err = g.checkIsGate(data, st)
	}
	return st, err
}

// checkIsGate refuses a node that something else has made. Curator's gates hold the address of their maker.
func (g *Gate) checkIsGate(data []byte, st framework.Stat) error {
	if st.NumChildren > 0 {
		return fmt.Errorf("%w: %s has children", ErrForeign, g.path)
	}
	if st.EphemeralOwner == 0 {
		if _, err := netip.ParseAddr(string(data)); err == nil {
			return nil
		}
	}
	_, err := parseRecord(g.path, gateKind, data)
	return err
}

// onSessions does something on session after session until it is done.
func (g *Gate) onSessions(ctx context.Context, op string, f func(*framework.Session) error) error {
	if g.err != nil {
		return framework.Wrap(op, g.path, g.err)
	}
	return framework.Wrap(op, g.path, recipe.OnSession(ctx, g.client, f))
}
