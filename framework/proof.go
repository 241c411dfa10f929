package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// maxChecks bounds the nodes that one beat names.
const maxChecks = 100

// beat proves the session's life once on the connection of this generation: a write that changes
// nothing, then a sync. Only what was acknowledged on that very connection counts.
//
// A server that has too much to do answers a request by itself, without the ensemble (ErrOverloaded). That proves nothing about the session, but the
// connection works: the request is repeated there. An overdue beat tries another server, as without an answer.
func (s *Session) beat(generation int64) error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, interval(s.Timeout()), errOverdue)
	defer cancel()
	var sentAt time.Duration
	err := s.whileOverloaded(ctx, func() error {
		sentAt = s.client.clock.Now()
		return s.beatWrite(ctx)
	})
	if err != nil {
		return err
	}
	if !s.on(generation) {
		return errConnectionGone
	}
	s.lived((*lease).written)
	err = s.whileOverloaded(ctx, func() error { return asker{ctx, s, true}.sync(s.client.ns.full("/")) })
	if err != nil {
		return err
	}
	if !s.on(generation) {
		return errConnectionGone
	}
	s.lived(func(l *lease) { l.synced(sentAt) })
	return nil
}

// whileOverloaded repeats a request with pauses until the server does not put it off any more. The error of a request that ctx ended wraps
// ErrOverloaded too if the server has put it off.
func (s *Session) whileOverloaded(ctx context.Context, request func() error) error {
	back := newRetries(s.client.cfg)
	for {
		err := request()
		if !errors.Is(err, ErrOverloaded) {
			return err
		}
		if ended := s.pause(ctx, back); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

var errOverdue = errors.New("no answer to a proof of life")

// on tells whether the connection of this generation is still the present one.
func (s *Session) on(generation int64) bool {
	st := s.mon.Status()
	return st.Up && st.Generation == generation
}

// beatWrite checks held nodes in a transaction until one succeeds: each refusal names a node that
// somebody deleted, whose hold it ends.
func (s *Session) beatWrite(ctx context.Context) error {
	held := s.holds.some(maxChecks)
	for {
		rs, err := asker{ctx, s, true}.multi(s.checks(held)).read()
		if errors.Is(err, ErrSuspended) || ctx.Err() != nil || err == nil {
			return err
		}
		if len(held) == 0 { // a missing or forbidden root: the transaction was ordered all the same
			return acknowledged(rs, err)
		}
		if held, err = dropRefused(held, rs, err); err != nil {
			return err
		}
	}
}

// checks names the held nodes, or the root while nothing is held.
func (s *Session) checks(held []*heldNode) []wire.MultiPart {
	if len(held) == 0 {
		return []wire.MultiPart{checkPart(s.client.ns.full("/"), AnyVersion)}
	}
	parts := make([]wire.MultiPart, len(held))
	for i, n := range held {
		parts[i] = checkPart(n.full, AnyVersion)
	}
	return parts
}

// acknowledged tells apart a transaction that was refused by one of its operations, which the
// ensemble has agreed on like any other, from one that was not run.
func acknowledged(rs []OpResult, err error) error {
	if len(rs) > 0 {
		return nil
	}
	return err
}

// dropRefused ends the hold of the node whose check was refused and returns the other nodes.
func dropRefused(held []*heldNode, rs []OpResult, err error) ([]*heldNode, error) {
	i := slices.IndexFunc(rs, func(r OpResult) bool { return r.Err != nil })
	if i < 0 || i >= len(held) {
		return nil, err
	}
	cause := rs[i].Err
	if errors.Is(cause, ErrNoNode) {
		cause = fmt.Errorf("%w: %s", ErrNodeGone, held[i].path)
	}
	held[i].hold.End(cause)
	return slices.Delete(held, i, i+1), nil
}
