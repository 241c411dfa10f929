package conformance

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

var openACL = zk.WorldACL(zk.PermAll)

// client is a go-zookeeper connection. The test can cut its network.
type client struct {
	*zk.Conn
	t       *testing.T
	network *network
	states  chan zk.State
}

// client connects to all servers, waits for the session, and syncs, so that its server has the
// fixture's node.
func (s *fixture) client(t *testing.T) *client {
	t.Helper()
	c := s.clientFor(t, sessionTimeout)
	c.sync(s.root)
	return c
}

func (s *fixture) clientFor(t *testing.T, timeout time.Duration) *client {
	t.Helper()
	c := &client{t: t, network: newNetwork(s.target.dial), states: make(chan zk.State, 1000)}
	conn, _, err := zk.Connect(s.target.Servers, timeout,
		zk.WithDialer(c.network.dial),
		zk.WithHostProvider(&hosts{}),
		zk.WithLogger(silent{}),
		zk.WithEventCallback(func(e zk.Event) {
			if e.Type == zk.EventSession {
				c.states <- e.State
			}
		}),
	)
	require.NoError(t, err)
	c.Conn = conn
	t.Cleanup(conn.Close)
	c.wantState(zk.StateHasSession)
	return c
}

// wantState waits until the session has a state.
func (c *client) wantState(want zk.State) {
	c.t.Helper()
	late := time.After(patience)
	for {
		select {
		case got := <-c.states:
			if got == want {
				return
			}
		case <-late:
			c.t.Fatalf("not in %v within %v", want, patience)
		}
	}
}

func (c *client) create(path, data string, flags int32) string {
	c.t.Helper()
	got, err := c.Create(path, []byte(data), flags, openACL)
	require.NoError(c.t, err)
	return got
}

func (c *client) set(path, data string) {
	c.t.Helper()
	_, err := c.Set(path, []byte(data), -1)
	require.NoError(c.t, err)
}

func (c *client) delete(path string) {
	c.t.Helper()
	require.NoError(c.t, c.Delete(path, -1))
}

// sync lets this server apply all transactions that are committed: see peer.sync.
func (c *client) sync(path string) {
	c.t.Helper()
	_, err := c.Multi(&zk.CheckVersionRequest{Path: path, Version: -1})
	require.NoError(c.t, err)
}

// stat returns the node's stat, or nil if there is no such node.
func (c *client) stat(path string) *zk.Stat {
	c.t.Helper()
	is, stat, err := c.Exists(path)
	require.NoError(c.t, err)
	if !is {
		return nil
	}
	return stat
}

// wantEvent waits until a watch fires.
func wantEvent(t *testing.T, watch <-chan zk.Event, typ zk.EventType, path string) {
	t.Helper()
	select {
	case e := <-watch:
		require.NoError(t, e.Err)
		require.Equal(t, typ, e.Type)
		require.Equal(t, path, e.Path)
	case <-time.After(patience):
		t.Fatalf("no %v of %s within %v", typ, path, patience)
	}
}

// wantQuiet requires that no earlier change fires the watch. It waits for the reply to a
// transaction without effect, which comes after the events.
func wantQuiet(t *testing.T, c *client, watch <-chan zk.Event) {
	t.Helper()
	c.sync("/")
	select {
	case e := <-watch:
		t.Fatalf("unexpected event %+v", e)
	default:
	}
}
