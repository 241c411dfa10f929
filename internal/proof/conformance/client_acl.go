package conformance

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

var clientACL = []behaviour{
	{"each permission allows its operations only", eachPermissionAllowsItsOperations},
	{"a digest gives access to what it protects", digestGivesAccess},
	{"the auth scheme stands for the client's identities", authSchemeMeansTheClient},
	{"ACLs have a version of their own", aclsAreVersioned},
	{"only a node's admins are shown an ACL's hash", hashIsShownToAdmins},
	{"invalid ACLs are refused", badACLsAreRefused},
	{"children do not inherit", childrenDoNotInherit},
	{"an address can have permissions", addressIsPermission},
}

func (c *client) owner() *client {
	c.t.Helper()
	require.NoError(c.t, c.AddAuth("digest", []byte(ownerCredentials)))
	return c
}

// ownerACL grants the owner all permissions, and everyone perms.
func ownerACL(perms int32) []zk.ACL {
	user, password, _ := strings.Cut(ownerCredentials, ":")
	acl := zk.DigestACL(zk.PermAll, user, password)
	if perms != 0 {
		acl = append(acl, zk.WorldACL(perms)...)
	}
	return acl
}

func eachPermissionAllowsItsOperations(t *testing.T, s *fixture) {
	stranger := s.client(t)
	for _, perm := range []int32{0, zk.PermRead, zk.PermWrite, zk.PermCreate, zk.PermDelete, zk.PermAdmin} {
		path, err := stranger.Create(s.path("n-"), nil, zk.FlagSequence, ownerACL(zk.PermAll))
		require.NoError(t, err)
		stranger.create(path+"/kid", "", 0)
		_, err = stranger.SetACL(path, ownerACL(perm), -1)
		require.NoError(t, err)
		allowed := func(needs int32, err error) {
			t.Helper()
			if perm&needs != 0 {
				require.NoError(t, err, "permission %d", perm)
			} else {
				require.ErrorIs(t, err, zk.ErrNoAuth, "permission %d", perm)
			}
		}
		_, _, err = stranger.Get(path)
		allowed(zk.PermRead, err)
		_, _, err = stranger.Children(path)
		allowed(zk.PermRead, err)
		_, _, err = stranger.GetACL(path)
		allowed(zk.PermRead|zk.PermAdmin, err)
		_, err = stranger.Set(path, nil, -1)
		allowed(zk.PermWrite, err)
		_, err = stranger.Create(path+"/new", nil, 0, openACL)
		allowed(zk.PermCreate, err)
		allowed(zk.PermDelete, stranger.Delete(path+"/kid", -1))
		_, err = stranger.SetACL(path, ownerACL(perm), -1)
		allowed(zk.PermAdmin, err)
		require.NotNil(t, stranger.stat(path), "exists needs no permission")
	}
}

func digestGivesAccess(t *testing.T, s *fixture) {
	owner, stranger := s.client(t).owner(), s.client(t)
	_, err := owner.Create(s.path("a"), []byte("x"), 0, ownerACL(0))
	require.NoError(t, err)
	stranger.sync(s.root)
	_, _, err = stranger.Get(s.path("a"))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = stranger.Multi(&zk.CheckVersionRequest{Path: s.path("a"), Version: -1})
	require.ErrorIs(t, err, zk.ErrNoAuth)

	require.NoError(t, stranger.AddAuth("digest", []byte("owner:wrong")), "every digest is welcome")
	_, _, err = stranger.Get(s.path("a"))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, _, err = stranger.owner().Get(s.path("a"))
	require.NoError(t, err)
}

func authSchemeMeansTheClient(t *testing.T, s *fixture) {
	owner, stranger := s.client(t), s.client(t)
	_, err := owner.Create(s.path("a"), nil, 0, zk.AuthACL(zk.PermAll))
	require.ErrorIs(t, err, zk.ErrInvalidACL, "the client has no identity yet")
	owner.owner()
	_, err = owner.Create(s.path("a"), nil, 0, zk.AuthACL(zk.PermAll))
	require.NoError(t, err)
	acl, _, err := owner.GetACL(s.path("a"))
	require.NoError(t, err)
	require.Equal(t, ownerACL(0), acl)
	stranger.sync(s.root)
	_, err = stranger.Set(s.path("a"), nil, -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
}

func aclsAreVersioned(t *testing.T, s *fixture) {
	c := s.client(t)
	c.create(s.path("a"), "", 0)
	acl, stat, err := c.GetACL(s.path("a"))
	require.NoError(t, err)
	require.Equal(t, openACL, acl)
	require.Zero(t, stat.Aversion)

	stat, err = c.SetACL(s.path("a"), zk.WorldACL(zk.PermRead|zk.PermAdmin), 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, stat.Aversion)
	require.Zero(t, stat.Version)
	_, err = c.SetACL(s.path("a"), openACL, 0)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	_, err = c.Set(s.path("a"), nil, -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = c.SetACL(s.path("a"), openACL, 1)
	require.NoError(t, err)
}

func hashIsShownToAdmins(t *testing.T, s *fixture) {
	owner, stranger := s.client(t).owner(), s.client(t)
	_, err := owner.Create(s.path("a"), nil, 0, ownerACL(zk.PermRead))
	require.NoError(t, err)
	acl, _, err := owner.GetACL(s.path("a"))
	require.NoError(t, err)
	require.Equal(t, ownerACL(zk.PermRead), acl)

	stranger.sync(s.root)
	acl, _, err = stranger.GetACL(s.path("a"))
	require.NoError(t, err)
	require.Equal(t, []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "owner:x"},
		{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}}, acl)
}

func badACLsAreRefused(t *testing.T, s *fixture) {
	c := s.client(t)
	for _, acl := range []zk.ACL{
		{Perms: zk.PermAll, Scheme: "world", ID: "somebody"},
		{Perms: zk.PermAll, Scheme: "digest", ID: "no-colon"},
		{Perms: zk.PermAll, Scheme: "ip", ID: "not an address"},
		{Perms: zk.PermAll, Scheme: "ip", ID: "10.0.0.0/33"},
		{Perms: zk.PermAll, Scheme: "nonsense", ID: "x"},
		{Perms: zk.PermAll, Scheme: "", ID: ""},
	} {
		_, err := c.Create(s.path("a"), nil, 0, []zk.ACL{acl})
		require.ErrorIs(t, err, zk.ErrInvalidACL, "%+v", acl)
	}
	c.create(s.path("a"), "", 0)
	_, err := c.SetACL(s.path("a"), nil, -1)
	require.ErrorIs(t, err, zk.ErrInvalidACL)
}

func childrenDoNotInherit(t *testing.T, s *fixture) {
	owner, stranger := s.client(t).owner(), s.client(t)
	_, err := owner.Create(s.path("a"), nil, 0, ownerACL(0))
	require.NoError(t, err)
	owner.create(s.path("a", "kid"), "open", 0)
	stranger.sync(s.root)
	data, _, err := stranger.Get(s.path("a", "kid"))
	require.NoError(t, err)
	require.Equal(t, "open", string(data))
	require.ErrorIs(t, stranger.Delete(s.path("a", "kid"), -1), zk.ErrNoAuth, "deleting is up to the parent")
}

func addressIsPermission(t *testing.T, s *fixture) {
	c := s.client(t)
	world := []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "0.0.0.0/0"}}
	noAccess := []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "192.0.2.1"},
		{Perms: zk.PermAdmin, Scheme: "world", ID: "anyone"}}
	_, err := c.Create(s.path("a"), nil, 0, world)
	require.NoError(t, err)
	_, err = c.Set(s.path("a"), nil, -1)
	require.NoError(t, err)
	_, err = c.Create(s.path("b"), nil, 0, noAccess)
	require.NoError(t, err)
	_, err = c.Set(s.path("b"), nil, -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
}
