package framework

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/link"
)

// serverList are a client's servers, shared by its sessions. They are tried in rounds: each round has all addresses of all servers once, in random order, so that
// many clients spread over them. Names are looked up for each round. serverList remembers why each address failed last and pauses
// after a round in which all have failed.
type serverList struct {
	expands bool // names are looked up here, not by the dialer
	log     *slog.Logger

	mu        sync.Mutex
	list      []string // as configured
	round     []string // labels, see label
	next      int      // in round
	last      string   // the label that was tried last
	standing  bool     // the present connection was proven; the next round begins when it is lost
	failed    bool     // and no server was proven since
	failures  map[string]error
	pauses    *backoff.Backoff
	retryBase time.Duration
	outage    time.Time // since when no server could be used and a warning tells of it; zero while there is none
}

// resolver looks servers' names up. Tests replace it.
var resolver atomic.Pointer[net.Resolver]

func init() { resolver.Store(net.DefaultResolver) }

// DialFunc opens a connection to a server, as net.Dialer.DialContext does.
type DialFunc = link.DialFunc

func newServers(cfg Config, expands bool, log *slog.Logger) *serverList {
	return &serverList{expands: expands, log: log, list: slices.Clone(cfg.Servers), failures: map[string]error{}, pauses: backoff.New(cfg.RetryBase, cfg.RetryMax), retryBase: cfg.RetryBase}
}

// addressLabel names an address of a server by both, or the server alone if that is its address.
func addressLabel(server, address string) string { return server + "/" + address }

// splitLabel returns the server and the address of a label.
func splitLabel(label string) (server, address string) {
	server, address, found := strings.Cut(label, "/")
	if !found {
		return label, label
	}
	return server, address
}

// nextAddress returns the label of the address to try now. ctx bounds the look-up of names.
func (s *serverList) nextAddress(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= len(s.round) {
		list := s.list
		s.mu.Unlock()
		round := s.resolveAll(ctx, list)
		s.mu.Lock()
		s.beginRound(round)
	}
	s.last = s.round[s.next]
	s.next++
	return s.last
}

// beginRound starts a round, which ends with the address that was tried last. Guarded by mu.
func (s *serverList) beginRound(round []string) {
	rand.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
	if i := slices.Index(round, s.last); i >= 0 {
		round = append(slices.Delete(round, i, i+1), s.last)
	}
	s.round, s.next = round, 0
	for known := range s.failures {
		if !slices.Contains(round, known) {
			delete(s.failures, known)
		}
	}
}

// resolveAll returns the labels of all servers' addresses, each address once.
func (s *serverList) resolveAll(ctx context.Context, list []string) []string {
	found := make([][]string, len(list))
	var lookups sync.WaitGroup
	for i, server := range list {
		lookups.Go(func() { found[i] = s.resolveServer(ctx, server) })
	}
	lookups.Wait()
	known := map[string]bool{}
	return slices.DeleteFunc(slices.Concat(found...), func(l string) bool {
		_, address := splitLabel(l)
		again := known[address]
		known[address] = true
		return again
	})
}

// resolveServer returns the labels of a server's addresses. A name that cannot be looked up stays, for the dial to fail with the reason.
func (s *serverList) resolveServer(ctx context.Context, server string) []string {
	host, port, err := net.SplitHostPort(server)
	if _, literal := netip.ParseAddr(host); !s.expands || err != nil || literal == nil {
		return []string{server}
	}
	addresses, err := resolver.Load().LookupNetIP(ctx, "ip", host)
	if err != nil || len(addresses) == 0 {
		return []string{server}
	}
	labels := make([]string, len(addresses))
	for i, a := range addresses {
		labels[i] = addressLabel(server, net.JoinHostPort(a.Unmap().String(), port))
	}
	return labels
}

// replaceServers makes these the servers, from the next round on, which begins with the next dial.
func (s *serverList) replaceServers(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.next = list, len(s.round)
}

// markProven tells that the present address was proven.
func (s *serverList) markProven() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.standing, s.next = false, true, len(s.round)
	delete(s.failures, s.last)
	if !s.outage.IsZero() {
		s.log.Info("a server can be used again", "server", s.last, "after", time.Since(s.outage))
		s.outage = time.Time{}
	}
	s.pauses.Reset()
}

// recordFailure records why an address could not be used.
func (s *serverList) recordFailure(label string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
	s.failures[label] = err
}

// pauseBetweenRounds pauses before the next attempt: for a random moment after a connection was lost, since all clients of its server lose theirs then, and longer when all
// addresses of a round have failed. Once the session has ended it is brief: then there is a second to tell a server of it.
func (s *serverList) pauseBetweenRounds(session, connections context.Context) error {
	d := s.pause()
	if backoff.Pause(session, d) == nil {
		return connections.Err()
	}
	return backoff.Pause(connections, min(d, s.retryBase))
}

func (s *serverList) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.standing:
		s.standing = false
		return rand.N(s.retryBase)
	case s.failed && s.next >= len(s.round):
		if s.outage.IsZero() {
			s.outage = time.Now()
			s.log.Warn("no server can be used", "servers", (&ConnectError{Err: ErrSuspended, Servers: s.formatFailures()}).reasons())
		}
		return s.pauses.Next()
	}
	return 0
}

// lastFailures lists each address of the present round with the last reason it gave.
func (s *serverList) lastFailures() []ServerError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.formatFailures()
}

// formatFailures is causes. Guarded by mu.
func (s *serverList) formatFailures() []ServerError {
	all := s.round
	if len(all) == 0 {
		all = s.list
	}
	out := make([]ServerError, len(all))
	for i, server := range all {
		out[i] = ServerError{server, s.failures[server]}
	}
	slices.SortFunc(out, func(a, b ServerError) int { return strings.Compare(a.Server, b.Server) })
	return out
}

// newDialer opens TCP connections to labels of servers, encrypted when the configuration says so. A certificate must be one of the server's name.
func newDialer(cfg Config) DialFunc {
	plain := &net.Dialer{Resolver: resolver.Load()}
	return func(ctx context.Context, network, label string) (net.Conn, error) {
		server, address := splitLabel(label)
		if cfg.TLS == nil {
			return plain.DialContext(ctx, network, address)
		}
		own := cfg.TLS.Clone()
		if own.ServerName == "" {
			host, _, err := net.SplitHostPort(server)
			if err != nil {
				return nil, err
			}
			own.ServerName = host
		}
		return (&tls.Dialer{NetDialer: plain, Config: own}).DialContext(ctx, network, address)
	}
}
