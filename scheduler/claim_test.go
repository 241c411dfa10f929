package scheduler

import (
	"bytes"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestALostReplyOfAClaimRunsTheTickOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", jobs("j", "* * * * *", quick))
		w.start("b", jobs("j", "* * * * *", quick))
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j/run-1",
			Func: zktest.Request.Writes})
		time.Sleep(90 * time.Second)
		<-lost.Hit()
		require.Equal(t, []string{"00:01:00"}, w.log.ticks())
		state := w.requireBalanced("j", "* * * * *")
		require.EqualValues(t, 1, state.Fired)
		require.Empty(t, state.Missed)
		require.Nil(t, state.Running)
		require.Equal(t, "a", w.log.all(EventStarted)[0].member)
	})
}

func TestALostReplyOfAnOutcomeIsSettled(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", jobs("j", "* * * * *", lasting(time.Second)))
		w.DropReply(2, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j/run-1", Func: zktest.Request.Writes})
		time.Sleep(3*time.Minute + 10*time.Second)
		state := w.requireBalanced("j", "* * * * *")
		require.EqualValues(t, 3, state.Fired)
		require.Empty(t, state.Missed)
		require.Nil(t, state.Running)
	})
}

func TestUnsettledClaimOfLostSessionStartsNoRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		w.start("b", jobs("j", "* * * * *", quick))
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j/run-1",
			Func: zktest.Request.Writes})
		go func() {
			<-lost.Hit()
			a.link.Cut()
		}()
		time.Sleep(90 * time.Second)
		require.Empty(t, w.log.ticks())
		time.Sleep(time.Minute)
		require.Equal(t, []string{"00:02:00"}, w.log.ticks())
		state := w.requireBalanced("j", "* * * * *")
		require.Equal(t, map[Reason]int64{ReasonRunnerLost: 1}, state.Missed)
		require.Equal(t, []Gap{{From: at(t, "2000-01-01T00:01:00Z"), To: at(t, "2000-01-01T00:01:00Z"), Count: 1,
			Reason: ReasonRunnerLost}}, state.Gaps)
		a.link.Heal()
	})
}

// swallower is a connection that breaks instead of sending what contains a text, once for each in
// the list.
type swallower struct {
	net.Conn
	texts *[]string
}

func (c swallower) Write(b []byte) (int, error) {
	if len(*c.texts) > 0 && bytes.Contains(b, []byte((*c.texts)[0])) {
		*c.texts = (*c.texts)[1:]
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func TestUndeliveredRequestsAreSentAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		link := w.Link("a")
		texts := []string{`"running":`, `past-1`}
		a := w.Member(t, "a", config,
			framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := link.DialContext(ctx, network, address)
				return swallower{c, &texts}, err
			}))
		s := New(a.Client, testPath, w.log.of("a"))
		require.NoError(t, s.Add(Job{Name: "j", Spec: "* * * * *", Run: quick}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		require.Empty(t, texts)
		require.Len(t, w.log.ticks(), 1)
		state := w.requireBalanced("j", "* * * * *")
		require.EqualValues(t, 1, state.Fired)
		require.NotNil(t, state.LastRun)
		require.Nil(t, state.Running)
		cancel()
		require.NoError(t, <-done)
	})
}

func TestUnsettledClaimAtStopIsRunAndDrained(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", lasting(time.Second)))
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j/run-1",
			Func: zktest.Request.Writes})
		go func() {
			<-lost.Hit()
			a.stop()
		}()
		time.Sleep(70 * time.Second)
		require.NoError(t, <-a.done)
		require.Len(t, w.log.all(EventFinished), 1)
		require.Empty(t, w.claims("j"), "no claim is left in the way")
		require.Nil(t, w.state("j").Running)
	})
}

func TestFormerLeaderClaimsNoTicks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "31 * * * * *", quick)) // between two proofs of life
		b := w.member("b", nil)
		former, err := a.leadership.election.Leader(t.Context())
		require.NoError(t, err)
		time.Sleep(31*time.Second - time.Millisecond)
		require.NoError(t, b.client.Delete(t.Context(), former.Node, framework.AnyVersion))
		time.Sleep(timeout) // it has not noticed when the tick is due
		require.Equal(t, []string{"00:00:31"}, w.log.ticks())
		require.Greater(t, w.log.all(EventStarted)[0].Run.Token, former.Token)
	})
}

func TestRunIgnoringItsContextIsNotOverlappedByOwnMember(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", func(context.Context, Run) error {
			time.Sleep(150 * time.Second)
			return nil
		}), WithStuckAfter(time.Hour))
		time.Sleep(61 * time.Second)
		a.link.Cut()
		time.Sleep(2 * timeout)
		a.link.Heal()
		time.Sleep(3 * time.Minute)
		require.Equal(t, []string{"00:01:00", "00:04:00"}, w.log.ticks())
		state := w.requireBalanced("j", "* * * * *")
		require.Equal(t, map[Reason]int64{ReasonRunnerLost: 1, ReasonOverlap: 2}, state.Missed)
	})
}

func TestRunOfLivingFormerLeaderIsNotOverlapped(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", lasting(100*time.Second)), WithGrace(time.Hour))
		w.start("b", jobs("j", "* * * * *", quick))
		time.Sleep(61 * time.Second)
		a.stop()
		require.NoError(t, <-a.done) // 00:02:40
		time.Sleep(30 * time.Second)
		require.Equal(t, []string{"00:01:00", "00:03:00"}, w.log.ticks())
		state := w.requireBalanced("j", "* * * * *")
		require.Equal(t, map[Reason]int64{ReasonOverlap: 1}, state.Missed)
		require.EqualValues(t, 2, state.Fired)
	})
}

func TestRunOutlivesEndedTermButNotItsClaim(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", lasting(time.Hour)))
		b := w.start("b", jobs("j", "* * * * *", lasting(time.Hour)))
		time.Sleep(61 * time.Second)
		leader, err := b.leadership.election.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", leader.ID)
		require.NoError(t, b.client.Delete(t.Context(), leader.Node, framework.AnyVersion))
		time.Sleep(time.Minute)
		require.Empty(t, w.log.all(EventFinished), "its claim keeps the others away")
		require.Len(t, w.log.ticks(), 1)
		require.NoError(t, a.client.Delete(t.Context(), testPath+"/jobs/j/run-1", framework.AnyVersion))
		time.Sleep(timeout)
		require.ErrorIs(t, w.log.all(EventFinished)[0].Err, framework.ErrNodeGone)
		time.Sleep(time.Minute)
		require.Equal(t, "b", w.log.all(EventStarted)[1].member)
	})
}

func TestALostReplyOfARegistration(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.DropReply(1, zktest.Match{Op: zktest.OpCreate, Path: testPath + "/jobs/j"})
		w.start("a", jobs("j", "* * * * *", quick))
		time.Sleep(90 * time.Second)
		require.Len(t, w.log.ticks(), 1)
	})
}
