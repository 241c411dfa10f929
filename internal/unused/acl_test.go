package unused

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// setACL changes the ACL of a node, as an administrator does.
func (w *world) setACL(path string, acl []zk.ACL) {
	w.t.Helper()
	conn, _, err := zk.Connect(w.zk.Servers(), 10*time.Second, zk.WithDialer(w.zk.Link("acl").Dial),
		zk.WithLogInfo(false))
	require.NoError(w.t, err)
	defer conn.Close()
	_, err = conn.SetACL(path, acl, -1)
	require.NoError(w.t, err)
}

// operator is a client with credentials, whose directories have the ACL of those above, and whose
// other nodes only itself may use.
func (w *world) operator() *zktest.Member {
	return w.zk.Member(w.t, "operator", framework.Config{
		SessionTimeout: 10 * time.Second,
		Auth:           []framework.Credential{{Scheme: "digest", Auth: []byte("ops:pw")}},
		ParentACL:      framework.OpenACL(),
	})
}

// TestADirectoryWithAnACLOfItsOwnStays: an administrator has made the directories of a lock and of
// a semaphore beforehand, so that only some clients may use them. The administrator and everybody
// else keep them.
func TestADirectoryWithAnACLOfItsOwnStays(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		ops := w.operator()
		require.NoError(t, ops.MakeDirs(ctx, "/lockstep/locks/open"))
		for _, dir := range []string{"/lockstep/locks/deploy", "/lockstep/locks/deploy/inner", "/gpu", "/gpu/leases"} {
			require.NoError(t, ops.Create(ctx, dir, nil, framework.Persistent))
		}
		require.NoError(t, ops.Create(ctx, "/gpu/permits", []byte(`{"v":1,"declared":4,"permits":4}`),
			framework.Persistent))
		require.NoError(t, w.admin.MakeDirs(ctx, "/lockstep/locks/read"))
		w.setACL("/lockstep/locks/read", zk.WorldACL(zk.PermRead))

		found, err := Find(ctx, ops.Client, "/", Options{Now: time.Now()})
		require.NoError(t, err)
		require.Equal(t, map[string]Kind{
			"/lockstep/locks/open":         EmptyDirectory,
			"/lockstep/locks/deploy/inner": EmptyDirectory, // the ACL of the directory above
			"/gpu":                         Semaphore,
		}, found.kinds())
		for _, l := range found.Leftovers {
			require.NoError(t, Delete(ctx, ops.Client, l))
		}
		require.Equal(t, []string{"/gpu", "/lockstep/locks/deploy", "/lockstep/locks/read"}, w.leaves())
		require.Empty(t, w.find("/lockstep/locks").Leftovers)
	})
}

// TestAnACLOfASemaphoresDirectories: a semaphore's line has an ACL of its own, so all of the
// semaphore stays.
func TestAnACLOfASemaphoresDirectories(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("/gpu/permits", `{"v":1,"declared":4,"permits":4}`)
		require.NoError(t, w.admin.MakeDirs(t.Context(), "/gpu/locks"))
		l := w.one("/", Semaphore)
		w.setACL("/gpu/locks", zk.WorldACL(zk.PermRead|zk.PermCreate))
		require.Empty(t, w.find("/").Leftovers)
		require.ErrorIs(t, w.delete(l), ErrChanged, "it was found before it got the ACL")
	})
}

// TestAnACLThatMayNotBeRead: the directory above shows its ACL to others only.
func TestAnACLThatMayNotBeRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.MakeDirs(t.Context(), "/lockstep/locks/team/deploy"))
		w.setACL("/lockstep/locks/team", zk.WorldACL(zk.PermCreate|zk.PermDelete))
		found := w.find("/lockstep/locks/team/deploy")
		require.Empty(t, found.Leftovers)
		require.Equal(t, []string{"/lockstep/locks/team"}, found.Refused)
	})
}
