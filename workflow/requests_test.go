package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// loseAnswer lets the servers do a member's next transaction with a write below node, loses the
// answer, and cuts the member off. It returns a function that waits until that has happened, and
// one that heals the link.
func (f *worker) loseAnswer(w *world, node string) (wait, heal func()) {
	f.t.Helper()
	s, err := f.Session(f.t.Context())
	require.NoError(f.t, err)
	match := zktest.Match{Op: zktest.OpMulti, Session: s.ID(), Func: func(q zktest.Request) bool {
		writes := false
		for _, part := range q.Parts {
			if part.Err != 0 {
				return false
			}
			writes = writes || part.Writes() && strings.HasPrefix(part.Path, node)
		}
		return writes
	}}
	applied := make(chan struct{}, 1)
	stop := w.Observe(func(q zktest.Request) {
		if q.Op == match.Op && q.Session == match.Session && match.Func(q) {
			select {
			case applied <- struct{}{}:
			default:
			}
		}
	})
	w.DropReply(1, match)
	return func() {
		<-applied
		f.Link.Cut()
		stop()
	}, f.Link.Heal
}

// failing is a kind whose runs fail in their first calls.
func failing(done *doneLog, failures int) workflow.Function {
	return newFunction("failing", func(context.Context, *workflow.Run, int) (int, error) {
		done.add("called")
		if len(done.all()) <= failures {
			return 0, workflow.Permanent(errors.New("boom"))
		}
		return 1, nil
	})
}

// TestCallersKnowTheirOwnWrites: the answer of a call is lost, with or without the session, and the
// run goes on before it is read again. The call does not do a second time what it has done.
func TestCallersKnowTheirOwnWrites(t *testing.T) {
	for _, away := range []time.Duration{3 * time.Second, time.Minute} { // the session lasts for 10 s
		for name, test := range map[string]func(t *testing.T, w *world, m, operator *worker, done *doneLog,
			lost func(call func() error, meanwhile func()) error){
			"retry of a run that is done then": func(t *testing.T, _ *world, m, operator *worker, done *doneLog,
				lost func(func() error, func()) error) {
				m.work(failing(done, 1))
				m.start("failing", "x", 0)
				m.await("x", workflow.Failed)
				require.NoError(t, lost(func() error { return operator.Retry(t.Context(), "x", "") },
					func() { m.await("x", workflow.Done) }))
				require.Len(t, done.all(), 2)
			},
			"retry of a run that fails again": func(t *testing.T, _ *world, m, operator *worker, done *doneLog,
				lost func(func() error, func()) error) {
				m.work(failing(done, 2))
				m.start("failing", "x", 0)
				m.await("x", workflow.Failed)
				require.NoError(t, lost(func() error { return operator.Retry(t.Context(), "x", "") }, settled))
				require.Equal(t, workflow.Failed, m.inspect("x").State)
				require.Len(t, done.all(), 2, "retried once")
			},
			"cancel of a run that another retries": func(t *testing.T, _ *world, m, operator *worker, _ *doneLog,
				lost func(func() error, func()) error) {
				m.work(approval(0))
				m.start("approval", "x", 0)
				settled()
				require.NoError(t, lost(func() error { return operator.Cancel(t.Context(), "x", "") }, func() {
					require.NoError(t, m.Retry(t.Context(), "x", ""))
				}))
				settled()
				require.Equal(t, workflow.Waiting, m.inspect("x").State, "cancelled once")
			},
			"cancel of a run that is done then": func(t *testing.T, _ *world, m, operator *worker, _ *doneLog,
				lost func(func() error, func()) error) {
				m.work(approval(0))
				m.start("approval", "x", 0)
				settled()
				require.NoError(t, lost(func() error { return operator.Cancel(t.Context(), "x", "") }, func() {
					require.NoError(t, m.Retry(t.Context(), "x", ""))
					require.NoError(t, m.Signal(t.Context(), "x", "approved", "eve"))
					m.await("x", workflow.Done)
				}))
			},
			"requeue of a run that is done then": func(t *testing.T, _ *world, m, operator *worker, done *doneLog,
				lost func(func() error, func()) error) {
				m.work(endsAtItsSecondCall(done))
				m.start("blocked", "x", 0)
				settled()
				require.NoError(t, lost(func() error { return operator.Requeue(t.Context(), "x") },
					func() { m.await("x", workflow.Done) }))
				require.Len(t, done.all(), 1, "requeued once")
			},
			"signal to a run that is done then": func(t *testing.T, _ *world, m, operator *worker, _ *doneLog,
				lost func(func() error, func()) error) {
				m.work(approval(0))
				m.start("approval", "x", 0)
				settled()
				require.NoError(t, lost(func() error { return operator.Signal(t.Context(), "x", "approved", "eve") },
					func() { m.await("x", workflow.Done) }))
			},
		} {
			t.Run(name+" "+away.String(), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					var done doneLog
					m, operator := w.flows("m"), w.flows("operator")
					test(t, w, m, operator, &done, func(call func() error, meanwhile func()) error {
						wait, heal := operator.loseAnswer(w, runNode(t, w, "x"))
						result := make(chan error, 1)
						go func() { result <- call() }()
						wait()
						meanwhile()
						time.Sleep(away)
						require.Empty(t, result)
						heal()
						return <-result
					})
				})
			})
		}
	}
}

// TestCallsWhoseOutcomeCannotBeKnown: the record that would tell is gone, or others have changed it
// too often. The error says so and does not guess.
func TestCallsWhoseOutcomeCannotBeKnown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, operator := w.flows("m", workflow.WithRetention(time.Minute)).work(approval(0)), w.flows("operator")
		for _, test := range []struct {
			call      func(id string) error
			meanwhile func(id string)
			gone      bool
		}{
			{func(id string) error { return operator.Cancel(t.Context(), id, "") }, func(id string) {
				for range 2 {
					require.NoError(t, m.Retry(t.Context(), id, ""))
					require.NoError(t, m.Cancel(t.Context(), id, ""))
				}
				require.NoError(t, m.Retry(t.Context(), id, ""))
			}, false},
			{func(id string) error { return operator.Cancel(t.Context(), id, "") },
				func(string) { time.Sleep(10 * time.Minute) }, true},
			{func(id string) error { return operator.Signal(t.Context(), id, "approved", "eve") },
				func(string) { time.Sleep(10 * time.Minute) }, true},
			{func(id string) error { return operator.Signal(t.Context(), id, "approved", "eve") }, func(id string) {
				time.Sleep(10 * time.Minute)
				m.start("approval", id, 0)
				settled()
			}, false},
		} {
			id := "x"
			m.start("approval", id, 0)
			settled()
			wait, heal := operator.loseAnswer(w, runNode(t, w, id))
			result := make(chan error, 1)
			go func() { result <- test.call(id) }()
			wait()
			test.meanwhile(id)
			time.Sleep(time.Minute)
			require.Empty(t, result)
			heal()
			err := <-result
			require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
			require.Equal(t, test.gone, errors.Is(err, framework.ErrNotFound))
			if !test.gone {
				require.Equal(t, workflow.Waiting, m.inspect(id).State)
				require.Empty(t, m.inspect(id).Signals, "the next run has its own signals")
				require.NoError(t, m.Cancel(t.Context(), id, ""))
			}
			time.Sleep(10 * time.Minute)
		}
	})
}

// TestRunsAreRemovedOverASlowLink: the slowest link on which a session lasts leaves time enough for
// the removal. Its round trip is a fifteenth of the session timeout. On a slower one each session
// would end after some seconds, and only a removal that is lucky would be done by then.
func TestRunsAreRemovedOverASlowLink(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		operator := w.flows("operator")
		slow := w.Member(t, "slow", framework.Config{SessionTimeout: 30 * time.Second})
		m := &worker{slow, workflow.New(slow.Client, runsPath, workflow.WithRetention(time.Hour)), t, func() {},
			func() {}, make(chan error, 1)}
		defer func() {
			m.stop()
			_ = m.Workflows.Close(context.Background())
		}()
		m.work(approval(0))
		settled() // then the kind is known
		m.Link.Delay(time.Second)
		for _, id := range []string{"x", "y"} {
			operator.start("approval", id, 0)
			require.NoError(t, operator.Cancel(t.Context(), id, ""))
		}
		time.Sleep(90 * time.Minute)
		runs, err := failure.Collect(operator.List(t.Context()))
		require.NoError(t, err)
		require.Empty(t, runs)
	})
}
