package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// LargestClose returns the size, in bytes, of the largest transaction by which a session can be
// closed on servers with this jute.maxbuffer.
func LargestClose(juteMaxBuffer int) int { return 2 * juteMaxBuffer }

// closeOverhead is the size of a transaction that closes a session, without its paths. pathOverhead
// is the size of the length before each path.
const closeOverhead, pathOverhead = 48, 4

// CloseBySize opens a session, creates ephemeral nodes until the transaction that closes the
// session has this size in bytes, and sends the request to close it. It does not wait for an
// answer.
func CloseBySize(t *testing.T, target Target, size int) {
	t.Helper()
	s := &fixture{target: target}
	p := s.peer(t, 0)
	longest, shortest := size/4, 100 // bytes of a path
	for left := size - closeOverhead; left > 0; {
		bytes := min(left, longest)
		if rest := left - bytes; rest > 0 && rest < shortest {
			bytes -= shortest
		}
		left -= bytes
		path := "/large-close-"
		p.create(path+strings.Repeat("x", bytes-pathOverhead-len(path)-10), "", wire.FlagEphemeralSequential)
	}
	p.send(wire.OpCloseSession, &wire.EmptyRequest{})
}

// SpoilUsage sets a quota on a node, stores a usage that cannot be parsed, and writes below the
// node, so that the servers count for the quota.
func SpoilUsage(t *testing.T, target Target) {
	t.Helper()
	s := &fixture{target: target}
	p := s.peer(t, 0)
	p.create("/spoiled", "", 0)
	p.create("/zookeeper/quota/spoiled", "", 0)
	p.create("/zookeeper/quota/spoiled/zookeeper_limits", "count=1", 0)
	p.create("/zookeeper/quota/spoiled/zookeeper_stats", "", 0)
	p.set("/zookeeper/quota/spoiled/zookeeper_stats", "no usage")
	p.send(wire.OpCreate, creation("/spoiled/kid", "", 0))
	_, _ = p.read() // an answer, or the connection's end
}

// RequireService requires that a session can be opened and closed.
func RequireService(t *testing.T, target Target) {
	t.Helper()
	s := &fixture{target: target}
	soon(t, "a session", func() bool { return s.serves() })
}

// RequireNoService waits until the servers have granted no session for ten seconds. An ensemble may
// take some seconds to fail.
func RequireNoService(t *testing.T, target Target) {
	t.Helper()
	s := &fixture{target: target}
	served := time.Now()
	for deadline := served.Add(2 * patience); time.Since(served) < 10*time.Second; time.Sleep(100 * time.Millisecond) {
		if s.serves() {
			served = time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatalf("sessions are still granted after %v", 2*patience)
		}
	}
}

// serves tries to open a session on each server.
func (s *fixture) serves() bool {
	for i := range s.target.Servers {
		conn, err := s.target.dial("tcp", s.server(i), patience)
		if err != nil {
			continue
		}
		resp, err := newLink(conn).connect(wire.ConnectRequest{Timeout: millis(sessionTimeout)})
		conn.Close()
		if err == nil && resp.Session != 0 {
			return true
		}
	}
	return false
}
