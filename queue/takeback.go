package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// TakeBack takes an item away from the consumer that has it, by a claim that InFlight or Inspect
// has returned. The item comes again first in line, with a higher Attempt; the same consumer may
// get it. This is for operators: for a handler that hangs in a process that is alive.
//
// Guarantee: if TakeBack returns nil, the servers refuse all that the former delivery does from
// then on: its Ack, Nack and Return (ErrLost), and transactions with its Guard. The claim's node
// was deleted, and no other claim has its name. The delivery's context ends when the consumer
// notices that: at once if it has had the item for longer than half its session timeout, else
// within about a quarter of it.
//
// Not guaranteed: that the former consumer stops. Until it looks at its context, it may act beside
// the next one. What it changes outside of ZooKeeper should check Delivery.Token.
//
// The error wraps framework.ErrNotFound if the claim has ended; framework.ErrOutcomeUnknown if an
// answer was lost and the claim may have ended by this call or otherwise; framework.ErrInvalid if
// the claim is of another queue or of a strict one. The consumer of a strict queue has all its
// items by its hold of the lock <path>/lock: locks.Evict takes that away.
func (q *Queue[T]) TakeBack(ctx context.Context, claim InFlightItem) error {
	return failure.Wrap("take back", claim.Node, q.engine.store.takeBack(ctx, claim))
}

func (store *store) takeBack(ctx context.Context, claim InFlightItem) error {
	if err := store.checkUsable(); err != nil {
		return err
	}
	if !store.nodes.HasTicket(claim.ticket) {
		return fmt.Errorf("%w: TakeBack: the claim has no ticket below %s: it is of another queue, or of a strict one",
			errOption, store.nodes.TicketsDir)
	}
	sent := false
	err := recipe.OnSession(ctx, store.client, func(s *framework.Session) error {
		_, err := s.Multi(ctx, framework.DeleteOp(claim.ticket, framework.AnyVersion), store.nodes.SignalRecoverer())
		switch {
		case errors.Is(err, framework.ErrNoNode) && sent:
			return fmt.Errorf("%w: the claim has ended, perhaps by this call", errUnknown)
		case errors.Is(err, framework.ErrNoNode):
			return errNotClaimed
		}
		sent = true
		return err
	}, failure.IsTransient, isAnswerLost)
	if err != nil && ctx.Err() != nil && sent {
		err = fmt.Errorf("%w: %w", errUnknown, err)
	}
	return err
}
