package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Cordon asks a member to take no new work. Any client with write permission may ask. Cordon
// returns when the servers have the request; the member's State becomes Cordoned when the member
// has answered. It changes nothing, also not the reason, if the ID has a cordon or a drain already.
//
// The error wraps framework.ErrNotFound, framework.ErrInvalid, framework.ErrClosed or
// framework.ErrNoAuth, or is that of ctx; then the request may have been written.
func (g *Group) Cordon(ctx context.Context, id string, opts ...CordonOption) error {
	return failure.Wrap("cordon", g.path, g.requestCordon(ctx, id, false, opts))
}

// Drain asks a member to take no new work and to finish its work, and waits until the member
// acknowledges that. If an earlier drain has not ended, Drain waits for that one. If an earlier
// drain has failed, Drain makes a new request, and the member calls its drain function again.
//
// Drain returns nil once all listed processes with the ID have acknowledged. If no process with the
// ID is listed any more, it returns nil if one had acknowledged before it left, and otherwise an
// error that wraps ErrLeft, after a session timeout of this client. A member that loses its session
// goes on with its work, and acknowledges on the next session. A process that is started again
// under the drain must acknowledge, too.
//
// The error wraps a *DrainError, ErrWithdrawn, ErrLeft, framework.ErrNotFound,
// framework.ErrInvalid, framework.ErrClosed or framework.ErrNoAuth, or is that of ctx. After a
// *DrainError and after ErrLeft the member stays cordoned, and the request to drain stands until
// Uncordon withdraws it. After framework.ErrNotFound and framework.ErrInvalid there
// is no request. After any other error but ErrWithdrawn the request may have been written.
func (g *Group) Drain(ctx context.Context, id string, opts ...CordonOption) error {
	err := g.requestCordon(ctx, id, true, opts)
	if err == nil {
		err = g.waitUntilDrained(ctx, id)
	}
	return failure.Wrap("drain", g.path, err)
}

// Uncordon lets a member take work again, and withdraws a drain. It returns nil, and changes no
// node, if there is no cordon. If a reply is lost, it tries again, but keeps a cordon that was made
// meanwhile. The error wraps framework.ErrInvalid, framework.ErrClosed or framework.ErrNoAuth, or
// is that of ctx; then the cordon may have been removed.
func (g *Group) Uncordon(ctx context.Context, id string) error {
	err := errors.Join(g.err, checkID(id))
	if err == nil {
		created := int64(0)
		err = recipe.OnSession(ctx, g.client,
			func(s *framework.Session) error { return g.deleteCordon(ctx, s, id, &created) }, failure.IsTransient,
			isUnknown)
	}
	return failure.Wrap("uncordon", g.path, err)
}

// deleteCordon deletes a cordon's node. created is the Czxid of the node that the first try has
// found, or 0. A node with another Czxid is a later cordon, and stays. A request of a session that
// this client has given up may reach the servers late, when a later cordon has the same version. So
// the transaction checks the version of the group's node, which each change of a cordon raises.
func (g *Group) deleteCordon(ctx context.Context, s *framework.Session, id string, created *int64) error {
	if err := s.Sync(ctx, g.path); err != nil {
		return err
	}
	group, err := s.Exists(ctx, g.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	node := g.nodePath(cordonName(id))
	stat, err := s.Exists(ctx, node)
	if errors.Is(err, framework.ErrNoNode) || err == nil && *created != 0 && stat.Czxid != *created {
		return nil
	}
	if err != nil {
		return err
	}
	*created = stat.Czxid
	_, err = s.Multi(ctx, framework.CheckOp(g.path, group.Version), framework.DeleteOp(node, stat.Version),
		g.announceOp())
	if isConflict(err) {
		return recipe.ErrAgain
	}
	return err
}

// requestCordon writes a request, unless the ID has one that asks for as much.
func (g *Group) requestCordon(ctx context.Context, id string, drain bool, opts []CordonOption) error {
	o, err := recipe.ApplyOptions(cordonOptions{}, opts)
	if err = errors.Join(g.err, checkID(id), err); err != nil {
		return err
	}
	if !o.evenIfAbsent {
		view, err := g.Inspect(ctx)
		if err != nil {
			return err
		}
		if member, cordon := view.findMember(id); member == nil && cordon == nil {
			return fmt.Errorf("%w: %q", errNotFound, id)
		}
	}
	wanted := cordonRecord{ID: id, Drain: drain, Reason: o.reason, By: g.client.Config().Identity}
	var tried []string
	return recipe.OnSession(ctx, g.client, func(s *framework.Session) error {
		return g.writeRequest(ctx, s, wanted, &tried)
	}, failure.IsTransient, isUnknown)
}

// writeRequest writes a request, in place of an earlier one. After a lost reply, the next try
// recognizes the request by its UUID, which it finds among those that were tried. If somebody has
// withdrawn the request meanwhile, the next try writes another one: the member may have answered
// the first.
func (g *Group) writeRequest(ctx context.Context, s *framework.Session, wanted cordonRecord, tried *[]string) error {
	if err := s.Sync(ctx, g.path); err != nil {
		return err
	}
	name := cordonName(wanted.ID)
	node := g.nodePath(name)
	stored, stat, err := s.Get(ctx, node)
	missing := errors.Is(err, framework.ErrNoNode)
	if err != nil && !missing {
		return err
	}
	if !missing {
		present := decodeCordon(name, stored, stat)
		if slices.Contains(*tried, present.request) || present.asksFor(wanted.Drain) {
			return nil
		}
		wanted.Reason = cmp.Or(wanted.Reason, present.Reason)
		wanted.version, wanted.unknown = present.recordVersion, present.unknown
	}
	wanted.Request = uuid.NewString()
	*tried = append(*tried, wanted.Request)
	data, err := wanted.encode()
	if err != nil {
		return err
	}
	op := framework.SetOp(node, data, stat.Version)
	if missing {
		op = framework.CreateOp(node, data, framework.Persistent)
	}
	_, err = s.Multi(ctx, op, g.announceOp())
	if !isConflict(err) {
		return err
	}
	if errors.Is(err, framework.ErrNoNode) {
		if err := s.MakeDirs(ctx, g.path); err != nil {
			return err
		}
	}
	return recipe.ErrAgain
}

// asksFor reports whether the request asks for a cordon, or with drain for a drain that has not
// failed. A new request is needed otherwise.
func (c *Cordon) asksFor(drain bool) bool {
	failed := false
	for _, answer := range c.Answers {
		failed = failed || answer.State == Failed
	}
	return c.request != "" && (!drain || c.Drain && !failed)
}

// waitUntilDrained waits until the member has acknowledged the drain, or until an error of Drain is
// certain.
func (g *Group) waitUntilDrained(ctx context.Context, id string) error {
	for {
		err := g.watchDrain(ctx, id)
		if !errors.Is(err, ErrLeft) {
			return err
		}
		view, listErr := g.Inspect(ctx) // the member may have joined again while this client had no connection
		if listErr != nil {
			return listErr
		}
		if member, cordon := view.findMember(id); member == nil && cordon != nil && !cordon.isDrained() {
			return err
		}
	}
}

// watchDrain watches the group until the member has acknowledged the drain, or returns why that
// does not happen. It returns ErrLeft when the latest view of a session timeout lacks the member.
func (g *Group) watchDrain(ctx context.Context, id string) error {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var absent *time.Timer // ends the wait with ErrLeft; it runs while no member with the ID is listed
	defer func() { stopTimer(absent) }()
	for view, err := range g.Follow(waiting) {
		if err != nil {
			return err
		}
		member, cordon := view.findMember(id)
		switch {
		case cordon == nil || !cordon.Drain:
			return ErrWithdrawn
		case member == nil && cordon.isDrained(), member != nil && member.State == Drained:
			return nil
		case member != nil && member.State == Failed:
			return &DrainError{ID: id, Reason: cordon.failureText()}
		case member == nil && absent == nil: // the member may join again on its next session
			absent = time.AfterFunc(g.client.Config().SessionTimeout, func() { stop(ErrLeft) })
		case member != nil:
			stopTimer(absent)
			absent = nil
		}
	}
	if ctx.Err() == nil {
		return context.Cause(waiting)
	}
	return failure.Ended(ctx)
}

// stopTimer stops a timer, which may be nil.
func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// failureText returns the error of a failed answer; there is at least one. Of several it returns
// the first in the order of their texts.
func (c *Cordon) failureText() string {
	var reasons []string
	for _, answer := range c.Answers {
		if answer.State == Failed {
			reasons = append(reasons, answer.Error)
		}
	}
	slices.Sort(reasons)
	return reasons[0]
}
