package config_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	path    = "/app/limits"
	timeout = 10 * time.Second
)

// limits is a configuration.
type limits struct {
	Rate  int    `json:"rate"`
	Owner string `json:"owner,omitempty"`
}

var errNegative = errors.New("the rate is negative")

func positive(l limits) error {
	if l.Rate < 0 {
		return errNegative
	}
	return nil
}

// world is a server in memory, in virtual time, with two members.
type world struct {
	*zktest.Server
	t    *testing.T
	a, b *zktest.Member
}

func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Server: zktest.Start(t), t: t}
		w.a, w.b = w.member("a"), w.member("b")
		test(t, w)
	})
}

func (w *world) member(name string) *zktest.Member {
	return w.Member(w.t, name, framework.Config{SessionTimeout: timeout})
}

// limits returns the value for a member.
func (w *world) limits(m *zktest.Member, opts ...config.Option[limits]) *config.Value[limits] {
	w.t.Helper()
	v := config.New(m.Client, path, codec.JSON[limits](),
		append([]config.Option[limits]{config.WithValidate(positive)}, opts...)...)
	require.NoError(w.t, v.Validate())
	return v
}

// run keeps a value current until the end of the test.
func (w *world) run(v *config.Value[limits]) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	synctest.Wait()
}

// write writes a node as another program does.
func (w *world) write(text string) {
	w.t.Helper()
	ctx := w.t.Context()
	require.NoError(w.t, w.b.MakeDirs(ctx, "/app"))
	require.NoError(w.t, w.b.CreateIfMissing(ctx, path, nil, framework.Persistent))
	_, err := w.b.Set(ctx, path, []byte(text), framework.AnyVersion)
	require.NoError(w.t, err)
	synctest.Wait()
}

func (w *world) version() int64 {
	node, exists := w.Node(path)
	require.True(w.t, exists)
	return node.Stat.Mzxid
}
