package conformance

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

var clientReaped = []behaviour{
	{"a container is removed after its last child", containerIsRemoved},
	{"a container that has had no child remains", freshContainerRemains},
	{"a TTL node without changes is removed", ttlNodeIsRemoved},
	{"a TTL node with a child remains", ttlParentRemains},
	{"sequence numbers begin again in a container that is created again", containerRestartsSequence},
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

// wantRemoved waits until the server has removed a node by itself, which it may have done before
// the client asks for the node.
func (c *client) wantRemoved(path string) {
	c.t.Helper()
	is, _, gone, err := c.ExistsW(path)
	require.NoError(c.t, err)
	if is {
		wantEvent(c.t, gone, zk.EventNodeDeleted, path)
	}
}

func containerIsRemoved(t *testing.T, s *fixture) {
	c := s.client(t)
	c.container(s.path("c"))
	c.create(s.path("c", "kid"), "", 0)
	c.delete(s.path("c", "kid"))
	c.wantRemoved(s.path("c"))
}

// freshContainerRemains checks that a container that has never had a child still exists when a used
// one was removed.
func freshContainerRemains(t *testing.T, s *fixture) {
	c := s.client(t)
	c.container(s.path("fresh"))
	containerIsRemoved(t, s)
	c.sync(s.root)
	require.NotNil(t, c.stat(s.path("fresh")))
}

func ttlNodeIsRemoved(t *testing.T, s *fixture) {
	c := s.client(t)
	before := time.Now()
	c.ttl(s.path("t"), 300*time.Millisecond)
	c.wantRemoved(s.path("t"))
	require.GreaterOrEqual(t, time.Since(before), 300*time.Millisecond, "never early")
}

// ttlParentRemains checks that a TTL node with a child still exists when another node with the same
// TTL was removed.
func ttlParentRemains(t *testing.T, s *fixture) {
	c := s.client(t)
	const ttl = 300 * time.Millisecond
	c.ttl(s.path("parent"), ttl)
	_, err := c.Create(s.path("parent", "kid"), nil, 0, openACL)
	for tries := 1; errors.Is(err, zk.ErrNoNode) && tries < 10; tries++ {
		// a slow machine: the server has removed the parent before
		c.ttl(s.path("parent"), ttl)
		_, err = c.Create(s.path("parent", "kid"), nil, 0, openACL)
	}
	require.NoError(t, err)
	c.ttl(s.path("t"), ttl)
	c.wantRemoved(s.path("t"))
	require.NotNil(t, c.stat(s.path("parent")))
	c.delete(s.path("parent", "kid"))
	c.wantRemoved(s.path("parent"))
}

func containerRestartsSequence(t *testing.T, s *fixture) {
	c := s.client(t)
	c.container(s.path("c"))
	first := c.create(s.path("c", "n-"), "", zk.FlagSequence)
	c.delete(first)
	c.wantRemoved(s.path("c"))
	c.container(s.path("c"))
	require.Equal(t, first, c.create(s.path("c", "n-"), "", zk.FlagSequence))
}
