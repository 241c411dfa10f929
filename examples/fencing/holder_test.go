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

// runDeposits cuts ann off from the servers after she has read the balance, until her session has
// expired and bob has deposited. Then ann writes. It returns ann's events.
func runDeposits(t *testing.T, fenced bool) (l *accountStore, events []event) {
	t.Helper()
	l, _ = newAccountStore(t, fenced)
	zk := zktest.Start(t)
	ann, bob := zk.Member(t, "ann", framework.Config{}), zk.Member(t, "bob", framework.Config{})
	second := &holder{
		lock: locks.NewMutex(bob.Client, lockPath), accounts: l, emit: func(event) {},
		pause: func(context.Context) error { return nil },
	}
	first := &holder{
		lock: locks.NewMutex(ann.Client, lockPath), accounts: l,
		emit: func(e event) { events = append(events, e) },
		pause: func(ctx context.Context) error {
			ann.Link.BlackHole(true, true)
			defer ann.Link.Heal()
			return second.run(ctx, bobsDeposit) // gets the lock when ann's session has ended
		},
	}
	require.NoError(t, first.run(t.Context(), annsDeposit))
	return l, events
}

func kinds(events []event) (kinds []kind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestRefusedDepositIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, events := runDeposits(t, true)
		require.Equal(t, []kind{granted, ready, lost, refused, granted, ready, written}, kinds(events))
		requireRow(t, l, opening+annsDeposit+bobsDeposit, events[4].Token)
		require.Greater(t, events[4].Token, events[0].Token)
	})
}

func TestLateWriteLosesDepositWithoutFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, events := runDeposits(t, false)
		require.Equal(t, []kind{granted, ready, lost, written}, kinds(events))
		requireRow(t, l, opening+annsDeposit, events[0].Token)
	})
}
