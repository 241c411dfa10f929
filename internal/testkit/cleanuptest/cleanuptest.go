// Package cleanuptest checks the cleanups of all packages, such as Release, Resign, Leave and
// Close, in the same way: with contexts that have ended, lost replies, lost connections and lost
// sessions. It is for tests only.
package cleanuptest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// Timeout is the session timeout of the clients, and Bound how long their cleanups may last.
const (
	Timeout = 30 * time.Second
	Bound   = Timeout / 3
)

// Cleanup is one cleanup to check.
type Cleanup struct {
	// Begin makes something that the cleanup gives back, and returns the cleanup.
	Begin func(t *testing.T, m *zktest.Member) func(ctx context.Context) error
	// Lost are wrapped by the cleanup's error when the session is lost. By default these are
	// framework.ErrUnconfirmed and framework.ErrSessionLost.
	Lost []error
	// LostReply is wrapped by the error after a lost reply; nil: there is no error.
	LostReply error
	// NextSession says that the cleanup may need the next session when its own is lost: it finds
	// out what requests without an answer have done.
	NextSession bool
}

// Check runs the cleanup under each of the faults.
func (c Cleanup) Check(t *testing.T) {
	t.Helper()
	if c.Lost == nil {
		c.Lost = []error{framework.ErrUnconfirmed, framework.ErrSessionLost}
	}
	c.runEach(t, map[string]func(r run){
		"context has ended":                run.contextHasEnded,
		"deadline has passed":              run.deadlineHasPassed,
		"context ends meanwhile":           run.contextEndsMeanwhile,
		"reply lost":                       run.replyLost,
		"connection down":                  run.connectionDown,
		"connection down until a deadline": run.connectionDownUntilDeadline,
		"session lost":                     run.sessionLost,
	})
}

func (c Cleanup) runEach(t *testing.T, checks map[string]func(r run)) {
	t.Helper()
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", framework.Config{SessionTimeout: Timeout})
				s, err := m.Session(t.Context())
				require.NoError(t, err)
				cleanup := c.Begin(t, m)
				synctest.Wait()
				check(run{t, c, zk, m, s, cleanup})
			})
		})
	}
}

// CheckConfirmed runs a cleanup that is a part of another call, which does not return the cleanup's
// error. Whenever the servers can be reached, they must have confirmed it when the call returns.
func (c Cleanup) CheckConfirmed(t *testing.T) {
	t.Helper()
	c.runEach(t, map[string]func(r run){
		"context has ended":      run.contextHasEnded,
		"context ends meanwhile": run.contextEndsMeanwhile,
		"reply lost":             run.replyLost,
	})
}

// run is the check of a cleanup under one fault.
type run struct {
	t       *testing.T
	c       Cleanup
	zk      *zktest.Server
	m       *zktest.Member
	s       *framework.Session
	cleanup func(context.Context) error
}

// requireNothingLeft requires that the servers have no node of the session any more.
func (r run) requireNothingLeft() {
	r.t.Helper()
	for _, n := range r.zk.Tree("/") {
		require.NotEqual(r.t, int64(r.s.ID()), n.Stat.EphemeralOwner, n.Path)
	}
}

func (r run) contextHasEnded() {
	r.m.Link.Delay(10 * time.Millisecond)
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	require.NoError(r.t, r.cleanup(ctx))
	r.requireNothingLeft()
}

func (r run) deadlineHasPassed() {
	r.m.Link.Delay(10 * time.Millisecond)
	ctx, cancel := context.WithDeadline(r.t.Context(), time.Now())
	defer cancel()
	require.NoError(r.t, r.cleanup(ctx))
	r.requireNothingLeft()
}

func (r run) contextEndsMeanwhile() {
	r.m.Link.Delay(100 * time.Millisecond)
	ctx, cancel := context.WithCancel(r.t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	require.NoError(r.t, r.cleanup(ctx))
	r.requireNothingLeft()
}

func (r run) replyLost() {
	r.zk.DropReply(1, zktest.Match{Session: r.s.ID(), Func: zktest.Request.Writes})
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	if err := r.cleanup(ctx); r.c.LostReply == nil {
		require.NoError(r.t, err)
	} else {
		require.ErrorIs(r.t, err, r.c.LostReply)
		require.NotErrorIs(r.t, err, framework.ErrUnconfirmed)
	}
	r.requireNothingLeft()
}

// connectionDown requires that the cleanup goes on in the background, and needs no end of the
// session.
func (r run) connectionDown() {
	r.m.Link.BlackHole(true, true)
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	began := time.Now()
	err := r.cleanup(ctx)
	require.ErrorIs(r.t, err, framework.ErrUnconfirmed)
	require.ErrorIs(r.t, err, context.DeadlineExceeded)
	require.NotErrorIs(r.t, err, framework.ErrSessionLost)
	require.Equal(r.t, Bound, time.Since(began))
	r.m.Link.Heal()
	time.Sleep(Bound)
	require.NoError(r.t, r.s.Err())
	r.requireNothingLeft()
}

func (r run) connectionDownUntilDeadline() {
	r.m.Link.BlackHole(true, true)
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	require.ErrorIs(r.t, r.cleanup(ctx), framework.ErrUnconfirmed)
	require.Equal(r.t, time.Second, time.Since(began))
	r.m.Link.Heal()
}

func (r run) sessionLost() {
	r.m.Link.Cut()
	<-r.s.Done()
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	began := time.Now()
	err := r.cleanup(ctx)
	if r.c.NextSession {
		if err != nil {
			require.ErrorIs(r.t, err, framework.ErrUnconfirmed)
			require.Equal(r.t, Bound, time.Since(began))
		}
		r.m.Link.Heal()
		require.NoError(r.t, r.cleanup(ctx))
		return
	}
	for _, want := range r.c.Lost {
		require.ErrorIs(r.t, err, want)
	}
	require.Zero(r.t, time.Since(began), "there is nothing to wait for")
	r.m.Link.Heal()
}
