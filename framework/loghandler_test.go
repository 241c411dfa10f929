package framework_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/zktest"
)

// callingHandler is a log's handler that runs a function for each record.
type callingHandler struct {
	slog.Handler
	call atomic.Pointer[func()]
}

func newCallingHandler(out io.Writer) *callingHandler {
	return &callingHandler{Handler: slog.NewTextHandler(out, nil)}
}

func (h *callingHandler) Handle(ctx context.Context, r slog.Record) error {
	if call := h.call.Load(); call != nil {
		(*call)()
	}
	return h.Handler.Handle(ctx, r)
}

// interrupt cuts a member's link, for so long that the client warns, and heals it.
func interrupt(m *zktest.Member) {
	m.Link.Cut()
	time.Sleep(2 * time.Second)
	m.Link.Heal()
}

// TestALogHandlerMayAskTheClient for its state, which takes the mutexes of the client, its session
// and its list of servers.
func TestALogHandlerMayAskTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Buffer
		h := newCallingHandler(&out)
		m := zktest.Start(t).Member(t, "a", sleepy, framework.WithLogger(slog.New(h)))
		s := session(t, m)
		asked := func() { m.Status() }
		h.call.Store(&asked)
		interrupt(m)
		_, _, err := s.Children(t.Context(), "/")
		require.NoError(t, err)
		require.NoError(t, m.Client.Close(t.Context()))
		require.Contains(t, out.String(), "no server can be used")
		require.Contains(t, out.String(), "a server can be used again")
	})
}

// TestALogHandlerThatBlocksStopsNothing: the client goes on, connects again, and ends a lost
// session. The handler gets the records later. Close waits for that until its context ends.
func TestALogHandlerThatBlocksStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Buffer
		h := newCallingHandler(&out)
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy, framework.WithLogger(slog.New(h)))
		s := session(t, m)
		hold := held(t, s, "/a")
		synctest.Wait()
		before := out.String()
		freed := make(chan struct{})
		block := func() { <-freed }
		h.call.Store(&block)
		for range 3 {
			interrupt(m)
			time.Sleep(timeout)
			require.Equal(t, framework.Connected, m.Status().State)
			require.NoError(t, hold.Err())
		}
		require.NoError(t, zk.Expire(s.ID()))
		<-s.Done()
		require.NotEqual(t, s.ID(), session(t, m).ID())
		require.Equal(t, before, out.String())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := m.Client.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, framework.ErrUnconfirmed, "the session is closed")
		require.ErrorContains(t, err, "the log's handler")
		close(freed)
		require.NoError(t, m.Client.Close(t.Context()))
		const lines = `(?s)no server can be used.*can be used again.*no server can be used.*session lost`
		require.Regexp(t, lines, out.String())
	})
}

// TestEachChangeOfASessionsStateIsLoggedOnce interrupts a session and then expires it.
func TestEachChangeOfASessionsStateIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Buffer
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy, framework.WithLogger(slog.New(newCallingHandler(&out))))
		s := session(t, m)
		interrupt(m)
		time.Sleep(timeout)
		require.NoError(t, zk.Expire(s.ID()))
		<-s.Done()
		session(t, m)
		require.NoError(t, m.Client.Close(t.Context()))
		var changes []string
		for line := range strings.Lines(out.String()) {
			if _, change, found := strings.Cut(line, ` msg="session `); found {
				before, _, _ := strings.Cut(change, `"`)
				changes = append(changes, before)
			}
		}
		require.Equal(t, []string{"connected", "suspended", "connected", "suspended", "lost", "connected", "closed"},
			changes)
	})
}
