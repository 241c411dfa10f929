package members_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/zktest"
)

// drained is a drain function that returns when the test sends to end, or when its context ends.
type drained struct {
	began chan members.Cordon
	end   chan error
	ended chan error // the cause of the context's end
}

func newDrained() *drained {
	return &drained{make(chan members.Cordon, 10), make(chan error), make(chan error, 10)}
}

func (d *drained) option() members.JoinOption {
	return members.WithDrain(func(ctx context.Context, c members.Cordon) error {
		d.began <- c
		select {
		case err := <-d.end:
			return err
		case <-ctx.Done():
			d.ended <- context.Cause(ctx)
			return nil // the drain was withdrawn: this is no acknowledgement
		}
	})
}

// drain calls Drain in the background.
func (p *peer) drain(id string, opts ...members.CordonOption) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Drain(p.t.Context(), id, opts...) }()
	return done
}

// isOpen reports whether a call in the background has not returned yet. It takes the call's result
// if it has.
func isOpen(c <-chan error) bool {
	synctest.Wait()
	select {
	case <-c:
		return false
	default:
		return true
	}
}

func TestACordonIsAcknowledged(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		m := a.join("a")
		require.NoError(t, m.Healthy(t.Context()))
		_, cordoned := m.Cordon()
		require.False(t, cordoned)
		require.NoError(t, o.Cordon(t.Context(), "a", members.WithReason("new disk")))
		require.NoError(t, o.Cordon(t.Context(), "a", members.WithReason("again")))
		synctest.Wait()
		require.ErrorContains(t, m.Healthy(t.Context()), "the member is cordoned")
		require.ErrorContains(t, m.Healthy(t.Context()), "new disk")
		c, cordoned := m.Cordon()
		require.True(t, cordoned)
		require.Equal(t, "o", c.By)
		require.False(t, c.Drain)
		got := o.member("a")
		require.Equal(t, members.Cordoned, got.State)
		require.Equal(t, "new disk", got.Cordon.Reason)
		require.WithinDuration(t, time.Now(), got.Cordon.Since, time.Second)
		require.NoError(t, o.Uncordon(t.Context(), "a"))
		synctest.Wait()
		require.NoError(t, m.Healthy(t.Context()))
		require.Equal(t, members.Active, o.member("a").State)
	})
}

// TestAnUncordonThatIsRepeatedRemovesNoOtherCordon: the first try has removed the cordon, its reply
// is lost, and another operator cordons the member before the second try.
func TestAnUncordonThatIsRepeatedRemovesNoOtherCordon(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.peer("a").join("a")
		o, p := w.peer("o"), w.peer("p")
		require.NoError(t, o.Cordon(t.Context(), "a", members.WithReason("first")))
		synctest.Wait()
		lost := w.DropReply(1,
			zktest.Match{Op: zktest.OpMulti, Session: o.sessionID(), Func: zktest.Request.Writes})
		defer lost.Cancel()
		done := make(chan error, 1)
		go func() { done <- o.Uncordon(t.Context(), "a") }()
		<-lost.Hit()
		o.Link.Cut()
		require.True(t, isOpen(done))
		require.Nil(t, p.member("a").Cordon, "it was removed")
		require.NoError(t, p.Cordon(t.Context(), "a", members.WithReason("second")))
		o.Link.Heal()
		require.NoError(t, <-done)
		require.NotNil(t, p.member("a").Cordon)
		require.Equal(t, "second", p.member("a").Cordon.Reason)
		require.NoError(t, o.Uncordon(t.Context(), "a"))
		require.Nil(t, p.member("a").Cordon)
	})
}

// TestADrainThatIsRepeatedAfterAnUncordonDrainsAgain: the first try has written the request, its
// reply is lost, and the member has answered and was uncordoned before the second try. The second
// try makes a new request, which the former answer does not fit.
func TestADrainThatIsRepeatedAfterAnUncordonDrainsAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o, p := w.peer("a"), w.peer("o"), w.peer("p")
		d := newDrained()
		a.join("a", d.option())
		synctest.Wait()
		lost := w.DropReply(1,
			zktest.Match{Op: zktest.OpMulti, Session: o.sessionID(), Func: zktest.Request.Writes})
		defer lost.Cancel()
		done := o.drain("a")
		<-lost.Hit()
		o.Link.Cut()
		<-d.began
		d.end <- nil
		require.NoError(t, p.Drain(t.Context(), "a"))
		require.NoError(t, p.Uncordon(t.Context(), "a"))
		o.Link.Heal()
		<-d.began
		synctest.Wait()
		require.Equal(t, members.Draining, p.member("a").State, "the answer to a withdrawn request is none to this one")
		d.end <- nil
		require.NoError(t, <-done)
	})
}

// TestALateUncordonRemovesNoLaterCordon: a follower passes the delete on to the leader when the
// cordon was removed and made again, with the same version.
func TestALateUncordonRemovesNoLaterCordon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{zktest.Start(t, zktest.WithFollowers()), t}
		o, p := w.peer("o"), w.peer("p")
		require.NoError(t, o.Cordon(t.Context(), "a", members.WithAbsentMember(), members.WithReason("first")))
		hold, err := w.Follower(o.sessionID())
		require.NoError(t, err)
		slow := w.DelayReplies(time.Second,
			zktest.Match{Op: zktest.OpExists, Session: o.sessionID(), Path: path + "/_cordon_a"})
		defer slow.Cancel()
		done := make(chan error, 1)
		go func() { done <- o.Uncordon(t.Context(), "a") }()
		<-slow.Hit()
		hold(true, false)
		time.Sleep(1500 * time.Millisecond) // the answer to its read has come, and it has sent the delete
		require.NoError(t, p.Uncordon(t.Context(), "a"))
		require.NoError(t, p.Cordon(t.Context(), "a", members.WithAbsentMember(), members.WithReason("second")))
		slow.Cancel()
		hold(false, false)
		require.NoError(t, <-done)
		view, err := p.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, view.Cordons, 1)
		require.Equal(t, "second", view.Cordons[0].Reason)
	})
}

func TestACordonOutlivesItsMember(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		require.NoError(t, o.Cordon(t.Context(), "a/b c", members.WithAbsentMember()))
		m := a.join("a/b c")
		require.ErrorContains(t, m.Healthy(t.Context()), "the member is cordoned",
			"the member knows its cordon when Join returns")
		synctest.Wait()
		require.Equal(t, members.Cordoned, o.member("a/b c").State)
		require.NoError(t, w.Expire(a.sessionID()))
		time.Sleep(timeout)
		require.Equal(t, members.Cordoned, o.member("a/b c").State, "the next session answers")
		require.NoError(t, m.Leave(t.Context()))
		time.Sleep(time.Minute)
		require.ErrorContains(t, w.peer("b").join("a/b c").Healthy(t.Context()), "the member is cordoned",
			"the next process knows it, too")
	})
}

// TestAMemberIsListedAfterItKnowsItsCordon: a client that sees the member in a list may rely on
// that it knows its cordon.
func TestAMemberIsListedAfterItKnowsItsCordon(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		require.NoError(t, w.peer("o").Cordon(t.Context(), "a", members.WithAbsentMember()))
		a.sessionID()
		began, listed := time.Now(), time.Duration(-1)
		stop := w.Observe(func(r zktest.Request) {
			for _, part := range append(r.Parts, r) {
				if strings.Contains(part.Result, "member") && listed < 0 {
					listed = time.Since(began)
				}
			}
		})
		defer stop()
		slow := w.DelayReplies(time.Second, zktest.Match{Path: path + "/_cordon_"})
		defer slow.Cancel()
		a.join("a")
		require.GreaterOrEqual(t, listed, time.Second)
	})
}

func TestADrainIsAcknowledgedWhenItHasEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		d := newDrained()
		m := a.join("a", d.option())
		require.NoError(t, o.Cordon(t.Context(), "a", members.WithReason("new kernel")))
		done := o.drain("a")
		c := <-d.began
		require.True(t, c.Drain)
		require.Equal(t, "new kernel", c.Reason)
		require.ErrorContains(t, m.Healthy(t.Context()), "the member is cordoned",
			"it is cordoned before it is drained")
		also := w.peer("p").drain("a")
		time.Sleep(time.Hour)
		require.True(t, isOpen(done))
		require.Equal(t, members.Draining, o.member("a").State)
		d.end <- nil
		require.NoError(t, <-done)
		require.NoError(t, <-also)
		require.Equal(t, members.Drained, o.member("a").State)
		require.NoError(t, o.Drain(t.Context(), "a"), "it is drained")
		require.Empty(t, d.began, "the function was called once")

		require.NoError(t, m.Leave(t.Context()))
		require.NoError(t, o.Drain(t.Context(), "a"), "it was drained before it left")
	})
}

func TestADrainThatFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		d := newDrained()
		a.join("a", d.option())
		done := o.drain("a")
		<-d.began
		d.end <- errors.New("a call hangs")
		err := <-done
		require.ErrorIs(t, err, members.ErrDrainFailed)
		var failed *members.DrainError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, members.DrainError{ID: "a", Reason: "a call hangs"}, *failed)
		require.Equal(t, members.Failed, o.member("a").State)
		done = o.drain("a")
		<-d.began
		d.end <- nil
		require.NoError(t, <-done, "the second time")

		a.join("b")
		require.ErrorContains(t, o.Drain(t.Context(), "b"), "WithDrain")
	})
}

func TestADrainThatIsWithdrawn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		d := newDrained()
		m := a.join("a", d.option())
		done := o.drain("a")
		<-d.began
		require.NoError(t, o.Uncordon(t.Context(), "a"))
		require.ErrorIs(t, <-done, members.ErrWithdrawn)
		require.ErrorIs(t, <-d.ended, members.ErrWithdrawn)
		synctest.Wait()
		require.NoError(t, m.Healthy(t.Context()))
		require.Equal(t, members.Active, o.member("a").State)

		done = o.drain("a")
		<-d.began
		synctest.Wait()
		require.Equal(t, members.Draining, o.member("a").State, "the end of the former one does not count")
		require.True(t, isOpen(done))
		d.end <- nil
		require.NoError(t, <-done)
	})
}

// TestASessionIsLostDuringADrain: the drain function goes on, and the member answers on its next
// session.
func TestASessionIsLostDuringADrain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		d := newDrained()
		a.join("a", d.option())
		done := o.drain("a")
		<-d.began
		a.Link.Cut()
		require.NoError(t, w.Expire(a.sessionID()))
		time.Sleep(time.Second)
		require.True(t, isOpen(done), "the member may join again on another session")
		a.Link.Heal()
		time.Sleep(timeout / 2)
		require.True(t, isOpen(done))
		a.Link.Cut()
		d.end <- nil
		time.Sleep(timeout / 2)
		require.True(t, isOpen(done), "the answer was not written")
		a.Link.Heal()
		require.NoError(t, <-done)
		require.Empty(t, d.began, "the function was called once")
		require.NoError(t, w.Expire(a.sessionID()))
		time.Sleep(timeout)
		require.Equal(t, members.Drained, o.member("a").State, "each session answers")
	})
}

// TestAMemberDiesDuringADrain: Drain returns ErrLeft, since the process may still run. Another
// process with the ID must answer, too.
func TestAMemberDiesDuringADrain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		first, second := newDrained(), newDrained()
		a.join("a", first.option())
		done := o.drain("a")
		<-first.began
		a.Link.Cut()
		began := time.Now()
		require.ErrorIs(t, <-done, members.ErrLeft)
		require.GreaterOrEqual(t, time.Since(began), 2*timeout-time.Second,
			"the member may join again on another session")
		done = o.drain("a")
		b := w.peer("b")
		b.join("a", second.option())
		<-second.began
		require.True(t, isOpen(done))
		a.Link.Heal()
		time.Sleep(timeout)
		first.end <- nil
		require.True(t, isOpen(done), "both processes have the ID, and both must answer")
		require.Equal(t, members.Draining, o.member("a").State)
		second.end <- nil
		require.NoError(t, <-done)
	})
}

// TestAMemberJoinsAgainWhileDrainIsCutOff: the caller of Drain has seen the group without the
// member, and has no connection while the member joins again.
func TestAMemberJoinsAgainWhileDrainIsCutOff(t *testing.T) {
	for _, acknowledges := range []bool{false, true} {
		in(t, func(t *testing.T, w *world) {
			a, o := w.peer("a"), w.peer("o")
			d := newDrained()
			m := a.join("a", d.option())
			done := o.drain("a")
			<-d.began
			a.Link.Cut()
			require.NoError(t, w.Expire(a.sessionID()))
			time.Sleep(time.Second)
			o.Link.Cut()
			a.Link.Heal()
			time.Sleep(timeout / 2)
			require.Equal(t, members.Draining, w.peer("b").member("a").State, "it has joined again")
			if acknowledges { // and leaves
				d.end <- nil
				synctest.Wait()
				require.NoError(t, m.Leave(t.Context()))
			}
			time.Sleep(timeout)
			require.True(t, isOpen(done))
			o.Link.Heal()
			time.Sleep(timeout)
			if !acknowledges {
				require.True(t, isOpen(done), "the member is listed")
				d.end <- nil
			}
			require.NoError(t, <-done)
		})
	}
}

// TestALostReplyOfADrain: any reply may be lost. The drain function is called once, and Drain
// returns when it has ended.
func TestALostReplyOfADrain(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpGetData, zktest.OpGetChildren2} {
		for nth := 1; nth <= 4; nth++ {
			in(t, func(t *testing.T, w *world) {
				a, o := w.peer("a"), w.peer("o")
				d := newDrained()
				a.join("a", d.option())
				synctest.Wait()
				fault := w.DropReply(nth, zktest.Match{Op: op})
				defer fault.Cancel()
				done := o.drain("a")
				<-d.began
				d.end <- nil
				require.NoError(t, <-done)
				require.Empty(t, d.began)
				require.NoError(t, o.Uncordon(t.Context(), "a"))
				synctest.Wait()
				require.Equal(t, members.Active, o.member("a").State)
			})
		}
	}
}

func TestACallOfDrainEndsWithItsContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		d := newDrained()
		m := a.join("a", d.option())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, o.Drain(ctx, "a"), context.DeadlineExceeded)
		<-d.began
		require.Equal(t, members.Draining, o.member("a").State, "the request stands")
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.NoError(t, m.Leave(ctx))
		require.Equal(t, time.Second, time.Since(began), "Leave waits for the drain function")
		require.ErrorIs(t, <-d.ended, members.ErrLeft)
		require.ErrorIs(t, o.Drain(t.Context(), "a"), members.ErrLeft)
	})
}

// TestAMemberLeavesDuringADrain: Leave waits until the drain function has returned and the servers
// have the answer. A server of HTTP does so: Shutdown makes Serve return, and main leaves.
func TestAMemberLeavesDuringADrain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		d := newDrained()
		m := a.join("a", d.option())
		done := o.drain("a")
		<-d.began
		left := make(chan error, 1)
		go func() { left <- m.Leave(t.Context()) }()
		time.Sleep(time.Minute)
		require.True(t, isOpen(left), "the drain function runs")
		require.Empty(t, d.ended, "its context has not ended")
		require.Equal(t, members.Draining, o.member("a").State)
		a.Link.Cut()
		d.end <- nil
		time.Sleep(timeout / 2)
		require.True(t, isOpen(left), "the servers have no answer")
		a.Link.Heal()
		require.NoError(t, <-left)
		require.NoError(t, <-done)
		require.Equal(t, []string{"_cordon_a"}, w.Children(path))
	})
}

// TestAMemberLeavesDuringADrainThatIsWithdrawn: Leave waits no longer than the drain stands.
func TestAMemberLeavesDuringADrainThatIsWithdrawn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		d := newDrained()
		m := a.join("a", d.option())
		done := o.drain("a")
		<-d.began
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		left := make(chan error, 1)
		go func() { left <- m.Leave(ctx) }()
		require.True(t, isOpen(left))
		require.NoError(t, o.Uncordon(t.Context(), "a"))
		time.Sleep(time.Second)
		require.False(t, isOpen(left))
		require.ErrorIs(t, <-d.ended, members.ErrWithdrawn)
		require.ErrorIs(t, <-done, members.ErrWithdrawn)
		require.Empty(t, w.Children(path))
	})
}

// TestAMemberLeavesThoughItsAnswerIsRefused: it may not write the cordon, and Leave has no
// deadline.
func TestAMemberLeavesThoughItsAnswerIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		d := newDrained()
		m := a.join("a", d.option())
		operator := w.Member(t, "o",
			framework.Config{SessionTimeout: timeout,
				Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("o:secret")}},
				ACL: []framework.ACL{{Perms: framework.PermAll, Scheme: "auth"},
					{Perms: framework.PermRead, Scheme: "world", ID: "anyone"}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() { _ = members.New(operator.Client, path).Drain(ctx, "a") }()
		<-d.began
		d.end <- nil
		left := make(chan error, 1)
		go func() { left <- m.Leave(t.Context()) }()
		time.Sleep(time.Minute)
		require.False(t, isOpen(left))
		cancel()
		synctest.Wait()
	})
}

// TestAMemberStaysThoughItsAnswerIsRefused: everybody may read the operator's node, and only the
// operator may write it. The member keeps to the cordon, stays listed and warns once.
func TestAMemberStaysThoughItsAnswerIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		log := new(logtest.Buffer)
		c := w.Member(t, "a", framework.Config{SessionTimeout: timeout},
			framework.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		a := &peer{members.New(c.Client, path), c, t}
		m := a.join("a")
		seen := w.peer("o").watch(t.Context())
		synctest.Wait()
		operator := w.Member(t, "p",
			framework.Config{SessionTimeout: timeout,
				Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("p:secret")}},
				ACL: []framework.ACL{{Perms: framework.PermAll, Scheme: "auth"},
					{Perms: framework.PermRead, Scheme: "world", ID: "anyone"}}})
		require.NoError(t, members.New(operator.Client, path).Cordon(t.Context(), "a"))
		time.Sleep(10 * time.Minute)
		require.ErrorContains(t, m.Healthy(t.Context()), "the member is cordoned")
		require.Equal(t, members.Cordoning, a.member("a").State)
		require.Equal(t, "a: changed a", seen.last(), "it was cordoned")
		require.Equal(t, 2, seen.count(), "it has not left")
		require.Equal(t, 1, strings.Count(log.String(), "refuse a member's answer"))
		require.NoError(t, m.Update(t.Context(), func(i *members.Info) { i.Load = 3 }))
		require.Equal(t, 3.0, a.member("a").Info.Load, "its description does not depend on the answer")
		require.NoError(t, members.New(operator.Client, path).Uncordon(t.Context(), "a"))
		synctest.Wait()
		require.NoError(t, m.Healthy(t.Context()))
	})
}

// TestARefusedAnswerIsTriedAgain: a quota leaves no room for the answer until an operator raises
// it.
func TestARefusedAnswerIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{zktest.Start(t, zktest.WithEnforcedQuotas()), t}
		a, o := w.peer("a"), w.peer("o")
		a.join("a")
		a.Link.Cut()
		require.NoError(t, o.Cordon(t.Context(), "a"))
		raise := o.limit("byteHardLimit", 10)
		a.Link.Heal()
		time.Sleep(10 * time.Minute)
		require.Equal(t, members.Cordoning, o.member("a").State)
		raise(1000)
		time.Sleep(61 * time.Second)
		require.Equal(t, members.Cordoned, o.member("a").State)
	})
}

// TestAnAnswerIsWrittenOnce: records hold only UTF-8, and short errors. The text of a drain's error
// that has something else is stored without that, and the member is done then.
func TestAnAnswerIsWrittenOnce(t *testing.T) {
	for text, reason := range map[string]string{
		"cannot remove /srv/caf\xe9":          "cannot remove /srv/caf\uFFFD",
		"x" + strings.Repeat("\u00e4", 4<<10): "x" + strings.Repeat("\u00e4", 2047),
	} {
		in(t, func(t *testing.T, w *world) {
			a, o := w.peer("a"), w.peer("o")
			a.join("a", members.WithDrain(func(context.Context, members.Cordon) error { return errors.New(text) }))
			session := a.sessionID()
			writes := make(chan zktest.Request, 100) // a member that repeats its answer never comes to rest
			stop := w.Observe(func(r zktest.Request) {
				if r.Session == session && r.Op == zktest.OpMulti && r.Writes() {
					writes <- r
				}
			})
			defer stop()
			var failed *members.DrainError
			require.ErrorAs(t, o.Drain(t.Context(), "a"), &failed)
			require.Equal(t, reason, failed.Reason)
			time.Sleep(time.Second)
			require.LessOrEqual(t, len(writes), 2, "cordoned, failed")
		})
	}
}

// TestADrainFunctionThatPanicsHasFailed, also one that ends its goroutine.
func TestADrainFunctionThatPanicsHasFailed(t *testing.T) {
	for says, fail := range map[string]func(){"no disk": func() { panic("no disk") }, "Goexit": runtime.Goexit} {
		in(t, func(t *testing.T, w *world) {
			a, o := w.peer("a"), w.peer("o")
			a.join("a", members.WithDrain(func(context.Context, members.Cordon) error { fail(); return nil }))
			var failed *members.DrainError
			require.ErrorAs(t, o.Drain(t.Context(), "a"), &failed)
			require.Contains(t, failed.Reason, says)
		})
	}
}

// TestAnUpdateOfADrainFunctionEndsWithTheMembership: otherwise the member waits for the function,
// and the function for the member.
func TestAnUpdateOfADrainFunctionEndsWithTheMembership(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		began, joined, updated := make(chan struct{}), make(chan *members.Membership, 1), make(chan error, 1)
		m := a.join("a", members.WithDrain(func(context.Context, members.Cordon) error {
			close(began)
			m := <-joined
			time.Sleep(time.Second)
			updated <- m.Update(context.Background(), func(i *members.Info) { i.Load = 0.5 })
			return nil
		}))
		joined <- m
		o.drain("a")
		<-began
		a.Link.Cut()
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.Leave(ctx), framework.ErrUnconfirmed)
		a.Link.Heal()
		select {
		case err := <-updated:
			require.ErrorIs(t, err, members.ErrLeft)
		case <-time.After(time.Hour):
			require.Fail(t, "Update does not end")
		}
	})
}

// TestAnUnreadableCordonCordons: a cordon's node with unreadable data keeps the member out of
// service.
func TestAnUnreadableCordonCordons(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		m := a.join("a")
		require.NoError(t, o.Client.Create(t.Context(), path+"/_cordon_a", []byte("by hand"), framework.Persistent))
		synctest.Wait()
		require.ErrorContains(t, m.Healthy(t.Context()), "the member is cordoned")
		require.Equal(t, members.Cordoning, o.member("a").State)
		require.NoError(t, o.Cordon(t.Context(), "a"))
		synctest.Wait()
		require.Equal(t, members.Cordoned, o.member("a").State)
		require.NoError(t, o.Uncordon(t.Context(), "a"))
		synctest.Wait()
		require.NoError(t, m.Healthy(t.Context()))
	})
}

// TestTheCordonOfANewerReleaseKeepsItsFields, and its version: a member of this release answers it,
// and a client of this release asks for more.
func TestTheCordonOfANewerReleaseKeepsItsFields(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		d := newDrained()
		a.join("a", d.option())
		node := o.member("a").Node
		other := "_c_0-member"
		require.NoError(t, o.Client.Create(t.Context(), path+"/"+other, []byte(`{"v":1,"id":"b"}`),
			framework.Ephemeral))
		require.NoError(t, o.Client.Create(t.Context(), path+"/_cordon_a",
			[]byte(`{"v":2,"id":"a","request":"r","answers":{"`+other+
				`":{"state":"cordoned","since":7}},"until":{"x":[1]}}`), framework.Persistent))
		synctest.Wait()
		require.Equal(t, members.Cordoned, o.member("a").State)
		stored := func() string {
			n, exists := w.Node(path + "/_cordon_a")
			require.True(t, exists)
			return string(n.Data)
		}
		require.JSONEq(t, `{"v":2,"id":"a","request":"r","answers":{"`+other+`":{"state":"cordoned","since":7},"`+
			strings.TrimPrefix(node, path+"/")+`":{"state":"cordoned"}},"until":{"x":[1]}}`, stored())
		done := o.drain("a")
		<-d.began
		require.Contains(t, stored(), `{"v":2,`)
		require.Contains(t, stored(), `"until":{"x":[1]}`)
		d.end <- nil
		require.NoError(t, <-done)
		require.Contains(t, stored(), `"until":{"x":[1]}`)
	})
}

// TestAnAnswerToAWithdrawnRequestReplacesNoOther: a member has no connection when its drain
// function ends. Meanwhile the drain is withdrawn, and requested again so that the versions of the
// cordon's nodes are the same. The member must not write its answer over the other request, and its
// drain function runs again.
func TestAnAnswerToAWithdrawnRequestReplacesNoOther(t *testing.T) {
	for _, away := range []time.Duration{3 * time.Second, 30 * time.Second} { // the session goes on, or is lost
		synctest.Test(t, func(t *testing.T) {
			w := &world{zktest.Start(t), t}
			m, o := w.peer("m"), w.peer("o")
			d := newDrained()
			m.join("web-1", d.option())
			first := o.drain("web-1")
			synctest.Wait()
			<-d.began
			time.Sleep(time.Second)
			m.Link.Cut()
			d.end <- nil
			synctest.Wait()
			require.NoError(t, o.Uncordon(t.Context(), "web-1"))
			<-first // withdrawn
			require.NoError(t, o.Cordon(t.Context(), "web-1", members.WithAbsentMember()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			require.ErrorIs(t, o.Drain(ctx, "web-1", members.WithAbsentMember()), context.DeadlineExceeded)
			cancel()
			time.Sleep(away)
			m.Link.Heal()
			second := o.drain("web-1", members.WithAbsentMember())
			select {
			case <-d.began:
			case <-time.After(time.Minute):
				require.Fail(t, "the drain function does not run again")
			}
			require.True(t, isOpen(second), "the former drain is no answer")
			d.end <- nil
			require.NoError(t, <-second)
		})
	}
}
