//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// deck deals kinds of faults, each once before any comes again.
type deck struct {
	rand *rand.Rand
	all  []trouble
	left []trouble
}

func (d *deck) deal(n int) (hand []trouble) {
	for len(hand) < min(n, len(d.all)) {
		if len(d.left) == 0 {
			for _, i := range d.rand.Perm(len(d.all)) {
				d.left = append(d.left, d.all[i])
			}
		}
		hand, d.left = append(hand, d.left[0]), d.left[1:]
	}
	return hand
}

// blow is one fault of a burst: when it begins and how long it lasts are drawn before anything happens.
type blow struct {
	trouble
	begin, last time.Duration
	rand        *rand.Rand
}

func (d *deck) burst(n int, spread time.Duration) (blows []blow) {
	for _, t := range d.deal(n) {
		blows = append(blows, blow{t, time.Duration(d.rand.Int64N(int64(spread))),
			t.least + time.Duration(d.rand.Int64N(int64(t.most-t.least))), rand.New(rand.NewPCG(d.rand.Uint64(), 17))})
	}
	return blows
}

// strike lets all faults of a burst happen, and returns when each was undone.
func (a *arena) strike(ctx context.Context, blows []blow, t *tally) error {
	errs := make([]error, len(blows))
	var wg sync.WaitGroup
	for i, b := range blows {
		wg.Go(func() { errs[i] = b.fall(ctx, a, t) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (b blow) fall(ctx context.Context, a *arena, t *tally) error {
	pass(ctx, b.begin, nil)
	mend, err := b.trouble.strike(a, b.rand)
	for wait := time.Now(); mend == nil && time.Since(wait) < 2*spread; mend, err = b.trouble.strike(a, b.rand) {
		pass(ctx, 100*time.Millisecond, nil) // another fault has all that this one could hit
	}
	if mend == nil {
		return err
	}
	t.fault(b.name)
	a.record.remark(b.name)
	pass(ctx, b.last, nil)
	err = errors.Join(err, mend())
	a.record.remark(b.name + ": undone")
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	return nil
}

// goals are what somebody must be granted after each burst.
func goals() (names []string) {
	for _, s := range scenes {
		switch {
		case queueOptions[s.path] == nil:
			names = append(names, s.path)
		case s.need == drain:
			names = append(names, what(s.path, taking))
		default:
			names = append(names, what(s.path, putting))
		}
	}
	return names
}

// recover waits until everybody has got on, after the last fault was undone. It returns how long that took.
func (a *arena) recover(goals []string) (time.Duration, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		late, took := a.record.late(goals...)
		if len(late) == 0 {
			return took, nil
		}
		if time.Since(began) > patience/2 {
			return patience / 2, fmt.Errorf("no progress for %v after all was healed: %s", patience/2, strings.Join(late, ", "))
		}
	}
}

// settle brings all to rest, producers and locks first, and empties the queues.
func (a *arena) settle(segment int) (sights map[string]seen, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	if err := a.rested(ctx, fmt.Sprint("drain ", segment)); err != nil {
		return nil, err
	}
	sights = map[string]seen{}
	for path := range a.queues {
		if sights[path], err = a.drained(ctx, path); err != nil {
			return nil, err
		}
	}
	if err := a.rested(ctx, fmt.Sprint("rest ", segment)); err != nil {
		return nil, err
	}
	features := sights[featuresPath]
	if features.dead, err = a.takeDeadLetters(ctx, featuresPath); err != nil {
		return nil, err
	}
	sights[featuresPath] = features
	return sights, errors.Join(a.fillAndEmpty(ctx, featuresPath), a.nobodyLeft(ctx))
}

// rested gives an order and waits until all processes say that they rest as it wants.
func (a *arena) rested(ctx context.Context, order string) error {
	a.order(order)
	for {
		names := a.record.restless(order)
		if len(names) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not at rest (%s): %s", order, strings.Join(names, ", "))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
