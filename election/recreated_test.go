package election_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// deleteLine deletes the directory of the candidates with its nodes, as an operator's deleteall
// does.
func (w *world) deleteLine(m *member) {
	w.t.Helper()
	for _, name := range w.Children(path) {
		require.NoError(w.t, m.client.Delete(w.t.Context(), path+"/"+name, framework.AnyVersion))
	}
	require.NoError(w.t, m.client.Delete(w.t.Context(), path, framework.AnyVersion))
}

// campaignInBackground returns a channel that gets the term.
func (m *member) campaignInBackground(ctx context.Context) <-chan *election.Term {
	won := make(chan *election.Term, 1)
	go func() {
		if term, err := m.Campaign(ctx); err == nil {
			won <- term
		}
	}()
	synctest.Wait()
	return won
}

// TestDeletedLeaderWakesNoNeighbour: in a directory that was deleted and created again, the numbers
// begin again. The candidate with the next number of the same session may stand behind others then,
// and does not lead when the former leader learns that its node is gone.
func TestDeletedLeaderWakesNoNeighbour(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		former := a.lead(t)
		w.deleteLine(b)
		leader := b.lead(t)
		next := a.campaignInBackground(t.Context())
		time.Sleep(time.Minute)
		require.ErrorIs(t, former.Err(), framework.ErrNodeGone)
		require.Empty(t, next, "two leaders")
		require.NoError(t, leader.Err())
		require.NoError(t, leader.Resign(t.Context()))
		require.NoError(t, (<-next).Resign(t.Context()))
	})
}

// TestDeletedCandidateWakesNoNeighbour is the same of a candidate that was next in line. It learns
// that its node is gone when it records its term.
func TestDeletedCandidateWakesNoNeighbour(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		c.lead(t)
		first := a.campaignInBackground(t.Context())
		a.link.BlackHole(false, true) // the news of the deletion arrives when the next candidate has joined
		w.deleteLine(b)
		leader := b.lead(t)
		second := c.campaignInBackground(t.Context())
		third := a.campaignInBackground(t.Context())
		require.Len(t, w.Children(path), 3)
		a.link.Heal()
		time.Sleep(time.Minute)
		require.Empty(t, third, "two leaders")
		require.NoError(t, leader.Err())
		require.NoError(t, leader.Resign(t.Context()))
		for _, next := range []<-chan *election.Term{second, third, first} {
			require.NoError(t, (<-next).Resign(t.Context()))
		}
	})
}
