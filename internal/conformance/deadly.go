package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// LargestClose is the largest transaction with which a session may be closed under the setting with this
// jute.maxbuffer, in bytes.
func LargestClose(juteMaxBuffer int) int { return 2 * juteMaxBuffer }

// What the transaction that closes a session has besides its paths, and before each of these.
const closeOverhead, pathOverhead = 48, 4

// CloseBySize opens a session, gives it ephemeral nodes until the transaction that closes it has this size in bytes,
// and asks for the close. It does not wait for an answer.
func CloseBySize(t *testing.T, target Target, size int) {
	t.Helper()
	s := &site{target: target}
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

// SpoilUsage sets a quota on a node, stores a usage that does not parse, and makes the servers count for it.
func SpoilUsage(t *testing.T, target Target) {
	t.Helper()
	s := &site{target: target}
	p := s.peer(t, 0)
	p.create("/spoiled", "", 0)
	p.create("/zookeeper/quota/spoiled", "", 0)
	p.create("/zookeeper/quota/spoiled/zookeeper_limits", "count=1", 0)
	p.create("/zookeeper/quota/spoiled/zookeeper_stats", "", 0)
	p.set("/zookeeper/quota/spoiled/zookeeper_stats", "no usage")
	p.send(wire.OpCreate, creation("/spoiled/kid", "", 0))
	_, _ = p.read() // an answer, or the connection's end
}

// RequireService sees that a session can be opened and closed.
func RequireService(t *testing.T, target Target) {
	t.Helper()
	s := &site{target: target}
	soon(t, "a session", func() bool { return s.serves() })
}

// RequireNoService sees that the servers grant no session any more, for ten seconds on end. An ensemble may take some
// seconds to break.
func RequireNoService(t *testing.T, target Target) {
	t.Helper()
	s := &site{target: target}
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
func (s *site) serves() bool {
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
