package unused

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server with clients, in virtual time.
type world struct {
	t     *testing.T
	zk    *zktest.Server
	admin *zktest.Member // calls Find and Delete
}

func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		w := &world{t: t, zk: zk}
		w.admin = w.member("admin")
		test(t, w)
	})
}

func (w *world) member(name string) *zktest.Member {
	return w.zk.Member(w.t, name, framework.Config{SessionTimeout: 10 * time.Second})
}

// put makes a persistent node, and those above it.
func (w *world) put(path, data string) {
	w.t.Helper()
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		require.NoError(w.t, w.admin.MakeDirs(w.t.Context(), path[:i]))
	}
	require.NoError(w.t, w.admin.Create(w.t.Context(), path, []byte(data), framework.Persistent))
}

// find returns the leftovers below a root, of any age unless an option says otherwise.
func (w *world) find(root string, opts ...func(*Options)) *Found {
	w.t.Helper()
	o := Options{Now: time.Now()}
	for _, opt := range opts {
		opt(&o)
	}
	found, err := Find(w.t.Context(), w.admin.Client, root, o)
	require.NoError(w.t, err)
	return found
}

// one returns the only leftover.
func (w *world) one(root string, kind Kind) Leftover {
	w.t.Helper()
	found := w.find(root)
	require.Len(w.t, found.Leftovers, 1, "%v", found.Leftovers)
	require.Equal(w.t, kind, found.Leftovers[0].Kind)
	return found.Leftovers[0]
}

func (w *world) delete(l Leftover) error {
	return Delete(context.WithoutCancel(w.t.Context()), w.admin.Client, l)
}

// kinds are the leftovers' kinds by their paths.
func (f *Found) kinds() map[string]Kind {
	all := map[string]Kind{}
	for _, l := range f.Leftovers {
		all[l.Path] = l.Kind
	}
	return all
}

// paths are all nodes at and below a path.
func (w *world) paths(root string) (all []string) {
	for _, n := range w.zk.Tree(root) {
		all = append(all, n.Path)
	}
	return all
}
