package registry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	timeout = 10 * time.Second
	base    = "/services"
	billing = "billing"
)

// world is a server in memory, in virtual time.
type world struct {
	*zktest.Server
	t *testing.T
}

// in runs a test in a synctest bubble.
func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{zktest.Start(t), t}) })
}

func (w *world) member(name string) *zktest.Member {
	return w.Member(w.t, name, framework.Config{SessionTimeout: timeout})
}

func (w *world) session(m *zktest.Member) *framework.Session {
	w.t.Helper()
	s, err := m.Session(w.t.Context())
	require.NoError(w.t, err)
	return s
}

// register registers an instance until the end of the test.
func (w *world) register(m *zktest.Member, id string, opts ...registry.RegisterOption) *registry.Registration {
	w.t.Helper()
	g, err := registry.New(m.Client, base).Register(w.t.Context(),
		registry.Instance{Service: billing, ID: id, Address: "10.0.0.7", Port: 8080}, opts...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = g.Close(context.Background()) })
	return g
}

// pool returns a pool that is closed at the end of the test.
func (w *world) pool(m *zktest.Member, opts ...registry.PoolOption) *registry.Pool {
	p := registry.NewPool(m.Client, base, billing, opts...)
	w.t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// listed returns the ids of the enabled instances in a pool's list.
func (w *world) listed(p *registry.Pool) []string {
	w.t.Helper()
	all, _, err := p.Instances(w.t.Context())
	require.NoError(w.t, err)
	ids := []string{}
	for _, i := range all {
		if i.Disabled == "" {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// data returns the data of an instance's node.
func (w *world) data(id string) string {
	w.t.Helper()
	n, ok := w.Node(base + "/" + billing + "/" + id)
	require.True(w.t, ok, id)
	return string(n.Data)
}
