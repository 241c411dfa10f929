package main

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// deposits has bob deposit while ann, who has read the balance, hears nothing for longer than her session
// lives; then ann writes. It returns what ann tells.
func deposits(t *testing.T, fenced bool) (l *ledger, told []event) {
	t.Helper()
	l, _ = newLedger(t, fenced)
	zk := zktest.Start(t)
	ann, bob := zk.Member(t, "ann", framework.Config{}), zk.Member(t, "bob", framework.Config{})
	second := &holder{
		lock: locks.NewMutex(bob.Client, lockPath), ledger: l, tell: func(event) {},
		pause: func(context.Context) error { return nil },
	}
	first := &holder{
		lock: locks.NewMutex(ann.Client, lockPath), ledger: l,
		tell: func(e event) { told = append(told, e) },
		pause: func(ctx context.Context) error {
			ann.Link.BlackHole(true, true)
			defer ann.Link.Heal()
			return second.run(ctx, bobsDeposit) // gets the lock when ann's session has ended
		},
	}
	require.NoError(t, first.run(t.Context(), annsDeposit))
	return l, told
}

func kinds(told []event) (kinds []kind) {
	for _, e := range told {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestALateWriteIsRefusedAndBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, told := deposits(t, true)
		require.Equal(t, []kind{granted, ready, lost, refused, granted, ready, written}, kinds(told))
		requireRow(t, l, opening+annsDeposit+bobsDeposit, told[4].Token)
		require.Greater(t, told[4].Token, told[0].Token)
	})
}

func TestWithoutTheFenceALateWriteLosesADeposit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, told := deposits(t, false)
		require.Equal(t, []kind{granted, ready, lost, written}, kinds(told))
		requireRow(t, l, opening+annsDeposit, told[0].Token)
	})
}
