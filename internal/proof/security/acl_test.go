package security

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

const (
	patience = time.Minute
	tick     = 20 * time.Millisecond
	user     = "user"
	secret   = "correct-horse-battery-staple" // recognisable, wherever it turns up
)

var credentials = []framework.Credential{{Scheme: "digest", Auth: []byte(user + ":" + secret)}}

// ownerACL is the ACL that the server stores for the scheme "auth": all permissions for the owner's
// credentials.
var ownerACL = zk.DigestACL(zk.PermAll, user, secret)

// TestACL lets a client with credentials use the recipes of recipeUses, and a client without
// credentials try every operation on each node.
func TestACL(t *testing.T) {
	servers := ensemble.Shared(t)
	readable := append(framework.CreatorOnlyACL(),
		framework.ACL{Perms: framework.PermRead, Scheme: "world", ID: "anyone"})
	for name, c := range map[string]struct {
		parents []framework.ACL // configured
		want    []zk.ACL        // of directories
	}{
		"default":                            {nil, ownerACL},
		"directories that everyone may read": {readable, append(ownerACL[:1:1], zk.WorldACL(zk.PermRead)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := framework.Config{
				Servers: servers, SessionTimeout: 10 * time.Second, Auth: credentials, ParentACL: c.parents,
				Root: "/security-" + strings.ToLower(rand.Text()[:10]),
			}
			client := connect(t, cfg)
			useAllRecipes(t, client)
			owner, stranger := newOtherClient(t, servers), newOtherClient(t, servers)
			require.NoError(t, owner.AddAuth("digest", credentials[0].Auth))
			// its server may be behind the client's
			_, err := owner.Multi(&zk.CheckVersionRequest{Path: cfg.Root, Version: -1})
			require.NoError(t, err)
			seen, directories, inUse := 0, 0, map[string]bool{}
			walk(t, owner, cfg.Root, func(node string, st *zk.Stat, acl []zk.ACL) {
				seen++
				if below := strings.Split(strings.TrimPrefix(node, cfg.Root), "/"); len(below) > 2 {
					inUse[below[1]] = true
				}
				marker := path.Base(path.Dir(node)) == "writers" // a directory with data
				directory := st.EphemeralOwner == 0 && (st.DataLength == 0 || marker) && len(acl) == len(c.want)
				if directory {
					directories++
					require.ElementsMatch(t, c.want, acl, node)
				} else {
					require.Equal(t, ownerACL, acl, node)
				}
				tryAllOperations(t, stranger, node, directory && c.parents != nil)
			})
			t.Logf("%d nodes, %d of them directories", seen, directories)
			require.ElementsMatch(t, recipeDirs, slices.Collect(maps.Keys(inUse)), "directories with nodes")
			require.Greater(t, seen, 100, "of every recipe")
			require.Greater(t, directories, 10, "of every recipe")
		})
	}
}

// walk visits a node and all nodes below it. It skips nodes that were deleted meanwhile.
func walk(t *testing.T, owner *zk.Conn, node string, visit func(string, *zk.Stat, []zk.ACL)) {
	t.Helper()
	acl, st, err := owner.GetACL(node)
	if err == zk.ErrNoNode { //nolint:errorlint // the library wraps nothing
		return
	}
	require.NoError(t, err, node)
	visit(node, st, acl)
	kids, _, err := owner.Children(node)
	if err != zk.ErrNoNode { //nolint:errorlint // the library wraps nothing
		require.NoError(t, err, node)
	}
	for _, kid := range kids {
		walk(t, owner, path.Join(node, kid), visit)
	}
}

// tryAllOperations requires that every operation is refused. A node that was deleted meanwhile
// counts as a refusal.
func tryAllOperations(t *testing.T, stranger *zk.Conn, node string, mayRead bool) {
	t.Helper()
	refused := func(what string, err error) {
		t.Helper()
		require.Contains(t, []error{zk.ErrNoAuth, zk.ErrNoNode, zk.ErrNotEmpty}, err, "%s %s", what, node)
	}
	_, _, get := stranger.Get(node)
	_, _, list := stranger.Children(node)
	_, _, acl := stranger.GetACL(node)
	if !mayRead {
		refused("read", get)
		refused("list", list)
		refused("read the ACL of", acl)
	}
	_, err := stranger.Set(node, nil, -1)
	refused("write", err)
	_, err = stranger.Create(node+"/below", nil, 0, zk.WorldACL(zk.PermAll))
	refused("create below", err)
	_, err = stranger.SetACL(node, zk.WorldACL(zk.PermAll), -1)
	refused("open", err)
	refused("delete", stranger.Delete(node, -1))
	_, err = stranger.Multi(&zk.CheckVersionRequest{Path: node, Version: -1},
		&zk.SetDataRequest{Path: node, Version: -1})
	refused("write in a transaction", err)
}

// TestClientWithoutCredentialsIsRefused checks that a client without credentials is refused
// immediately, and does not join a line.
func TestClientWithoutCredentialsIsRefused(t *testing.T) {
	cfg := framework.Config{
		Servers: ensemble.Shared(t), SessionTimeout: 10 * time.Second, Auth: credentials,
		Root: "/security-" + strings.ToLower(rand.Text()[:10]),
	}
	_, err := locks.NewMutex(connect(t, cfg), "/lock").Lock(t.Context())
	require.NoError(t, err)
	for name, auth := range map[string][]framework.Credential{
		"none": nil, "others": {{Scheme: "digest", Auth: []byte("user:other")}},
	} {
		cfg.Auth = auth
		stranger := connect(t, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err = locks.NewMutex(stranger, "/lock").Lock(ctx)
		require.ErrorIs(t, err, framework.ErrNoAuth, name)
		_, err = locks.Inspect(ctx, stranger, "/lock")
		require.ErrorIs(t, err, framework.ErrNoAuth, name)
	}
}

// TestClientReadsACLs checks that real servers return an ACL as TestAnACLIsRead of framework
// expects it: the whole ACL to its owner, without the hash to clients that may read, and an error
// to others.
func TestClientReadsACLs(t *testing.T) {
	readable := framework.ACL{Perms: framework.PermRead, Scheme: "world", ID: "anyone"}
	cfg := framework.Config{
		Servers: ensemble.Shared(t), SessionTimeout: 10 * time.Second, Auth: credentials,
		ACL:  append(framework.CreatorOnlyACL(), readable),
		Root: "/security-" + strings.ToLower(rand.Text()[:10]),
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	owner := connect(t, cfg)
	require.NoError(t, owner.MakeDirs(ctx, "/closed"))
	require.NoError(t, owner.Create(ctx, "/readable", nil, framework.Persistent))
	acl, _, err := owner.ACL(ctx, "/readable")
	require.NoError(t, err)
	require.Equal(t, []framework.ACL{{Perms: framework.PermAll, Scheme: ownerACL[0].Scheme, ID: ownerACL[0].ID},
		readable}, acl)
	acl, _, err = owner.ACL(ctx, "/")
	require.NoError(t, err)
	require.Len(t, acl, 1, "of the client's root")

	cfg.Auth = nil
	stranger := connect(t, cfg)
	session, err := stranger.Session(ctx)
	require.NoError(t, err)
	require.NoError(t, session.Sync(ctx, "/")) // its server may be behind the owner's
	acl, _, err = stranger.ACL(ctx, "/readable")
	require.NoError(t, err)
	require.Equal(t, []framework.ACL{{Perms: framework.PermAll, Scheme: "digest", ID: user + ":x"}, readable}, acl)
	_, _, err = stranger.ACL(ctx, "/closed")
	require.ErrorIs(t, err, framework.ErrNoAuth)
	_, _, err = stranger.ACL(ctx, "/none")
	require.ErrorIs(t, err, framework.ErrNoNode)
}

// TestTopLevelNodesCanBeDeletedByAnyone shows a danger that SECURITY.md describes: by default every
// client may delete the nodes directly below "/", whatever their own ACLs are.
func TestTopLevelNodesCanBeDeletedByAnyone(t *testing.T) {
	servers := ensemble.Shared(t)
	cfg := framework.Config{Servers: servers, SessionTimeout: 10 * time.Second, Auth: credentials}
	client, stranger := connect(t, cfg), newOtherClient(t, servers)
	atTop := "/security-" + strings.ToLower(rand.Text()[:10])
	lease, err := locks.NewClaim(client, atTop).Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, stranger.Delete(atTop, -1))
	<-lease.Context().Done()
	require.ErrorIs(t, lease.Err(), framework.ErrNodeGone)

	lease, err = locks.NewClaim(client, atTop+"/below").Lock(t.Context())
	require.NoError(t, err)
	require.Equal(t, zk.ErrNoAuth, stranger.Delete(atTop+"/below", -1))
	require.Equal(t, zk.ErrNotEmpty, stranger.Delete(atTop, -1))
	found, st, err := stranger.Exists(atTop + "/below")
	require.True(t, err == nil && found, "to know of a node takes no permission")
	require.NotZero(t, st.EphemeralOwner, "nor does its owner's session id")
	require.NoError(t, lease.Err())
	require.NoError(t, lease.Release(t.Context()))
}

// TestForeignDirectoryDecidesItsDeletes shows the other danger that SECURITY.md describes: if
// another client has created a directory before, its ACL decides who may delete nodes in it.
func TestForeignDirectoryDecidesItsDeletes(t *testing.T) {
	servers := ensemble.Shared(t)
	client := connect(t, framework.Config{Servers: servers, SessionTimeout: 10 * time.Second, Auth: credentials})
	squatter := newOtherClient(t, servers)
	dir := "/security-" + strings.ToLower(rand.Text()[:10])
	_, err := squatter.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	lease, err := locks.NewMutex(client, dir).Lock(t.Context())
	require.NoError(t, err)
	_, err = squatter.Multi(&zk.CheckVersionRequest{Path: dir, Version: -1}) // its server may be behind ours
	require.NoError(t, err)
	kids, _, err := squatter.Children(dir)
	require.NoError(t, err)
	require.Len(t, kids, 1)
	_, _, err = squatter.Get(path.Join(dir, kids[0]))
	require.Equal(t, zk.ErrNoAuth, err)
	require.NoError(t, squatter.Delete(path.Join(dir, kids[0]), -1))
	<-lease.Context().Done()
	require.ErrorIs(t, lease.Err(), framework.ErrNodeGone)
}

// connect returns a client that is closed after the test.
func connect(t *testing.T, cfg framework.Config, opts ...framework.Option) *framework.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := framework.Connect(ctx, cfg,
		append([]framework.Option{framework.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, c.Close(ctx))
	})
	return c
}

// newOtherClient returns a client of another user on the same servers.
func newOtherClient(t *testing.T, servers []string) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}
