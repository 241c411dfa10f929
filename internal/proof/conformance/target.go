package conformance

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

// Target is a server or an ensemble to test. Its shortest session timeout must be at most
// four seconds. It should look for empty containers every few seconds, or the suite takes
// long.
type Target struct {
	// Servers are the addresses for clients, as host:port.
	Servers []string
	// Dial connects to one of them. If it is nil, net.DialTimeout is used.
	Dial func(network, address string, timeout time.Duration) (net.Conn, error)
}

func (g Target) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if g.Dial != nil {
		return g.Dial(network, address, timeout)
	}
	return net.DialTimeout(network, address, timeout)
}

// behaviour is one behaviour that a server must have.
type behaviour struct {
	name  string
	check func(*testing.T, *fixture)
}

// Run checks every behaviour on the target, each below a node of its own that it removes
// again, so that other tests may use the target at the same time.
func Run(t *testing.T, target Target) {
	for _, group := range []struct {
		name       string
		behaviours []behaviour
	}{
		{"client tree", clientTree},
		{"client acl", clientACL},
		{"client multi", clientMulti},
		{"client watch", clientWatch},
		{"client session", clientSession},
		{"client reaped", clientReaped},
		{"wire create", wireCreate},
		{"wire multi", wireMulti},
		{"wire watch", wireWatch},
		{"wire rewatch", wireRewatch},
		{"wire order", wireOrder},
		{"wire zxid", wireZxid},
		{"wire session", wireSession},
		{"wire query", wireQuery},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, b := range group.behaviours {
				t.Run(b.name, func(t *testing.T) {
					t.Parallel()
					b.check(t, newFixture(t, target))
				})
			}
		})
	}
}

// fixture is what the check of one behaviour uses: a target, and a node of its own on it.
type fixture struct {
	target Target
	root   string
}

func newFixture(t *testing.T, target Target) *fixture {
	t.Helper()
	s := &fixture{target: target, root: fmt.Sprintf("/conformance-%016x", rand.Uint64())}
	p := s.peer(t, 0)
	p.create(s.root, "", 0)
	p.close()
	t.Cleanup(func() { s.removeAll(t) })
	return s
}

// removeAll deletes the fixture's node and all nodes below it.
func (s *fixture) removeAll(t *testing.T) {
	p := s.peer(t, 0)
	p.auth("digest", ownerCredentials) // some behaviours remove everyone's permissions
	p.sync(s.root)
	p.deleteTree(s.root)
	p.close()
}

// ownerCredentials are the credentials with which behaviours protect nodes.
const ownerCredentials = "owner:secret"

// path returns the path of the fixture's node, or of a node below it.
func (s *fixture) path(names ...string) string {
	return strings.Join(append([]string{s.root}, names...), "/")
}

// server returns the address of the i-th server. After the last server comes the first one again.
func (s *fixture) server(i int) string { return s.target.Servers[i%len(s.target.Servers)] }

// soon polls until holds returns true. After patience it fails with what.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// patience bounds every wait. On a server that works, every wait is shorter.
const patience = 30 * time.Second
