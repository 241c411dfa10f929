package members_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMembersJoinAndLeave(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.peer("a"), w.peer("b")
		require.Equal(t, path, a.Path())
		none, err := a.Inspect(t.Context())
		require.NoError(t, err)
		require.Empty(t, none.Members)
		seen := w.peer("o").watch(t.Context())
		synctest.Wait()
		require.Equal(t, ": ", seen.last())

		first, err := a.Join(t.Context(), "a",
			members.Info{Metadata: map[string]string{"zone": "x"}, Version: "1.4", Load: 2.5})
		require.NoError(t, err)
		require.Equal(t, "a", first.ID())
		synctest.Wait()
		require.Equal(t, "a: joined a", seen.last())
		second := b.join("b")
		synctest.Wait()
		require.Equal(t, "a b: joined b", seen.last())
		m := b.member("a")
		require.Equal(t, members.Info{Metadata: map[string]string{"zone": "x"}, Version: "1.4", Load: 2.5}, m.Info)
		require.Equal(t, members.Active, m.State)
		require.WithinDuration(t, time.Now(), m.Joined, time.Second)
		require.Equal(t, a.sessionID(), m.Session)
		require.Equal(t, path, m.Node[:len(path)])

		require.NoError(t, first.Leave(t.Context()))
		require.NoError(t, first.Leave(t.Context()))
		require.Len(t, w.Children(path), 1, "gone when Leave returns")
		require.ErrorIs(t, first.Update(t.Context(), func(*members.Info) {}), members.ErrLeft)
		synctest.Wait()
		require.Equal(t, "b: left a", seen.last())
		require.NoError(t, second.Leave(t.Context()))
		synctest.Wait()
		require.Equal(t, ": left b", seen.last())
		time.Sleep(3 * time.Minute) // the directory is removed
		a.join("again")
		synctest.Wait()
		require.Equal(t, "again: joined again", seen.last())
		require.Equal(t, 6, seen.count(), "each change makes one view")
	})
}

func TestAMemberJoinsAgainOnItsNextSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		m := a.join("a")
		seen := o.watch(t.Context())
		a.Link.Cut()
		time.Sleep(2 * timeout)
		require.Equal(t, ": left a", seen.last())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.Update(ctx, func(i *members.Info) { i.Load = 7 }), context.DeadlineExceeded)
		a.Link.Heal()
		time.Sleep(2 * timeout)
		require.Equal(t, "a: joined a", seen.last())
		require.Equal(t, 7.0, o.member("a").Info.Load, "the latest description")

		require.NoError(t, a.Client.Delete(t.Context(), o.member("a").Node, framework.AnyVersion))
		time.Sleep(timeout)
		require.Contains(t, []string{"a: joined a", "a: rejoined a"}, seen.last(),
			"another client deleted its node; the watch may see it and the next one in one view")
		require.NoError(t, a.Client.Close(t.Context()))
		time.Sleep(time.Second)
		require.Equal(t, ": left a", seen.last())
		require.ErrorIs(t, m.Update(t.Context(), func(*members.Info) {}), framework.ErrClosed)
		_, err := a.Join(t.Context(), "a", members.Info{})
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

// TestAMemberWhoseNodeIsDeletedNowAndThenJoinsAgainAtOnce: the pauses grow only while it fails
// again and again.
func TestAMemberWhoseNodeIsDeletedNowAndThenJoinsAgainAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		a.join("a")
		for range 10 {
			require.NoError(t, a.Client.Delete(t.Context(), a.member("a").Node, framework.AnyVersion))
			time.Sleep(time.Second)
			a.member("a")
			time.Sleep(time.Minute)
		}
	})
}

// TestAFormerSessionShowsNothing: the servers keep a session that its client has given up, because
// they were restarted meanwhile. No view shows the member's description of that session, neither
// beside the present one nor after the member has left.
func TestAFormerSessionShowsNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		m := a.join("a")
		require.NoError(t, m.Update(t.Context(), func(i *members.Info) { i.Load = 1 }))
		seen := o.watch(t.Context())
		former := a.sessionID()
		a.Link.Cut()
		time.Sleep(timeout - time.Second)
		w.Restart()
		time.Sleep(2 * time.Second)
		a.Link.Heal()
		require.NoError(t, m.Update(t.Context(), func(i *members.Info) { i.Load = 2 }))
		require.NotEqual(t, former, a.sessionID())
		require.True(t, slices.ContainsFunc(w.Sessions(), func(s zktest.Session) bool { return s.ID == former }),
			"it has not ended")
		listed := o.member("a")
		require.Equal(t, 2.0, listed.Info.Load)
		require.Zero(t, listed.Others)
		time.Sleep(time.Second)
		require.Equal(t, 2.0, seen.view().Members[0].Info.Load)
		require.NoError(t, m.Leave(t.Context()))
		synctest.Wait()
		require.Equal(t, ": left a", seen.last())
		time.Sleep(3 * timeout)
		require.Equal(t, ": left a", seen.last())
	})
}

// TestLeaveDeletesTheNodeOfAFormerSession: the member leaves right after it has joined again, while
// the servers still have its former node.
func TestLeaveDeletesTheNodeOfAFormerSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		m := a.join("a")
		a.Link.Cut()
		time.Sleep(timeout - time.Second)
		w.Restart()
		time.Sleep(2 * time.Second)
		busy := w.Throttle(100, zktest.Match{Op: zktest.OpDelete}) // that of the former node
		a.Link.Heal()
		<-busy.Hit()
		left := make(chan error, 1)
		go func() { left <- m.Leave(t.Context()) }()
		synctest.Wait()
		busy.Cancel()
		require.NoError(t, <-left)
		view, err := o.Inspect(t.Context())
		require.NoError(t, err)
		require.Empty(t, view.Members)
	})
}

// TestANodeThatWasCreatedWithoutAnAnswerShowsNothing: the session on which a member has joined ends
// before the servers' answer arrives, and its node stays for a while.
func TestANodeThatWasCreatedWithoutAnAnswerShowsNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		former := a.sessionID()
		// the first one finds no directory
		lost := w.DropReply(2, zktest.Match{Op: zktest.OpMulti, Path: path + "/", Func: zktest.Request.Writes})
		go func() {
			<-lost.Hit()
			a.Link.Cut()
		}()
		ended := make(chan error, 1)
		var m *members.Membership
		go func() {
			var err error
			m, err = a.Join(t.Context(), "a", members.Info{Load: 1})
			ended <- err
		}()
		time.Sleep(timeout - time.Second)
		require.Len(t, w.Children(path), 1, "it was created")
		w.Restart()
		time.Sleep(2 * time.Second)
		a.Link.Heal()
		require.NoError(t, <-ended)
		require.NotEqual(t, former, a.sessionID())
		require.Len(t, w.Children(path), 1)
		require.Zero(t, o.member("a").Others)
		require.NoError(t, m.Leave(t.Context()))
		require.Empty(t, w.Children(path))
	})
}

func TestAMemberIsListedOnceAndLeavesNoNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpCreate, zktest.OpCreateContainer} {
			w.DropReply(1, zktest.Match{Op: op})
			m, err := a.Join(t.Context(), "a", members.Info{})
			require.NoError(t, err)
			require.Len(t, w.Children(path), 1)
			w.DropReply(1, zktest.Match{Op: zktest.OpDelete})
			require.NoError(t, m.Leave(t.Context()))
			require.Empty(t, w.Children(path))
		}
		a.Link.BlackHole(false, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Join(ctx, "a", members.Info{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.Link.Heal()
		time.Sleep(timeout)
		require.Empty(t, w.Children(path))

		m := a.join("a")
		a.Link.Cut()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, m.Leave(ctx), framework.ErrUnconfirmed)
		require.Equal(t, time.Second, time.Since(began))
		a.Link.Heal()
		time.Sleep(timeout)
		require.Empty(t, w.Children(path))
	})
}

// TestUpdatesSurviveLostReplies, and a node that another client overwrites.
func TestUpdatesSurviveLostReplies(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpGetData, zktest.OpCreate} {
		for nth := 1; nth <= 3; nth++ {
			in(t, func(t *testing.T, w *world) {
				a, o := w.peer("a"), w.peer("o")
				m := a.join("a")
				seen := o.watch(t.Context())
				synctest.Wait()
				fault := w.DropReply(nth, zktest.Match{Op: op})
				defer fault.Cancel()
				for n := 1; n <= 4; n++ {
					require.NoError(t, m.Update(t.Context(), func(i *members.Info) {
						i.Load, i.Metadata = float64(n),
							map[string]string{"n": fmt.Sprint(n)}
					}))
					require.Equal(t, float64(n), m.Info().Load)
					require.Equal(t, float64(n), o.member("a").Info.Load, "the servers have it when Update returns")
				}
				_, err := o.Client.Set(t.Context(), o.member("a").Node, []byte(`{"v":1,"id":"b"}`),
					framework.AnyVersion)
				require.NoError(t, err)
				time.Sleep(timeout)
				require.Equal(t, "a: changed a", seen.last(), "the member overwrites what another client has written")
				require.Equal(t, 4.0, o.member("a").Info.Load)
			})
		}
	}
}

// TestConcurrentUpdatesAllCount: each update changes the result of the one before.
func TestConcurrentUpdatesAllCount(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		m := a.join("a")
		errs := make(chan error)
		for range 50 {
			go func() { errs <- m.Update(t.Context(), func(i *members.Info) { i.Load++ }) }()
		}
		for range 50 {
			require.NoError(t, <-errs)
		}
		require.Equal(t, 50.0, a.member("a").Info.Load)
	})
}

// TestAPanicInAnUpdateIsHarmless: a handler of net/http writes to a nil map, and its server goes
// on.
func TestAPanicInAnUpdateIsHarmless(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		m := a.join("a")
		require.Panics(t, func() {
			_ = m.Update(t.Context(),
				func(i *members.Info) { i.Load, i.Metadata["zone"] = 7, "b" })
		})
		require.Zero(t, m.Info().Load)
		require.NoError(t, m.Update(t.Context(), func(i *members.Info) { i.Load = m.Info().Load + 1 }),
			"the function may call Info")
		require.Equal(t, 1.0, a.member("a").Info.Load)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, m.Update(t.Context(), func(i *members.Info) {
			require.ErrorIs(t, m.Update(ctx, func(i *members.Info) { i.Load = 9 }), context.DeadlineExceeded,
				"functions are called one after the other")
			i.Load++
		}))
		require.Equal(t, 2.0, a.member("a").Info.Load)
	})
}

// TestRefusedJoinsLeaveNothingToDelete: a quota keeps a member from joining on its next session for
// hours.
func TestRefusedJoinsLeaveNothingToDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{zktest.Start(t, zktest.WithEnforcedQuotas()), t}
		a, o := w.peer("a"), w.peer("o")
		a.join("a")
		raise := o.limit("countHardLimit", 1)
		require.NoError(t, w.Expire(a.sessionID()))
		time.Sleep(6 * time.Hour)
		require.Empty(t, w.Children(path))
		deletes := w.Requests()[zktest.OpDelete]
		raise(100)
		time.Sleep(time.Minute)
		o.member("a")
		require.LessOrEqual(t, w.Requests()[zktest.OpDelete]-deletes, int64(1),
			"only the node of the former session may be left")
	})
}

func TestForeignMembersAreShownByTheirNames(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		require.NoError(t, a.Client.MakeDirs(t.Context(), path))
		require.NoError(t, a.Client.Create(t.Context(), path+"/java-1", []byte("payload"), framework.Ephemeral))
		require.NoError(t, a.Client.Create(t.Context(), path+"/later", []byte(`{"v":9,"id":"x","load":3,"new":true}`),
			framework.Ephemeral))
		require.NoError(t, a.Client.Create(t.Context(), path+"/null", nil, framework.Ephemeral))
		require.Equal(t, path+"/java-1", a.member("java-1").Node)
		require.Equal(t, 3.0, a.member("x").Info.Load, "the fields of a newer release's record that this one knows")
		require.Equal(t, path+"/null", a.member("null").Node)
	})
}

func TestBadMembersAreRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.peer("a").Client
		ok := members.New(c, path)
		join := func(g *members.Group, id string, i members.Info, opts ...members.JoinOption) func() error {
			return func() error { _, err := g.Join(t.Context(), id, i, opts...); return err }
		}
		for says, do := range map[string]func() error{
			"client is nil": join(members.New(nil, path), "a", members.Info{}),
			"the root":      join(members.New(c, "/"), "a", members.Info{}),
			"invalid path":  join(members.New(c, "x"), "a", members.Info{}),
			"id is empty":   join(ok, "", members.Info{}),
			"at most 1024":  join(ok, strings.Repeat("x", 1025), members.Info{}),
			"key of \"v\"":  join(ok, "a", members.Info{Metadata: map[string]string{"": "v"}}),
			"not UTF-8":     join(ok, "a", members.Info{Metadata: map[string]string{"k": "\xff"}}),
			"the version":   join(ok, "a", members.Info{Version: "\xff"}),
			"be finite":     join(ok, "a", members.Info{Load: math.Inf(1)}),
			"at most 65536": join(ok, "a", members.Info{Metadata: map[string]string{"k": strings.Repeat("x", 65<<10)}}),
			"WithDrain":     join(ok, "a", members.Info{}, members.WithDrain(nil)),
			"a reason":      func() error { return ok.Cordon(t.Context(), "a", members.WithReason("\xff")) },
			"the id is":     func() error { return ok.Uncordon(t.Context(), "") },
		} {
			require.ErrorContains(t, do(), says)
		}
		_, err := members.New(nil, path).Inspect(t.Context())
		require.ErrorContains(t, err, "client is nil")
		for _, err := range members.New(nil, path).Follow(t.Context()) {
			require.ErrorContains(t, err, "client is nil")
		}
		require.ErrorIs(t, ok.Cordon(t.Context(), "nobody"), framework.ErrNotFound)
		require.ErrorIs(t, ok.Drain(t.Context(), "nobody"), framework.ErrNotFound)
		require.NoError(t, ok.Uncordon(t.Context(), "nobody"))
		m, err := ok.Join(t.Context(), "a", members.Info{})
		require.NoError(t, err)
		defer m.Leave(context.Background())
		require.ErrorIs(t, m.Update(t.Context(), func(i *members.Info) { i.Load = math.NaN() }), framework.ErrInvalid)
		require.Zero(t, m.Info().Load)
		require.Len(t, w.Children(path), 1)
	})
}
