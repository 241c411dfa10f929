package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// idleLocks is the number of waiters that are granted around the moment of the fault.
const idleLocks = 6

// testIdleWaiter grants waiters that have held nothing for 3 T, just as what their follower sends to its
// leader is lost: their sessions' life must have been proven while they were idle.
func testIdleWaiter(t *testing.T, a *arena) {
	r := a.roles(t)
	ls := make([]*idleLock, idleLocks)
	require.NoError(t, together(len(ls), func(i int) (err error) {
		pass(t, timeout/4*time.Duration(i)/idleLocks)
		ls[i], err = newIdleLock(t, a, r, i)
		return err
	}))
	pass(t, 3*timeout)
	t.Cleanup(func() { a.heal(t) })

	// Releases take some milliseconds to reach the waiters: they are granted 0 to 50 ms after the cut.
	began := time.Now()
	require.NoError(t, a.Hold(r.follower, r.leader))
	require.NoError(t, together(len(ls), func(i int) error {
		pass(t, time.Until(began.Add(50*time.Millisecond*time.Duration(i)/idleLocks)))
		ls[i].first.release(t.Context())
		return nil
	}))
	granted := 0
	for _, l := range ls {
		await(t, l.last)
		granted += l.idlersGrants()
		for _, gap := range l.record.gaps() {
			t.Logf("%s: the next holder came %v after the idle one's end", l.record.path, gap)
		}
	}
	require.Positive(t, granted, "no idle waiter was granted: the fault came too early")
	a.heal(t)
}

// idleLock is a lock with a holder in health, an idle waiter on the follower and one more behind it.
type idleLock struct {
	record      *record
	first       *grant
	idler, last <-chan *grant
}

func newIdleLock(t *testing.T, a *arena, r roles, i int) (*idleLock, error) {
	l := &idleLock{record: &record{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), i)}}
	holder, err := connect(t, a.at(r.other))
	if err != nil {
		return nil, err
	}
	if l.first, err = l.record.lock("the first holder", holder); err != nil {
		return nil, err
	}
	idler, err := connect(t, a.at(r.follower))
	if err != nil {
		return nil, err
	}
	if l.idler, err = l.record.queue("the idle waiter", idler); err != nil {
		return nil, err
	}
	last, err := connect(t, a.at(r.leader))
	if err != nil {
		return nil, err
	}
	l.last, err = l.record.queue("the last waiter", last)
	return l, err
}

// idlersGrants is 1 if the idle waiter was granted before the last one.
func (l *idleLock) idlersGrants() int {
	if len(l.idler) > 0 {
		return 1
	}
	return 0
}
