package conformance

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

// Target is a server or an ensemble to try. Its sessions must be allowed a timeout of
// four seconds at most as the least one, and its containers must be looked after every
// few seconds, or the suite takes long.
type Target struct {
	// Servers are the addresses for clients, as host:port.
	Servers []string
	// Dial connects to one of them; net.DialTimeout when nil.
	Dial func(network, address string, timeout time.Duration) (net.Conn, error)
}

func (g Target) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if g.Dial != nil {
		return g.Dial(network, address, timeout)
	}
	return net.DialTimeout(network, address, timeout)
}

// behaviour is one thing that a server must do.
type behaviour struct {
	name  string
	holds func(*testing.T, *site)
}

// Run checks every behaviour on the target, each under a node of its own that it removes
// again, so that the target may be shared.
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
					b.holds(t, newSite(t, target))
				})
			}
		})
	}
}

// site is where one behaviour is tried: a target, and a node there of its own.
type site struct {
	target Target
	root   string
}

func newSite(t *testing.T, target Target) *site {
	t.Helper()
	s := &site{target: target, root: fmt.Sprintf("/conformance-%016x", rand.Uint64())}
	p := s.peer(t, 0)
	p.create(s.root, "", 0)
	p.close()
	t.Cleanup(func() { s.removeAll(t) })
	return s
}

// removeAll deletes the site's node and what is under it.
func (s *site) removeAll(t *testing.T) {
	p := s.peer(t, 0)
	p.auth("digest", ownerCredentials) // whatever the behaviour has closed to the world
	p.sync(s.root)
	p.deleteTree(s.root)
	p.close()
}

// ownerCredentials are those that behaviours protect nodes with.
const ownerCredentials = "owner:secret"

// path is a node of the site: the root's, or one below it.
func (s *site) path(names ...string) string {
	return strings.Join(append([]string{s.root}, names...), "/")
}

// server is the address of the i-th server, counted round.
func (s *site) server(i int) string { return s.target.Servers[i%len(s.target.Servers)] }

// soon polls until holds is true, and fails with what otherwise.
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

// patience bounds every wait. Nothing here takes as long on a server that works.
const patience = 30 * time.Second
