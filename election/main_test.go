package election_test

import (
	"context"
	"os"
	"os/signal"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) {
	signals := make(chan os.Signal, 1) // fx listens for them: the runtime's part of that must be begun outside bubbles
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}

const (
	timeout = 10 * time.Second
	path    = "/elections/a"
)

var config = framework.Config{SessionTimeout: timeout}

// world is a server in memory, in virtual time.
type world struct {
	*zktest.Server
	t *testing.T
}

func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{zktest.Start(t), t}) })
}

// member is one candidate on a link of its own.
type member struct {
	*election.Election
	client *framework.Client
	link   *zktest.Link
}

func (w *world) member(name string) *member {
	m := w.Member(w.t, name, config)
	return &member{election.New(m.Client, path), m.Client, m.Link}
}

func (m *member) lead(t *testing.T) *election.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	term, err := m.Campaign(ctx)
	require.NoError(t, err)
	require.NoError(t, term.Err())
	return term
}

// got receives what must come within an hour of virtual time: without an end, a broken test would
// run for ever.
func got[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Hour):
		require.Fail(t, "it never came")
	}
	return v
}
