package ids_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	timeout = 10 * time.Second
	path    = "/ids/a"
)

var config = framework.Config{SessionTimeout: timeout}

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

func (w *world) member(name string) *zktest.Member { return w.Member(w.t, name, config) }

func (w *world) session(m *zktest.Member) *framework.Session {
	w.t.Helper()
	s, err := m.Session(w.t.Context())
	require.NoError(w.t, err)
	return s
}

// data returns the data of a node.
func (w *world) data(path string) string {
	w.t.Helper()
	n, ok := w.Node(path)
	require.True(w.t, ok, path)
	return string(n.Data)
}

// put creates a node where it is missing, and writes its data, as a person might do by hand.
func (w *world) put(m *zktest.Member, path, data string) {
	w.t.Helper()
	s := w.session(m)
	require.NoError(w.t, s.MakeDirs(w.t.Context(), "/ids"))
	require.NoError(w.t, s.CreateIfMissing(w.t.Context(), path, nil, framework.Persistent))
	_, err := s.Set(w.t.Context(), path, []byte(data), framework.AnyVersion)
	require.NoError(w.t, err)
}
