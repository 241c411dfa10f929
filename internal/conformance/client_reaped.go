package conformance

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

var clientReaped = []behaviour{
	{"a container goes after its last child", containerGoes},
	{"a container that never had a child stays", freshContainerStays},
	{"a TTL node goes when nothing happens to it", ttlNodeGoes},
	{"a TTL node with a child stays", ttlParentStays},
	{"sequence numbers start anew in a container made again", containerRestartsSequence},
}

func (c *client) container(path string) {
	c.t.Helper()
	_, err := c.CreateContainer(path, nil, zk.FlagContainer, openACL)
	require.NoError(c.t, err)
}

func (c *client) ttl(path string, ttl time.Duration) {
	c.t.Helper()
	_, err := c.CreateTTL(path, nil, zk.FlagTTL, openACL, ttl)
	require.NoError(c.t, err)
}

// wantReaped waits until the server has removed a node by itself.
func (c *client) wantReaped(path string) {
	c.t.Helper()
	_, _, gone, err := c.ExistsW(path)
	require.NoError(c.t, err)
	wantEvent(c.t, gone, zk.EventNodeDeleted, path)
}

func containerGoes(t *testing.T, s *site) {
	c := s.client(t)
	c.container(s.path("c"))
	c.create(s.path("c", "kid"), "", 0)
	c.delete(s.path("c", "kid"))
	c.wantReaped(s.path("c"))
}

// freshContainerStays looks whether it is still there when a used one has gone.
func freshContainerStays(t *testing.T, s *site) {
	c := s.client(t)
	c.container(s.path("fresh"))
	containerGoes(t, s)
	c.sync(s.root)
	require.NotNil(t, c.stat(s.path("fresh")))
}

func ttlNodeGoes(t *testing.T, s *site) {
	c := s.client(t)
	before := time.Now()
	c.ttl(s.path("t"), 300*time.Millisecond)
	c.wantReaped(s.path("t"))
	require.GreaterOrEqual(t, time.Since(before), 300*time.Millisecond, "never early")
}

// ttlParentStays looks whether it is still there when another with its TTL has gone.
func ttlParentStays(t *testing.T, s *site) {
	c := s.client(t)
	c.ttl(s.path("parent"), time.Millisecond)
	if _, err := c.Create(s.path("parent", "kid"), nil, 0, openACL); err != nil {
		require.ErrorIs(t, err, zk.ErrNoNode) // reaped already: too late to be a parent
		return
	}
	c.ttl(s.path("t"), time.Millisecond)
	c.wantReaped(s.path("t"))
	require.NotNil(t, c.stat(s.path("parent")))
	c.delete(s.path("parent", "kid"))
	c.wantReaped(s.path("parent"))
}

func containerRestartsSequence(t *testing.T, s *site) {
	c := s.client(t)
	c.container(s.path("c"))
	first := c.create(s.path("c", "n-"), "", zk.FlagSequence)
	c.delete(first)
	c.wantReaped(s.path("c"))
	c.container(s.path("c"))
	require.Equal(t, first, c.create(s.path("c", "n-"), "", zk.FlagSequence))
}
