package barrier

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// Gate is up while its node exists. Waiters continue when it falls. Its layout is that of Apache
// Curator's DistributedBarrier. It holds no state but its arguments, and may be used by many
// goroutines at once.
//
//	<path>   exists while the gate is up; ephemeral if a lease holds it, else persistent
//
// Guarantee: a waiter that begins after Raise or Hold has returned waits until the gate falls, and
// notices every fall, however short.
type Gate struct {
	client *framework.Client
	path   string
	tel    telemetry
	err    error // of the arguments
}

// NewGate returns the gate at path. Raise and Hold create the node. If an argument is invalid,
// every call returns an error that says so.
func NewGate(client *framework.Client, path string) *Gate {
	g := &Gate{client: client, path: path}
	if g.err = recipe.CheckClientAndPath(client, path, "a barrier"); g.err == nil {
		g.tel = newTelemetry(client)
	}
	return g
}

// Path is the gate's node.
func (g *Gate) Path() string { return g.path }

// Validate returns what is wrong with the arguments of NewGate, as every call does, or nil. It
// sends no request.
func (g *Gate) Validate() error { return g.err }

// Raise raises the gate. It stays up until Lower, also when this process dies. If the gate is up
// already and no lease holds it, Raise changes nothing. The error wraps ErrRaised if a lease holds
// the gate, framework.ErrForeign or framework.ErrNewer. If a reply is lost, and another client
// lowers the gate before Raise has looked again, Raise raises it again.
func (g *Gate) Raise(ctx context.Context) error {
	return g.onSessions(ctx, "raise", func(s *framework.Session) error {
		err := s.Create(ctx, g.path, ownedRecord(g.client, gateKind).encode(), framework.Persistent)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			dir, _ := znode.Split(g.path)
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

// isUpForGood returns nil if the gate is up without a lease that holds it.
func (g *Gate) isUpForGood(ctx context.Context, s *framework.Session) error {
	stat, err := g.readGate(ctx, s)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return recipe.ErrAgain
	case err == nil && stat.EphemeralOwner != 0:
		return fmt.Errorf("%w, and held by a lease of session %v", ErrRaised, stat.EphemeralOwner)
	}
	return err
}

// Hold raises the gate until the lease ends: the gate falls when the lease is released, when its
// session is lost, and when this process dies. The error wraps ErrRaised if the gate is up already,
// framework.ErrForeign or framework.ErrNewer.
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

// Lower makes the gate fall, also a gate that others have raised. A lease that holds it ends with
// framework.ErrNodeGone as its cause. A gate that is down stays down. When a reply is lost, Lower
// checks again, and keeps a gate that was raised again meanwhile. The error wraps
// framework.ErrForeign if the node is no gate, or framework.ErrNewer.
func (g *Gate) Lower(ctx context.Context) error {
	var first int64
	return g.onSessions(ctx, "lower", func(s *framework.Session) error {
		if err := s.Sync(ctx, g.path); err != nil {
			return err
		}
		stat, err := g.readGate(ctx, s)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case err != nil:
			return err
		case first == 0:
			first = stat.Czxid
		case first != stat.Czxid:
			return nil
		}
		_, err = s.Multi(ctx, framework.DeleteOp(g.path, stat.Version))
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):
			return recipe.ErrAgain
		case errors.Is(err, framework.ErrNotEmpty):
			return fmt.Errorf("%w: %s has children", errForeign, g.path)
		}
		return err
	})
}

// Raised reports whether the gate was up at a moment during the call. It reads behind a sync. The
// error wraps framework.ErrForeign if the node is no gate, or framework.ErrNewer.
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

// Wait returns nil when the gate is down, or was down for a moment since Wait first read it. Its
// error is that of ctx if ctx ended the wait, or wraps framework.ErrForeign, framework.ErrNewer,
// framework.ErrClosed or framework.ErrNoAuth. It leaves no watch behind, and waits for one fall
// only.
func (g *Gate) Wait(ctx context.Context) (err error) {
	if g.err != nil {
		return failure.Wrap("wait at", g.path, g.err)
	}
	ctx, end := g.tel.startWaitSpan(ctx, "gate.wait", g.path)
	defer func() { end(err) }()
	var first int64 // the transaction that has created the gate for which this call waits
	return g.onSessions(ctx, "wait at", func(s *framework.Session) error {
		if err := s.Sync(ctx, g.path); err != nil { // another client may have raised it on another server
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

// waitForChange reads the gate once, and waits for a change if it is up. It reports whether the
// gate is or was down.
func (g *Gate) waitForChange(ctx context.Context, s *framework.Session, first *int64) (down bool, err error) {
	data, stat, w, err := s.WatchData(ctx, g.path)
	if errors.Is(err, framework.ErrNoNode) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer w.Stop()
	if *first == 0 {
		*first = stat.Czxid
	}
	if stat.Czxid != *first { // it fell and was raised anew
		return true, nil
	}
	if err := g.checkIsGate(data, stat); err != nil {
		return false, err
	}
	event, err := recipe.WaitForWatch(ctx, s, w)
	return event.Kind == framework.NodeDeleted, err
}

func (g *Gate) readGate(ctx context.Context, s *framework.Session) (framework.Stat, error) {
	data, stat, err := s.Get(ctx, g.path)
	if err == nil {
		err = g.checkIsGate(data, stat)
	}
	return stat, err
}

// checkIsGate refuses a node that is no gate. A gate of Curator's holds its creator's address.
func (g *Gate) checkIsGate(data []byte, stat framework.Stat) error {
	if stat.NumChildren > 0 {
		return fmt.Errorf("%w: %s has children", errForeign, g.path)
	}
	if _, err := netip.ParseAddr(string(data)); err == nil && stat.EphemeralOwner == 0 {
		return nil
	}
	_, err := parseRecord(g.path, gateKind, data)
	return err
}

// onSessions runs f on session after session until it is done.
func (g *Gate) onSessions(ctx context.Context, op string, f func(*framework.Session) error) error {
	if g.err != nil {
		return failure.Wrap(op, g.path, g.err)
	}
	return failure.Wrap(op, g.path, recipe.OnSession(ctx, g.client, f))
}
