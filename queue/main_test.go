package queue

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestMain lets the test binary stand in for a consumer that is killed.
func TestMain(m *testing.M) {
	if how := os.Getenv(consumerVariable); how != "" {
		consumeAsProcess(how)
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	timeout  = 10 * time.Second
	testPath = "/queues/q"
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

// member is one process with a queue of strings.
type member struct {
	*Queue[string]
	client *framework.Client
	link   *zktest.Link
	t      *testing.T
}

func (w *world) member(name string, opts ...Option) *member {
	w.t.Helper()
	m := w.Member(w.t, name, config)
	q := New(m.Client, testPath, codec.Text(), opts...)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = q.Close(ctx)
	})
	return &member{q, m.Client, m.Link, w.t}
}

// segmentSize makes segments short.
func segmentSize(n int64) Option {
	return func(s *settings) error { s.segmentSize = n; return nil }
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func (m *member) put(values ...string) {
	m.t.Helper()
	for _, v := range values {
		require.NoError(m.t, m.Put(within(m.t, time.Minute), v))
	}
}

func (m *member) take() *Delivery[string] {
	m.t.Helper()
	d, err := m.Take(within(m.t, 2*time.Minute))
	require.NoError(m.t, err)
	require.NoError(m.t, d.Context().Err())
	return d
}

func (m *member) ack(d *Delivery[string]) {
	m.t.Helper()
	require.NoError(m.t, d.Ack(within(m.t, time.Minute)))
}

// drain takes and acknowledges n items.
func (m *member) drain(n int) (values []string) {
	m.t.Helper()
	for range n {
		d := m.take()
		values = append(values, d.Value)
		m.ack(d)
	}
	return values
}

// requireNone checks that there is nothing to take.
func (m *member) requireNone() {
	m.t.Helper()
	d, err := m.Take(within(m.t, 30*time.Second))
	require.ErrorIs(m.t, err, context.DeadlineExceeded, "%+v", d)
}

// kill takes a member away as a crash does.
func (m *member) kill() {
	m.link.Cut()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.Close(ended)
	_ = m.client.Close(context.Background())
}

func names(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("item %d", i))
	}
	return out
}

// inEachOrder runs a test for both orders.
func inEachOrder(t *testing.T, test func(t *testing.T, w *world, order Option)) {
	for _, o := range []Order{Parallel, Strict} {
		t.Run(string(o), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { test(t, w, WithOrder(o)) })
		})
	}
}

// closeSlowly closes the queue over a slow link: that may take longer than one call of Close waits.
func (m *member) closeSlowly() {
	m.t.Helper()
	for err := m.Close(m.t.Context()); err != nil; err = m.Close(m.t.Context()) {
		require.ErrorIs(m.t, err, framework.ErrUnconfirmed)
	}
}
