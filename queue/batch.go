package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// TryTake claims an item if there is one now, and else returns ErrEmpty without waiting for one.
//
// Now means: at a moment of the call, behind a sync, so what was put before the call is seen. No item is there for this
// Queue if all are in the hands of others, are kept for later, come back from a dead consumer whose session has not ended or
// whose items nobody has returned yet, or are lost to faster consumers; if the queue is paused, or was never made; if as many
// deliveries are open as WithWindow allows; in a strict queue also if another consumer has its lock, or an item was given back
// for a time. TryTake waits for the servers, also while the connection is suspended, until ctx ends.
//
// On an empty queue it costs a sync and a read, and writes nothing. With an item it costs these and what Take costs. Its other
// errors are those of Take.
func (q *Queue[T]) TryTake(ctx context.Context) (*Delivery[T], error) {
	ds, err := q.takeNow(ctx, 1)
	if err != nil {
		return nil, framework.Wrap("take", q.core.path, err)
	}
	return ds[0], nil
}

// TakeBatch waits for an item as Take does, and returns it with up to n-1 others that can be claimed now (see TryTake), in their
// order. Their claims share transactions. It never returns more than WithWindow allows, less what is open. Each delivery is
// settled on its own, or several with AckAll. When an error comes after the first item, it returns what it has.
func (q *Queue[T]) TakeBatch(ctx context.Context, n int) ([]*Delivery[T], error) {
	if n <= 0 {
		return nil, framework.Wrap("take", q.core.path, fmt.Errorf("%w: a batch of %d, at least 1", ErrOption, n))
	}
	first, err := q.Take(ctx)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return []*Delivery[T]{first}, nil
	}
	others, _ := q.takeNow(ctx, n-1) // what has failed fails again in the next call
	all := append([]*Delivery[T]{first}, others...)
	slices.SortFunc(all, func(a, b *Delivery[T]) int {
		return order(&fetched{path: a.Node(), at: q.core.shelfOf(a.Node())}, &fetched{path: b.Node(), at: q.core.shelfOf(b.Node())})
	})
	return all, nil
}

// takeNow takes up to n items that can be claimed now; ErrEmpty if there is none.
func (q *Queue[T]) takeNow(ctx context.Context, n int) (out []*Delivery[T], err error) {
	if err := q.core.usable(); err != nil {
		return nil, err
	}
	began := time.Now()
	for len(out) == 0 {
		ds, err := q.core.consumer.takeNow(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, d := range ds {
			if delivery := q.handOut(ctx, began, d); delivery != nil {
				out = append(out, delivery)
			}
		}
	}
	return out, nil
}

// AckAll acknowledges deliveries and waits for all outcomes. Those of one Queue share transactions: one, unless there are too
// many for the servers, or for its window. Each is acknowledged on its own: if one was lost, the others are acknowledged all the
// same. The error joins theirs, each with its item's node; see Delivery.Ack. When ctx ends first, the acknowledgements go on.
func AckAll[T any](ctx context.Context, deliveries ...*Delivery[T]) error {
	pending := make([]*Pending, len(deliveries))
	acks := map[*shift][]*part{}
	for i, d := range deliveries {
		pending[i] = d.pending("ack", func(finished func(error)) {
			if p := d.d.ackPart(finished); p != nil {
				acks[d.d.shift] = append(acks[d.d.shift], p)
			}
		})
	}
	for sh, parts := range acks {
		for range parts {
			sh.hope()
		}
		sh.write(append(parts, sh.next()...)...)
	}
	var errs []error
	for _, p := range pending {
		errs = append(errs, p.Wait(ctx))
	}
	return errors.Join(errs...)
}
