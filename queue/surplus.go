package queue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// spell is how long claims may wait for items: until nobody has called Take for the linger time.
type spell struct {
	ctx context.Context
	end context.CancelFunc
}

func newSpell(shift context.Context) (s spell) {
	s.ctx, s.end = context.WithCancel(shift)
	return s
}

// patience is the present spell's.
func (sh *shift) patience() context.Context {
	sh.c.mu.Lock()
	defer sh.c.mu.Unlock()
	return sh.spell.ctx
}

// giveBackAhead gives back what was claimed ahead if nobody has called Take for a time: others may wait for it.
func (sh *shift) giveBackAhead(after time.Duration) {
	sh.c.mu.Lock()
	waited := len(sh.c.waits) == 0 && time.Since(sh.c.last) >= after
	if !waited || sh.making+len(sh.ready)+sh.hopes == 0 {
		sh.c.mu.Unlock()
		return
	}
	over := sh.spell
	sh.hopes, sh.spell = 0, newSpell(sh.ctx)
	unseen := sh.takeReady()
	sh.c.mu.Unlock()
	over.end()
	var given sync.WaitGroup // nobody waits for it
	for _, d := range unseen {
		d.takeBack(d.attempt-1, &given)
	}
}

// takeReady takes what nobody was handed. c.mu is held.
func (sh *shift) takeReady() []*delivery {
	ready := sh.ready
	sh.ready = nil
	for _, d := range ready {
		d.unseen = true
		sh.held[d] = true
	}
	return ready
}

// goHome ends what is left of the shift's deliveries, and gives their items back. Only those that were handed out
// have had an attempt.
func (sh *shift) goHome() {
	sh.c.mu.Lock()
	held := slices.Collect(maps.Keys(sh.held))
	ready := sh.takeReady()
	sh.c.mu.Unlock()
	var given sync.WaitGroup
	for _, d := range ready {
		d.takeBack(d.attempt-1, &given)
	}
	for _, d := range held {
		d.takeBack(d.attempt, &given)
	}
	given.Wait()
}

// takeBack ends a delivery that nobody has settled, and gives its item back as if it had so many attempts.
func (d *delivery) takeBack(attempts int, given *sync.WaitGroup) {
	if d.begin(errTakenBack) != nil {
		return
	}
	d.tenure.End(ErrClosed)
	given.Add(1)
	d.putBack(attempts, func(error) { given.Done() })
}
