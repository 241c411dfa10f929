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
)

// serverList are a client's servers, shared by its sessions. They are tried in rounds: each round
// has all addresses of all servers once, in random order, so that many clients spread over them.
// Names are looked up for each round. serverList remembers why each address failed last and pauses
// after a round in which all have failed.
type serverList struct {
	resolvesNames bool // false: the dialer looks names up
	log           *slog.Logger

	mu                sync.Mutex
	list              []string         // as configured
	replacements      int              // how often list was replaced
	round             []string         // labels, see addressLabel
	nextInRound       int              // in round
	lastTried         string           // the label that was tried last
	connectionProven  bool             // the present connection was proven; the next round begins when it is lost
	failedSinceProven bool             // an address has failed since one was proven
	failures          map[string]error // by label
	pauses            *backoff.Backoff
	retryBase         time.Duration
	outage            time.Time // when the warning was logged that no server can be used; zero without an outage
}

// resolver looks servers' names up. Tests replace it.
var resolver atomic.Pointer[net.Resolver]

func init() { resolver.Store(net.DefaultResolver) }

// DialFunc opens a connection to a server, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func newServerList(cfg Config, resolvesNames bool, log *slog.Logger) *serverList {
	return &serverList{resolvesNames: resolvesNames, log: log, list: slices.Clone(cfg.Servers),
		failures: map[string]error{}, pauses: newConnectPauses(cfg), retryBase: cfg.RetryBase}
}

// newConnectPauses returns the pauses between attempts to connect, and between sessions. A session
// that waits for a server has some tries before it ends.
func newConnectPauses(cfg Config) *backoff.Backoff {
	return backoff.New(cfg.RetryBase, max(cfg.RetryBase, min(cfg.RetryMax, cfg.SessionTimeout/pauseFraction)))
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

// nextAddress returns the label of the address to try next. ctx bounds the look-up of names.
func (s *serverList) nextAddress(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.nextInRound >= len(s.round) {
		list, replacements := s.list, s.replacements
		s.mu.Unlock()
		round := s.resolveAll(ctx, list)
		s.mu.Lock()
		if s.replacements == replacements { // else look up the new servers
			s.beginRound(round)
		}
	}
	s.lastTried = s.round[s.nextInRound]
	s.nextInRound++
	return s.lastTried
}

// beginRound begins a round. The address that was tried last comes last in it. Guarded by mu.
func (s *serverList) beginRound(round []string) {
	rand.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
	if i := slices.Index(round, s.lastTried); i >= 0 {
		round = append(slices.Delete(round, i, i+1), s.lastTried)
	}
	s.round, s.nextInRound = round, 0
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

// resolveServer returns the labels of a server's addresses. It returns a name that cannot be looked
// up as it is, so that the dial fails with the reason.
func (s *serverList) resolveServer(ctx context.Context, server string) []string {
	host, port, err := net.SplitHostPort(server)
	if _, literal := netip.ParseAddr(host); !s.resolvesNames || err != nil || literal == nil {
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

// replaceServers replaces the servers. The next dial begins a round with the new ones.
func (s *serverList) replaceServers(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.nextInRound = list, len(s.round)
	s.replacements++
}

// markProven records that a session has proven its life on the address that was tried last.
func (s *serverList) markProven() {
	server, outage := s.endOutage()
	if !outage.IsZero() {
		s.log.Info("a server can be used again", "server", server, "after", time.Since(outage).Round(time.Millisecond))
	}
}

// endOutage forgets all failures. It returns the server that can be used, and since when none
// could, if that was logged.
func (s *serverList) endOutage() (server string, outage time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failedSinceProven, s.connectionProven, s.nextInRound = false, true, len(s.round)
	delete(s.failures, s.lastTried)
	server, outage = s.lastTried, s.outage
	s.outage = time.Time{}
	s.pauses.Reset()
	return server, outage
}

// markAnswered records that the address that was tried last has said that the session has expired.
// The ensemble works, so a new session is opened soon. The pauses go on growing if that fails.
func (s *serverList) markAnswered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failedSinceProven, s.connectionProven = false, true
}

// recordFailure records why an address could not be used.
func (s *serverList) recordFailure(label string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failedSinceProven = true
	s.failures[label] = err
}

// pauseBetweenRounds pauses before the next attempt. After a lost connection the pause is short and
// random, since all clients of a server lose their connections together. After a round in which all
// addresses have failed it is longer, but at most a quarter of the rest of the session's lease, so
// that servers which come back in time save the session. After the end of the session it is brief,
// since the session has only a second to send its close.
func (s *serverList) pauseBetweenRounds(session, connections context.Context, lease time.Duration) error {
	d, failures := s.nextPause(lease)
	if failures != nil {
		s.warnOfOutage(failures, lease)
	}
	if backoff.Pause(session, d) == nil {
		return connections.Err()
	}
	return backoff.Pause(connections, min(d, s.retryBase))
}

// nextPause returns the pause before the next attempt, for a session with this rest of its lease.
// When an outage begins, it also returns why each address has failed.
func (s *serverList) nextPause(lease time.Duration) (d time.Duration, outage []ServerError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.connectionProven:
		s.connectionProven = false
		return rand.N(s.retryBase), nil
	case s.failedSinceProven && s.nextInRound >= len(s.round):
		if s.outage.IsZero() {
			s.outage = time.Now()
			outage = s.failuresOfRound()
		}
		return limitPause(s.pauses.Next(), s.retryBase, lease), outage
	}
	return 0, nil
}

// warnOfOutage logs which servers cannot be used, why, and how long holds last.
func (s *serverList) warnOfOutage(failures []ServerError, lease time.Duration) {
	attributes := []any{"servers", (&ConnectError{Err: ErrSuspended, Servers: failures}).describeServers()}
	if lease > 0 {
		attributes = append(attributes, "holds_stand_for", lease.Round(time.Millisecond))
	}
	s.log.Warn("no server can be used", attributes...)
}

// lastFailures is failuresOfRound for callers that do not hold mu.
func (s *serverList) lastFailures() []ServerError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failuresOfRound()
}

// failuresOfRound lists each address of the present round with its last failure. Guarded by mu.
func (s *serverList) failuresOfRound() []ServerError {
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

// newDialer returns a dialer of TCP connections to labels of servers, with TLS if it is configured.
// A server's certificate must have the server's name.
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
