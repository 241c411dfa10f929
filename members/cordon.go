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

// Cordon asks a member to take no new work. Anyone with write permission may. It returns when the servers have the request: the member's State becomes Cordoned when it has answered. A
// member that is cordoned or drained already stays so.
//
// The error wraps ErrNotFound, ErrInvalid or framework.ErrNoAuth, or is that of ctx; then the request may have been written.
func (g *Group) Cordon(ctx context.Context, id string, opts ...CordonOption) error {
	return failure.Wrap("cordon", g.path, g.requestCordon(ctx, id, false, opts))
}

// Drain asks a member to take no new work and to finish what it has, and waits until it acknowledges that. If a drain is asked for already, Drain waits for that one; one that has
// failed is begun again.
//
// It returns nil once all processes with the ID that are listed have acknowledged, or none is listed and one has acknowledged before it left. A member that loses its session
// goes on with its work, and acknowledges on the next session. A process that is started again under the drain has to acknowledge, too.
//
// The error is a *DrainError, wraps ErrWithdrawn, ErrLeft, ErrNotFound, ErrInvalid or framework.ErrNoAuth, or is that of ctx. The member stays cordoned and the drain stays asked for, until
// Uncordon withdraws it.
func (g *Group) Drain(ctx context.Context, id string, opts ...CordonOption) error {
	err := g.requestCordon(ctx, id, true, opts)
	if err == nil {
		err = g.waitUntilDrained(ctx, id)
	}
	return failure.Wrap("drain", g.path, err)
}

// Uncordon lets a member take work again, and withdraws a drain. Without a cordon it does nothing.
func (g *Group) Uncordon(ctx context.Context, id string) error {
	err := errors.Join(g.err, checkID(id))
	if err == nil {
		err = recipe.OnSession(ctx, g.client, func(s *framework.Session) error {
			_, err := s.Multi(ctx, framework.DeleteOp(g.nodePath(cordonName(id)), framework.AnyVersion), g.announceOp())
			if isRaced(err) {
				return nil
			}
			return err
		}, failure.IsTransient, isUnknown)
	}
	return failure.Wrap("uncordon", g.path, err)
}

// requestCordon writes a request, unless one that asks for as much is there.
func (g *Group) requestCordon(ctx context.Context, id string, drain bool, opts []CordonOption) error {
	o, err := recipe.ApplyOptions(cordonOptions{}, opts)
	if err = errors.Join(g.err, checkID(id), err); err != nil {
		return err
	}
	if !o.absent {
		view, err := g.List(ctx)
		if err != nil {
			return err
		}
		if member, cordon := view.findMember(id); member == nil && cordon == nil {
			return fmt.Errorf("%w: %q", ErrNotFound, id)
		}
	}
	wanted := cordonRecord{ID: id, Request: uuid.NewString(), Drain: drain, Reason: o.reason, By: g.client.Config().Identity}
	return recipe.OnSession(ctx, g.client, func(s *framework.Session) error { return g.tryAsk(ctx, s, wanted) }, failure.IsTransient, isUnknown)
}

// tryAsk writes a request over what is there. When a reply was lost, the next try finds the request by its id.
func (g *Group) tryAsk(ctx context.Context, s *framework.Session, wanted cordonRecord) error {
	if err := s.Sync(ctx, g.path); err != nil {
		return err
	}
	name := cordonName(wanted.ID)
	node := g.nodePath(name)
	stored, st, err := s.Get(ctx, node)
	missing := errors.Is(err, framework.ErrNoNode)
	if err != nil && !missing {
		return err
	}
	if !missing {
		present := decodeCordon(name, stored, st)
		if present.request == wanted.Request || present.asksFor(wanted.Drain) {
			return nil
		}
		wanted.Reason = cmp.Or(wanted.Reason, present.Reason)
	}
	data, err := wanted.encode()
	if err != nil {
		return err
	}
	op := framework.SetOp(node, data, st.Version)
	if missing {
		op = framework.CreateOp(node, data, framework.Persistent)
	}
	_, err = s.Multi(ctx, op, g.announceOp())
	if !isRaced(err) {
		return err
	}
	if errors.Is(err, framework.ErrNoNode) {
		if err := s.MakeDirs(ctx, g.path); err != nil {
			return err
		}
	}
	return recipe.ErrAgain
}

// asksFor reports whether a request asks for as much as a cordon or a drain would. A drain that has failed is to be asked for again.
func (c *Cordon) asksFor(drain bool) bool {
	failed := false
	for _, answer := range c.Answers {
		failed = failed || answer.State == Failed
	}
	return c.request != "" && (!drain || c.Drain && !failed)
}

// waitUntilDrained waits for the acknowledgement of the drain that is asked for.
func (g *Group) waitUntilDrained(ctx context.Context, id string) error {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var absent *time.Timer // runs while the member is not listed
	defer func() { stopTimer(absent) }()
	for view, err := range g.Watch(waiting) {
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
		case member == nil && absent == nil: // it may be on its way to another session
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

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// failureText is why a drain has failed.
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
