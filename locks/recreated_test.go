package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// deleteLine deletes a line's directory with its nodes, as an operator's deleteall does.
func (w *world) deleteLine(t *testing.T, c *framework.Client, dir string) {
	t.Helper()
	for _, name := range w.zk.Children(dir) {
		require.NoError(t, c.Delete(t.Context(), dir+"/"+name, framework.AnyVersion))
	}
	require.NoError(t, c.Delete(t.Context(), dir, framework.AnyVersion))
}

// lockInBackground returns a channel that gets the lease.
func lockInBackground(t *testing.T, l locks.Locker) <-chan *locks.Lease {
	granted := make(chan *locks.Lease, 1)
	go func() {
		lease, err := l.Lock(t.Context())
		if err == nil {
			granted <- lease
		}
	}()
	synctest.Wait()
	return granted
}

// grantedSoon returns the lease that a channel gets within a minute.
func grantedSoon(t *testing.T, granted <-chan *locks.Lease) *locks.Lease {
	t.Helper()
	select {
	case l := <-granted:
		return l
	case <-time.After(time.Minute):
		t.Fatal("it is not granted")
		return nil
	}
}

// TestDeletedHolderWakesNoNeighbour: in a directory that was deleted and created again, the numbers
// begin again. The contender with the next number of the same session may stand behind others then,
// and is not granted when the former holder learns that its node is gone.
func TestDeletedHolderWakesNoNeighbour(t *testing.T) {
	for name, locker := range map[string]func(c *framework.Client) locks.Locker{
		"mutex":  func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) },
		"writer": func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				former := held(t, t.Context(), locker(a.Client))
				w.deleteLine(t, b.Client, path)
				holder := held(t, t.Context(), locker(b.Client))
				require.Equal(t, number(former.Node()), number(holder.Node()))
				next := lockInBackground(t, locker(a.Client))
				time.Sleep(time.Minute)
				require.ErrorIs(t, former.Err(), framework.ErrNodeGone)
				require.Empty(t, next, "two holders")
				require.NoError(t, holder.Err())
				released(t, holder)
				released(t, grantedSoon(t, next))
				w.nothingLeft(t)
			})
		})
	}
}

// TestDeletedWaiterWakesNoNeighbour is the same of a waiter that stood behind the former holder.
func TestDeletedWaiterWakesNoNeighbour(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		locker := func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) }
		former := held(t, t.Context(), locker(c.Client))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = locker(a.Client).Lock(ctx) }()
		synctest.Wait()
		w.deleteLine(t, b.Client, path)
		holder := held(t, t.Context(), locker(b.Client))
		second := lockInBackground(t, locker(b.Client))
		third := lockInBackground(t, locker(a.Client))
		time.Sleep(time.Minute)
		require.ErrorIs(t, former.Err(), framework.ErrNodeGone)
		require.Empty(t, third, "two holders")
		require.NoError(t, holder.Err())
		released(t, holder)
		l := <-second
		time.Sleep(time.Minute)
		require.Empty(t, third, "two holders")
		released(t, l)
		released(t, grantedSoon(t, third))
	})
}

// TestDeletedSemaphoreWaiterWakesNoNeighbour: the first waiter for permits learns that its node is
// gone when it takes the permits. If it handed its place on, two waiters would take permits at the
// same time.
func TestDeletedSemaphoreWaiterWakesNoNeighbour(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		locker := func(c *framework.Client) locks.Locker { return locks.NewSemaphore(c, path, 1) }
		former := held(t, t.Context(), locker(c.Client))
		first := lockInBackground(t, locker(a.Client))
		w.deleteLine(t, b.Client, path+"/locks")
		second := lockInBackground(t, locker(b.Client)) // the first in the new directory
		third := lockInBackground(t, locker(c.Client))
		fourth := lockInBackground(t, locker(a.Client)) // has the number after first's
		released(t, former)
		released(t, grantedSoon(t, second))
		synctest.Wait()
		require.Len(t, w.zk.Children(path+"/leases"), 1)
		require.Empty(t, fourth)
		released(t, grantedSoon(t, third))
		released(t, grantedSoon(t, fourth))
		released(t, grantedSoon(t, first)) // it has joined again
		w.nothingLeft(t)
	})
}

// TestDeletedSemaphoreWaiterThatGivesUpWakesNoNeighbour: it does not learn that its node is gone.
func TestDeletedSemaphoreWaiterThatGivesUpWakesNoNeighbour(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		locker := func(c *framework.Client) locks.Locker { return locks.NewSemaphore(c, path, 1) }
		former := held(t, t.Context(), locker(c.Client))
		ctx, giveUp := context.WithCancel(t.Context())
		go func() { _, _ = locker(a.Client).Lock(ctx) }()
		synctest.Wait()
		w.deleteLine(t, b.Client, path+"/locks")
		second := lockInBackground(t, locker(b.Client))
		third := lockInBackground(t, locker(c.Client))
		fourth := lockInBackground(t, locker(a.Client)) // has the number after that of the waiter that gives up
		giveUp()
		synctest.Wait()
		released(t, former)
		synctest.Wait()
		require.Len(t, w.zk.Children(path+"/leases"), 1)
		released(t, grantedSoon(t, second))
		released(t, grantedSoon(t, third))
		released(t, grantedSoon(t, fourth))
		w.nothingLeft(t)
	})
}

// TestContendersOfTwoDirectoriesAreNoNeighbours: an old holder has the number of a contender in the
// new directory. When it learns that its node is gone, it must not break the link of the new
// neighbours: the next one of the same session would wait for ever, and all clients behind it.
func TestContendersOfTwoDirectoriesAreNoNeighbours(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, former *locks.Lease){
		"it learns of the deletion": func(*testing.T, *locks.Lease) { time.Sleep(time.Minute) },
		"it is released before":     func(t *testing.T, former *locks.Lease) { _ = former.Release(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				locker := func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) }
				first := held(t, t.Context(), locker(b.Client))
				second := lockInBackground(t, locker(a.Client)) // has number 1
				released(t, first)
				former := grantedSoon(t, second)
				w.deleteLine(t, b.Client, path)
				third := lockInBackground(t, locker(a.Client)) // has number 0
				fourth := lockInBackground(t, locker(a.Client))
				leave(t, former)
				released(t, grantedSoon(t, third))
				released(t, grantedSoon(t, fourth))
				w.nothingLeft(t)
			})
		})
	}
}

// TestAWaiterOfADeletedDirectoryJoinsNoNeighboursOfTheNext: a waiter of the old directory gives up.
// In the new one, another client's contender is between two of its session.
func TestAWaiterOfADeletedDirectoryJoinsNoNeighboursOfTheNext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		locker := func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) }
		former := held(t, t.Context(), locker(c.Client)) // 0
		old := lockInBackground(t, locker(a.Client))     // 1
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		go func() { _, _ = locker(a.Client).Lock(ctx) }() // 2
		synctest.Wait()
		w.deleteLine(t, b.Client, path)
		first := held(t, t.Context(), locker(c.Client))  // 0
		second := lockInBackground(t, locker(a.Client))  // 1
		between := lockInBackground(t, locker(c.Client)) // 2
		last := lockInBackground(t, locker(a.Client))    // 3
		giveUp()
		synctest.Wait()
		released(t, first)
		released(t, grantedSoon(t, second))
		holder := grantedSoon(t, between)
		time.Sleep(time.Minute)
		require.Empty(t, last, "two holders")
		require.NoError(t, holder.Err())
		released(t, holder)
		released(t, grantedSoon(t, last))
		for _, l := range []*locks.Lease{former, grantedSoon(t, old)} {
			// the deletion of former's node seemed to grant old, until it learned of its own
			require.ErrorIs(t, l.Err(), framework.ErrNodeGone)
			_ = l.Release(t.Context())
		}
		w.nothingLeft(t)
	})
}
