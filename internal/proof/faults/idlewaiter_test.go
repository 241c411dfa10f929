package faults

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// idleLocks is the number of locks whose idle waiters are granted around the moment of the fault.
const idleLocks = 6

// testIdleWaiter grants waiters that have held nothing for 3 T, at the moment at which the link
// from their follower to the leader is lost. As the next in line, their sessions must have sent
// heartbeats meanwhile. It tries again if the releases came too late to reach a waiter, as on a
// slow machine.
func testIdleWaiter(t *testing.T, env *testEnv) {
	for try := 1; grantIdleWaiters(t, env, try) == 0; try++ {
		require.Less(t, try, 10, "no idle waiter was granted: the fault was too early")
	}
}

// grantIdleWaiters returns how many waiters were granted: none if the machine stalled for so long
// that a first holder was lost before its waiters were in line.
func grantIdleWaiters(t *testing.T, env *testEnv, try int) (granted int) {
	r := env.chooseRoles(t)
	ls := make([]*idleWaiterLock, idleLocks)
	var stalled atomic.Bool
	require.NoError(t, runConcurrently(len(ls), func(i int) (err error) {
		wait(t, sessionTimeout/4*time.Duration(i)/idleLocks)
		ls[i], err = newIdleWaiterLock(t, env, r, fmt.Sprintf("/%s/%d-%d", t.Name(), try, i))
		if errors.Is(err, errNoWait) && ls[i].holder.hasEnded() {
			stalled.Store(true)
			return nil
		}
		return err
	}))
	if stalled.Load() {
		return 0
	}
	wait(t, 3*sessionTimeout)
	t.Cleanup(func() { env.healAndAwait(t) })

	// A release takes some milliseconds to reach the waiter. So the waiter is granted 0 to 50 ms
	// after the cut.
	began := time.Now()
	require.NoError(t, env.Hold(r.follower, r.leader))
	require.NoError(t, runConcurrently(len(ls), func(i int) error {
		wait(t, time.Until(began.Add(50*time.Millisecond*time.Duration(i)/idleLocks)))
		ls[i].holder.release(t.Context())
		return nil
	}))
	for _, l := range ls {
		awaitGrant(t, l.lastWaiter)
		granted += l.idleWaiterGrants()
		for _, gap := range l.history.checkGaps() {
			t.Logf("%s: the next grant came %v after the idle waiter's loss", l.history.path, gap)
		}
	}
	env.healAndAwait(t)
	return granted
}

// idleWaiterLock is a lock with a healthy holder, an idle waiter on the follower, and a last waiter
// behind it.
type idleWaiterLock struct {
	history                *lockHistory
	holder                 *grant
	idleWaiter, lastWaiter <-chan *grant
}

func newIdleWaiterLock(t *testing.T, env *testEnv, r serverRoles, path string) (*idleWaiterLock, error) {
	l := &idleWaiterLock{history: &lockHistory{t: t, path: path}}
	holder, err := connect(t, env.clientConfig(r.other))
	if err != nil {
		return nil, err
	}
	if l.holder, err = l.history.lock("the first holder", holder); err != nil {
		return nil, err
	}
	idler, err := connect(t, env.clientConfig(r.follower))
	if err != nil {
		return nil, err
	}
	if l.idleWaiter, err = l.history.startWaiter("the idle waiter", idler); err != nil {
		return nil, err
	}
	last, err := connect(t, env.clientConfig(r.leader))
	if err != nil {
		return nil, err
	}
	l.lastWaiter, err = l.history.startWaiter("the last waiter", last)
	return l, err
}

// idleWaiterGrants is 1 if the idle waiter was granted before the last one.
func (l *idleWaiterLock) idleWaiterGrants() int {
	if len(l.idleWaiter) > 0 {
		return 1
	}
	return 0
}
