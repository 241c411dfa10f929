package zkserver

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// newTestClients makes an empty set of clients of the server.
func newTestClients(t *testing.T, s *Server) *testClients {
	st := &testClients{t: t, dial: func() net.Conn { return pipeTo(t, s) }, readTimeout: time.Hour,
		names: map[int64]string{}}
	t.Cleanup(func() {
		for _, nc := range st.opened {
			_ = nc.Close()
		}
	})
	return st
}

// joinFor makes a client with a session of this timeout.
func (st *testClients) joinFor(name string, timeout time.Duration) *rawClient {
	r := st.client(name)
	require.True(st.t, r.open(wire.ConnectRequest{Timeout: int32(timeout.Milliseconds())}))
	return r
}

// call sends a request and returns its answer. It ignores watch events.
func (r *rawClient) call(op wire.Op, body wire.Request) (wire.ReplyHeader, wire.Decoder) {
	r.send(op, body)
	return r.await()
}

func (r *rawClient) await() (wire.ReplyHeader, wire.Decoder) {
	for {
		frame, err := r.frame()
		require.NoError(r.st.t, err)
		d := wire.NewDecoder(frame)
		var head wire.ReplyHeader
		if head.Decode(&d); head.Xid != wire.XidNotify {
			return head, d
		}
	}
}

// event is the next frame, which must be a watch event.
func (r *rawClient) event() wire.WatchEvent {
	frame, err := r.frame()
	require.NoError(r.st.t, err)
	d := wire.NewDecoder(frame)
	var head wire.ReplyHeader
	head.Decode(&d)
	require.Equal(r.st.t, wire.XidNotify, head.Xid)
	var e wire.WatchEvent
	e.Decode(&d)
	require.NoError(r.st.t, d.Err())
	return wire.WatchEvent{Type: e.Type, Path: e.Path}
}

// mustCall is call for a request that must succeed.
func (r *rawClient) mustCall(op wire.Op, body wire.Request) wire.Decoder {
	head, d := r.call(op, body)
	require.Equal(r.st.t, wire.OK, head.Err, "%v", op)
	return d
}

// waitForClose waits until the server has closed the connection.
func (r *rawClient) waitForClose() {
	for {
		if _, err := r.frame(); err != nil {
			require.Equal(r.st.t, "closed", describeReadError(err))
			return
		}
	}
}

// addSilentConnection adds a connection with a session, without goroutines and without a network.
func addSilentConnection(s *Server) *connection {
	var hello wire.Encoder
	(&wire.ConnectRequest{Timeout: 10000}).Encode(&hello)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.connections.addConnection(silentConn{})
	if !s.processor.connect(c, hello.Bytes()) {
		panic("the server refused a session")
	}
	return c
}

// checkInvariants requires that the parts of the server's state are consistent.
func checkInvariants(t *testing.T, s *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tree, sessions := s.db.tree, s.db.sessions
	ephemerals, withLifetime := 0, 0
	for path, n := range tree.nodes {
		require.Equal(t, path, n.path)
		if set := tree.lifetimeSet(n); set != nil {
			require.Same(t, n, set.nodes[n.positions[byLifetime]])
			withLifetime++
		}
		if n.kind == Ephemeral {
			ephemerals++
			require.Contains(t, sessions.byID, n.owner)
		}
		if path == "/" {
			continue
		}
		require.Same(t, n, n.parent.children.nodes[n.positions[asChild]])
		require.Same(t, n.parent, tree.nodes[n.parent.path])
	}
	require.Equal(t, len(tree.nodes)-1, tree.findNode("/").countDescendants())
	require.Equal(t, ephemerals, tree.countEphemerals())
	require.Equal(t, len(tree.containersAndTTLs.nodes), withLifetime-ephemerals)
	for id := range tree.ephemerals {
		require.Contains(t, sessions.byID, id)
	}
	for _, sess := range sessions.byID {
		require.Same(t, sess, sessions.expiry[sess.position])
	}
	require.Len(t, sessions.expiry, len(sessions.byID))
	for id, c := range s.connections.bySession {
		require.False(t, c.detached)
		require.Equal(t, id, c.session.id)
	}
	checkWatchManager(t, s.db.dataWatches)
	checkWatchManager(t, s.db.childWatches)
}

func checkWatchManager(t *testing.T, m *watchManager) {
	total, recursive := 0, 0
	for path, watchers := range m.byPath {
		require.NotEmpty(t, watchers)
		for w, mode := range watchers {
			require.False(t, w.(*connection).detached)
			require.Contains(t, m.byWatcher[w], path)
			total++
			if mode == PersistentRecursive {
				recursive++
			}
		}
	}
	require.Equal(t, total, m.total)
	require.Equal(t, recursive, m.recursive)
	for _, paths := range m.byWatcher {
		require.NotEmpty(t, paths)
		total -= len(paths)
	}
	require.Zero(t, total)
}
