package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// corner says where the two sides of a duel are: a holder that a fault is to hit, and a waiter out of
// its reach.
type corner struct {
	name   string
	holder framework.Config
	option framework.Option // of the holder; may be nil
	link   *ensemble.Proxy  // of the holder, for the fault to cut; may be nil
	waiter framework.Config
	doomed bool // the holder cannot live through the fault
}

// duel is one lock that a holder has and a waiter waits for.
type duel struct {
	corner
	record *record
	held   *grant
	next   <-chan *grant // gets the waiter's grant
	won    *grant
}

// duels starts n duels in each corner. Their holders' proofs of life are staggered over T/4, so that one
// fault meets them at different moments. It returns once the proofs are in full swing.
func duels(t *testing.T, n int, corners ...corner) []*duel {
	t.Helper()
	all := make([]*duel, n*len(corners))
	require.NoError(t, together(len(all), func(i int) (err error) {
		pass(t, timeout/4*time.Duration(i)/time.Duration(len(all)))
		all[i], err = corners[i%len(corners)].begin(t, i)
		return err
	}))
	pass(t, timeout/2+upTo(timeout/4))
	return all
}

func (c corner) begin(t *testing.T, i int) (*duel, error) {
	d := &duel{corner: c, record: &record{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), i)}}
	holder, err := connect(t, c.holder, c.option)
	if err != nil {
		return nil, err
	}
	if d.held, err = d.record.lock(c.name, holder); err != nil {
		return nil, err
	}
	waiter, err := connect(t, c.waiter)
	if err != nil {
		return nil, err
	}
	d.next, err = d.record.queue("the waiter", waiter)
	return d, err
}

// standing are the duels whose holder has not been lost already, to a stall of this machine. A fault
// that meets none proves nothing.
func standing(t *testing.T, ds []*duel) []*duel {
	t.Helper()
	ds = slices.DeleteFunc(ds, func(d *duel) bool { return d.held.over() })
	require.NotEmpty(t, ds, "every holder was lost before the fault")
	return ds
}

// fightOut waits until every waiter whose holder is doomed is granted, and gives the other holders
// the time to be lost. Then it heals; whoever still holds releases, and the waiter must be granted.
func fightOut(t *testing.T, ds []*duel, heal func()) {
	t.Helper()
	spared, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	for _, d := range ds {
		if d.doomed {
			d.await(t)
		}
	}
	for _, d := range ds {
		d.awaitUntil(spared.Done())
	}
	heal()
	for _, d := range ds {
		d.held.release(t.Context())
	}
	for _, d := range ds {
		d.await(t)
	}
	report(t, ds)
}

// await waits for the waiter's grant.
func (d *duel) await(t *testing.T) {
	t.Helper()
	if d.won == nil {
		d.won = await(t, d.next)
	}
}

// awaitUntil waits for the waiter's grant for some time.
func (d *duel) awaitUntil(end <-chan struct{}) {
	if d.won != nil {
		return
	}
	select {
	case d.won = <-d.next:
	case <-end:
	}
}

// report checks the records and shows how close it was.
func report(t *testing.T, ds []*duel) {
	t.Helper()
	gaps := map[string][]time.Duration{}
	total := map[string]int{}
	for _, d := range ds {
		gaps[d.name] = append(gaps[d.name], d.record.gaps()...)
		total[d.name]++
	}
	for name, g := range gaps {
		if len(g) == 0 {
			t.Logf("%s: none of %d lost", name, total[name])
			continue
		}
		t.Logf("%s: %d of %d lost, the next holder came %v to %v later", name, len(g), total[name], slices.Min(g), slices.Max(g))
	}
}
