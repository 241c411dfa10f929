package zkserver

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// newStage makes a stage for clients of the server.
func newStage(t *testing.T, s *Server) *stage {
	st := &stage{t: t, dial: func() net.Conn { return pipeTo(t, s) }, patience: time.Hour, names: map[int64]string{}}
	t.Cleanup(func() {
		for _, nc := range st.opened {
			_ = nc.Close()
		}
	})
	return st
}

// joinFor makes a client with a session of that timeout.
func (st *stage) joinFor(name string, timeout time.Duration) *raw {
	r := st.client(name)
	require.True(st.t, r.open(wire.ConnectRequest{Timeout: int32(timeout.Milliseconds())}))
	return r
}

// call sends a request and returns its answer; events are skipped.
func (r *raw) call(op wire.Op, body wire.Request) (wire.ReplyHeader, wire.Decoder) {
	r.send(op, body)
	return r.await()
}

func (r *raw) await() (wire.ReplyHeader, wire.Decoder) {
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

// must is call for requests that succeed.
func (r *raw) must(op wire.Op, body wire.Request) wire.Decoder {
	head, d := r.call(op, body)
	require.Equal(r.st.t, wire.OK, head.Err, "%v", op)
	return d
}

// gone waits for the connection's end.
func (r *raw) gone() {
	for {
		if _, err := r.frame(); err != nil {
			require.Equal(r.st.t, "closed", silence(err))
			return
		}
	}
}

// checkInvariants looks for contradictions in the server's state.
func checkInvariants(t *testing.T, s *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ephemerals, owned := 0, 0
	for path, n := range s.tree.nodes {
		require.Equal(t, path, n.path)
		if n.home != nil {
			require.Same(t, n, n.home.nodes[n.slots[asOwned]])
			owned++
		}
		if n.kind == Ephemeral {
			ephemerals++
			require.Same(t, n.home, &s.sessions[n.owner].ephemerals)
		}
		if path == "/" {
			continue
		}
		require.Same(t, n, n.parent.children.nodes[n.slots[asChild]])
		require.Same(t, n.parent, s.tree.nodes[n.parent.path])
	}
	require.Equal(t, len(s.tree.nodes)-1, s.tree.get("/").descendants())
	require.Equal(t, ephemerals, s.tree.ephemerals)
	for _, sess := range s.sessions {
		owned -= len(sess.ephemerals.nodes)
		require.Same(t, sess, s.expiry.sessions[sess.place])
	}
	require.Equal(t, len(s.tree.reapable.nodes), owned)
	require.Len(t, s.expiry.sessions, len(s.sessions))
	checkWatchTable(t, &s.dataWatches)
	checkWatchTable(t, &s.childWatches)
}

func checkWatchTable(t *testing.T, w *watchTable) {
	total, recursive := 0, 0
	for path, conns := range w.byPath {
		require.NotEmpty(t, conns)
		for c, mode := range conns {
			require.False(t, c.dead)
			require.Contains(t, w.byConn[c], path)
			total++
			if mode == PersistentRecursive {
				recursive++
			}
		}
	}
	require.Equal(t, total, w.total)
	require.Equal(t, recursive, w.recursive)
	for _, paths := range w.byConn {
		require.NotEmpty(t, paths)
		total -= len(paths)
	}
	require.Zero(t, total)
}
