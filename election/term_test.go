package election_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// campaign begins a campaign in the background.
func campaign(t *testing.T, e *election.Election) <-chan *election.Term {
	won := make(chan *election.Term, 1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		defer close(won)
		term, err := e.Campaign(ctx)
		if err == nil {
			won <- term
		}
	}()
	synctest.Wait()
	return won
}

func TestTermsAreCounted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		for n := range int64(5) {
			term := []*member{a, b}[n%2].lead(t)
			require.Equal(t, n+1, term.Number())
			require.WithinDuration(t, time.Now(), term.Since(), time.Second)
			leader, err := b.Leader(t.Context())
			require.NoError(t, err)
			require.Equal(t, n+1, leader.Number)
			require.NoError(t, term.Resign(t.Context()))
		}
		node, ok := w.Node(path + "~term")
		require.True(t, ok)
		require.Equal(t, zktest.Persistent, node.Mode)
		time.Sleep(time.Hour) // the directory is removed, the number stays
		require.EqualValues(t, 6, a.lead(t).Number())
	})
}

func TestATermIsCountedOnceWhateverReplyIsLost(t *testing.T) {
	for _, m := range []zktest.Match{{Op: zktest.OpMulti}, {Op: zktest.OpCreate}, {Op: zktest.OpGetData}} {
		in(t, func(t *testing.T, w *world) {
			a := w.member("a")
			for n := range int64(4) { // the first creates the record
				e := election.New(a.client, path, election.WithMetadata(map[string]string{"n": "v"}))
				synctest.Wait()
				m.Path = map[bool]string{true: path + "~term"}[m.Op == zktest.OpGetData]
				w.DropReply(1, m)
				term, err := e.Campaign(t.Context())
				require.NoError(t, err)
				require.Equal(t, n+1, term.Number())
				leader, err := a.Leader(t.Context())
				require.NoError(t, err)
				require.Equal(t, n+1, leader.Number)
				require.NoError(t, term.Resign(t.Context()))
			}
		})
	}
}

func TestAnUpdateIsWrittenBehindOneWhoseOutcomeNobodyAwaited(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		term := m.lead(t)
		old, next := map[string]string{"v": "old"}, map[string]string{"v": "new"}
		require.NoError(t, term.SetMetadata(t.Context(), old))
		late := w.DelayReplies(2*time.Second,
			zktest.Match{Op: zktest.OpMulti, Path: path + "~term", Func: zktest.Request.Writes})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, term.SetMetadata(ctx, next), context.DeadlineExceeded)
		late.Cancel()
		time.Sleep(time.Minute)
		var synced bool
		stop := w.Observe(func(r zktest.Request) {
			synced = synced || r.Op == zktest.OpMulti && !r.Writes()
		})
		require.NoError(t, term.SetMetadata(t.Context(), old))
		stop()
		require.True(t, synced, "the server may lag behind")
		leader, err := m.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, old, leader.Metadata)
	})
}

func TestAWinnerWhoseNodeIsGoneDoesNotLead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		first := a.lead(t)
		won := campaign(t, b.Election)
		line, err := a.Candidates(t.Context())
		require.NoError(t, err)
		require.Len(t, line, 2)
		waiting := line[1].Node
		// b's node and the leader's go at once: b hears of the leader's alone.
		_, err = a.client.Multi(t.Context(), framework.DeleteOp(waiting, -1), framework.DeleteOp(first.Node(), -1))
		require.NoError(t, err)
		second := got(t, won)
		require.NotEqual(t, waiting, second.Node())
		require.NoError(t, second.Err())
		require.EqualValues(t, 2, second.Number())
		_, exists := w.Node(second.Node())
		require.True(t, exists)
	})
}

func TestATermIsNotGrantedWithARecordThatCannotBeRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.lead(t).Resign(t.Context()))
		for _, c := range []struct {
			data string
			want error
		}{{"garbage", framework.ErrBadRecord}, {`{"v":7}`, framework.ErrNewer}} {
			data, want := c.data, c.want
			_, err := a.client.Set(t.Context(), path+"~term", []byte(data), framework.AnyVersion)
			require.NoError(t, err)
			_, err = a.Campaign(t.Context())
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, path+"~term")
			require.Empty(t, w.Children(path))
			node, _ := w.Node(path + "~term")
			require.Equal(t, data, string(node.Data), "it is left as it is")
		}
		b := w.member("b") // a candidate that does not count its terms
		require.NoError(t, b.client.Create(t.Context(), path+"/_c_0-latch-0000000001", nil, framework.Ephemeral))
		_, err := b.Leader(t.Context())
		require.ErrorIs(t, err, framework.ErrNewer)
	})
}

func TestALeaderUpdatesItsMetadata(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		e := election.New(a.client, path, election.WithMetadata(map[string]string{"address": "a:1"}))
		term, err := e.Campaign(t.Context())
		require.NoError(t, err)
		require.Same(t, term, e.Term())
		require.Nil(t, b.Term())
		seen := watch(t.Context(), b.Election)
		synctest.Wait()
		require.Equal(t, map[string]string{"address": "a:1"}, seen.last().Metadata)
		for i, drop := range []bool{false, true, false} {
			if drop {
				w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
			}
			m := map[string]string{"address": "a:2", "i": strings.Repeat("x", i)}
			require.NoError(t, term.SetMetadata(t.Context(), m))
			synctest.Wait()
			require.Equal(t, m, seen.last().Metadata)
			require.EqualValues(t, 1, seen.last().Number)
		}
		before := w.Zxid()
		require.NoError(t, term.SetMetadata(t.Context(), map[string]string{"address": "a:2", "i": "xx"}))
		require.Equal(t, before, w.Zxid(), "nothing to write")
		require.NoError(t, a.client.Delete(t.Context(), path+"~term", framework.AnyVersion))
		require.NoError(t, term.SetMetadata(t.Context(), map[string]string{"address": "a:3"}),
			"an operator has deleted it")
		leader, err := b.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]string{"address": "a:3"}, leader.Metadata)

		require.ErrorContains(t, term.SetMetadata(t.Context(), map[string]string{"": "x"}), "key")
		require.NoError(t, term.Resign(t.Context()))
		require.Nil(t, e.Term())
		require.ErrorIs(t, term.SetMetadata(t.Context(), nil), locks.ErrReleased)
		tb := b.lead(t)
		require.EqualValues(t, 2, tb.Number())
		leader, err = b.Leader(t.Context())
		require.NoError(t, err)
		require.Empty(t, leader.Metadata)
	})
}

func TestAnUpdateOfALeaderThatWasReplacedIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		require.NoError(t, b.client.Delete(t.Context(), term.Node(), framework.AnyVersion))
		next := b.lead(t)
		require.ErrorIs(t, term.SetMetadata(t.Context(), map[string]string{"late": "x"}), framework.ErrNodeGone)
		leader, err := a.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, next.Token(), leader.Token)
		require.Empty(t, leader.Metadata)
	})
}

func TestUpdatesDoNotWaitBeyondTheirContexts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		term := a.lead(t)
		a.link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := make(chan error)
		go func() { first <- term.SetMetadata(t.Context(), map[string]string{"n": "1"}) }()
		synctest.Wait()
		began := time.Now()
		require.ErrorIs(t, term.SetMetadata(ctx, map[string]string{"n": "2"}), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		a.link.Heal()
		require.NoError(t, <-first)
		require.NoError(t, term.SetMetadata(t.Context(), nil))
	})
}

func TestCandidatesTellOfThemselvesWhileTheyWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		meta := map[string]string{"address": "b:1"}
		e := election.New(b.client, path, election.WithMetadata(meta), election.WithPriority(0, 0))
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error)
		go func() { _, err := e.Campaign(ctx); waiting <- err }()
		synctest.Wait()
		plain := campaign(t, w.member("c").Election)
		all, err := a.Candidates(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 3)
		require.EqualValues(t, 1, all[0].Number)
		require.Equal(t, meta, all[1].Metadata)
		require.Empty(t, all[2].Metadata)

		s, err := b.client.Session(t.Context()) // told again on the next session
		require.NoError(t, err)
		require.NoError(t, w.Expire(s.ID()))
		time.Sleep(timeout)
		all, err = a.Candidates(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 3)
		require.Equal(t, meta, all[2].Metadata)

		cancel()
		require.ErrorIs(t, got(t, waiting), context.Canceled)
		synctest.Wait()
		require.Empty(t, w.Children(path+"~waiting"))
		require.NoError(t, term.Resign(t.Context()))
		require.NoError(t, got(t, plain).Err())
	})
}

func TestAWaitingCandidatesMetadataGoesOverIntoItsTerm(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		term := a.lead(t)
		meta := map[string]string{"address": "b:1"}
		won := campaign(t, election.New(b.client, path, election.WithMetadata(meta)))
		require.Len(t, w.Children(path+"~waiting"), 1)
		require.NoError(t, term.Resign(t.Context()))
		require.NoError(t, got(t, won).Err())
		synctest.Wait()
		require.Empty(t, w.Children(path+"~waiting"))
		leader, err := a.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, meta, leader.Metadata)
	})
}

func TestAPermanentErrorEndsLead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		why := errors.New("no such table")
		calls := 0
		err := a.Lead(t.Context(), func(context.Context, *election.Term) error {
			calls++
			return election.Permanent(why)
		})
		require.ErrorIs(t, err, why)
		require.Equal(t, "lead "+path+": no such table", err.Error())
		require.Equal(t, 1, calls)
		require.Empty(t, w.Children(path))
		require.NoError(t, election.Permanent(nil))
	})
}

func TestResignWithinLeadWaitsForTheFunction(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		won := campaign(t, b.Election)
		_ = won
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		require.NoError(t, got(t, won).Resign(t.Context()))
		var returned time.Time
		go func() {
			_ = a.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				require.NoError(t, term.Resign(ctx))
				require.ErrorIs(t, context.Cause(ctx), locks.ErrReleased)
				time.Sleep(time.Second)
				returned = time.Now()
				return nil
			})
		}()
		synctest.Wait()
		b.lead(t)
		require.Equal(t, returned, time.Now())
	})
}

// TestNextTermBeginsBehindLateGuardedWrites: a guarded write of a leader is on its way on another
// client when the leader resigns, and the server refuses the deletion of its node at first. The
// next candidate of the same process leads when the node is gone.
func TestNextTermBeginsBehindLateGuardedWrites(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		s, err := a.client.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, a.client.Create(t.Context(), "/x", nil, framework.Persistent))
		first := a.lead(t)
		next := campaign(t, a.Election)
		b.link.BlackHole(true, false)
		late := make(chan error, 1)
		go func() {
			_, err := b.client.Multi(t.Context(), first.Guard(),
				framework.SetOp("/x", []byte("former"), framework.AnyVersion))
			late <- err
		}()
		synctest.Wait()
		w.Throttle(1, zktest.Match{Op: zktest.OpDelete, Session: s.ID()})
		go func() { _ = first.Resign(t.Context()) }()
		synctest.Wait()
		require.Empty(t, next)
		b.link.Heal()
		require.NoError(t, got(t, late))
		term := got(t, next)
		_, err = a.client.Multi(t.Context(), term.Guard(), framework.SetOp("/x", []byte("next"), framework.AnyVersion))
		require.NoError(t, err)
		data, _, err := a.client.Get(t.Context(), "/x")
		require.NoError(t, err)
		require.Equal(t, "next", string(data))
		require.NoError(t, term.Resign(t.Context()))
	})
}
