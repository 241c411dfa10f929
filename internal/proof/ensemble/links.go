package ensemble

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// links are the proxies between the servers: one for each ordered pair of servers and
// each port at which a server listens for its peers.
type links struct {
	quorum   [][]*Proxy // [i][k]: server i's connections to k's quorum port
	election [][]*Proxy // [i][k]: the same for k's election port
	master   []*Proxy   // each observer's connections to a follower's port for observers
}

// peerPatience lets a server dial a peer that is still starting.
const peerPatience = 5 * time.Second

// newLinks creates a proxy for every pair. quorum and election are the servers' own
// ports.
func newLinks(quorum, election []int) (*links, error) {
	l := &links{}
	var err error
	if l.quorum, err = mesh(quorum); err == nil {
		l.election, err = mesh(election)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	l.rewriteGreetings()
	return l, nil
}

// rewriteGreetings puts the address of the link that leads back into the greeting of each server
// that dials a peer.
func (l *links) rewriteGreetings() {
	for i, row := range l.election {
		for k, p := range row {
			if k != i {
				p.filterUp(rewriteGreeting(l.election[k][i].Addr()))
			}
		}
	}
}

// addMasters creates a link to a follower for each observer. A leader does not listen for
// observers, so the link tries one server after the other.
func (l *links) addMasters(ports []int, observers int) error {
	targets := make([]string, len(ports))
	for i, port := range ports {
		targets[i] = loopback(port)
	}
	for range observers {
		p, err := newProxy(peerPatience, targets...)
		if err != nil {
			return err
		}
		l.master = append(l.master, p)
	}
	return nil
}

func mesh(ports []int) ([][]*Proxy, error) {
	m := make([][]*Proxy, len(ports))
	for i := range m {
		m[i] = make([]*Proxy, len(ports))
	}
	for i := range m {
		for k, port := range ports {
			if k == i {
				continue
			}
			p, err := newProxy(peerPatience, loopback(port))
			if err != nil {
				return m, err
			}
			m[i][k] = p
		}
	}
	return m, nil
}

func (l *links) each(f func(*Proxy)) {
	for _, m := range [][][]*Proxy{l.quorum, l.election} {
		for _, row := range m {
			for _, p := range row {
				if p != nil {
					f(p)
				}
			}
		}
	}
	for _, p := range l.master {
		f(p)
	}
}

func (l *links) close() { l.each((*Proxy).Close) }

// hold holds the bytes that from sends to to, over connections that either of them has made.
func hold(m [][]*Proxy, from, to int) {
	m[from][to].Hold(Up)
	m[to][from].Hold(Down)
}

var errNoLinks = errors.New("ensemble: started without Config.Links")

func (e *Ensemble) checkPair(from, to int) error {
	if err := errors.Join(e.check(from), e.check(to)); err != nil {
		return err
	}
	if from == to {
		return fmt.Errorf("ensemble: no link from server %d to itself", from)
	}
	if e.links == nil {
		return errNoLinks
	}
	return nil
}

// Hold holds the replication traffic that one server sends to another, in this direction only.
// The links for elections stay open, so the servers still exchange votes.
func (e *Ensemble) Hold(from, to int) error {
	if err := e.checkPair(from, to); err != nil {
		return err
	}
	hold(e.links.quorum, from, to)
	return nil
}

// CutOff holds the replication traffic between two servers in both directions. A follower that is
// cut off from its leader still serves its clients' reads and pings, for at most SyncLimit ticks.
func (e *Ensemble) CutOff(a, b int) error {
	return errors.Join(e.Hold(a, b), e.Hold(b, a))
}

// Isolate holds all traffic between a server and all others, also that of elections.
// Clients still reach the server.
func (e *Ensemble) Isolate(i int) error {
	for k := range e.servers {
		if k == i {
			continue
		}
		if err := e.CutOff(i, k); err != nil {
			return err
		}
		hold(e.links.election, i, k)
		hold(e.links.election, k, i)
	}
	return nil
}

// MasterLink returns the link by which observer i gets its packets from a follower, or nil without
// Config.ObserverMasters.
func (e *Ensemble) MasterLink(i int) *Proxy {
	if !e.config.ObserverMasters || e.check(i) != nil || i < e.config.Servers {
		return nil
	}
	return e.links.master[i-e.config.Servers]
}

// Master returns the index of the follower that observer i gets its packets from, or -1 if there is
// none.
func (e *Ensemble) Master(i int) int {
	link := e.MasterLink(i)
	if link == nil {
		return -1
	}
	return slices.IndexFunc(e.layout.master[:e.config.Servers],
		func(port int) bool { return slices.Contains(link.connected(), loopback(port)) })
}

// Heal ends all holds between the servers. The held traffic arrives now.
func (e *Ensemble) Heal() {
	if e.links != nil {
		e.links.each((*Proxy).Heal)
	}
}
