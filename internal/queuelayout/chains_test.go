package queuelayout

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestTicketsOfAllChainsAreFound: those of returned items and of priorities, too.
func TestTicketsOfAllChainsAreFound(t *testing.T) {
	q := New("/orders")
	for _, chain := range []Chain{q.Base, q.Redo, q.Lane("7")} {
		synctest.Test(t, func(t *testing.T) {
			a := zktest.Start(t).Member(t, "a", framework.Config{})
			has, err := HasTickets(t.Context(), a.Client, q.Path)
			require.NoError(t, err)
			require.False(t, has, "there is no queue")
			dir := chain.Segment(0).TicketDir()
			require.NoError(t, a.MakeDirs(t.Context(), dir))
			has, err = HasTickets(t.Context(), a.Client, q.Path)
			require.NoError(t, err)
			require.False(t, has)
			ticket := framework.CreateOp(dir+"/"+TicketName("1a2b3c4d", 1), nil, framework.EphemeralSequential)
			_, err = a.Multi(t.Context(), ticket)
			require.NoError(t, err)
			has, err = HasTickets(t.Context(), a.Client, q.Path)
			require.NoError(t, err)
			require.True(t, has, chain.Tickets)
		})
	}
}
