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

// resignAtEnd gives a term up once it has ended, as Lead does when its function returns.
func resignAtEnd(term *election.Term) {
	context.AfterFunc(term.Context(), func() { _ = term.Resign(context.Background()) }) // it never fails
}

func TestALeaderHandsOverOnRequest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		term := a.lead(t)
		won := map[string]<-chan *election.Term{}
		for _, id := range []string{"b", "c"} {
			won[id] = campaign(t, w.member(id).Election)
		}
		operator := w.member("operator").Election
		resignAtEnd(term)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, operator.RequestTransfer(ctx, "c"))
		require.ErrorIs(t, term.Err(), election.ErrTransferred)
		require.ErrorContains(t, term.Err(), `to "c", as was requested`)
		synctest.Wait()
		next := got(t, won["c"])
		require.EqualValues(t, 2, next.Number(), "b has not led")
		require.NoError(t, operator.RequestTransfer(t.Context(), "c"), "it leads already")
		time.Sleep(time.Minute)
		require.NoError(t, next.Err(), "the request is gone")
		require.Empty(t, w.Children(path+"~waiting"))
		require.NoError(t, next.Resign(t.Context()))
		require.NoError(t, got(t, won["b"]).Resign(t.Context()))
	})
}

func TestARequestForAnotherOfTheSameIDIsDoneOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		term := w.member("a").lead(t)
		first := campaign(t, election.New(w.member("b").client, path, election.WithID("same")))
		second := campaign(t, election.New(w.member("c").client, path, election.WithID("same")))
		operator := w.member("operator").client
		require.NoError(t, operator.MakeDirs(t.Context(), path+"~waiting"))
		request := path + "~waiting/_c_00000000-0000-0000-0000-000000000001-transfer"
		require.NoError(t, operator.Create(t.Context(), request, []byte(`{"v":1,"id":"same"}`), framework.Ephemeral))
		resignAtEnd(term)
		synctest.Wait()
		require.Error(t, term.Err())
		next := got(t, first)
		time.Sleep(time.Minute)
		require.NoError(t, next.Err(), "the request stands, and is done")
		require.NoError(t, operator.Delete(t.Context(), request, framework.AnyVersion))
		require.NoError(t, next.Resign(t.Context()))
		require.NoError(t, got(t, second).Resign(t.Context()))
	})
}

func TestRequestsThatCannotBeDone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		operator := w.member("operator").Election
		require.ErrorIs(t, operator.RequestTransfer(t.Context(), "a"), election.ErrNoLeader)
		java := w.member("java").client
		require.NoError(t, java.MakeDirs(t.Context(), path))
		require.NoError(t, java.Create(t.Context(), path+"/_c_00000000-0000-0000-0000-000000000001-latch-0000000000",
			[]byte("java"), framework.Ephemeral))
		b := campaign(t, w.member("b").Election)
		synctest.Wait()
		require.ErrorIs(t, operator.RequestTransfer(t.Context(), "none"), framework.ErrNotFound)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, operator.RequestTransfer(ctx, "b"), context.DeadlineExceeded,
			"Java's leader does not heed it")
		require.Empty(t, w.Children(path+"~waiting"))
		require.Empty(t, b)
	})
}
