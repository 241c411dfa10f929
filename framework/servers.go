package framework

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// servers is the rotation of a client's servers, shared by its sessions. It remembers why each
// failed last and slows down when a whole round has failed.
type servers struct {
	mu       sync.Mutex
	list     []string
	next     int
	failed   int // in a row
	failures map[string]error
	pauses   *Retries
}

func newServers(cfg Config) *servers {
	list := append([]string(nil), cfg.Servers...)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return &servers{list: list, failures: map[string]error{}, pauses: newRetries(cfg)}
}

// Next returns the server to try now.
func (s *servers) Next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	server := s.list[s.next%len(s.list)]
	s.next++
	return server
}

// Connected tells that the present server answered.
func (s *servers) Connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = 0
	s.pauses.Reset()
}

// fail records why a server could not be used.
func (s *servers) fail(server string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed++
	s.failures[server] = err
}

// rest pauses before the next attempt when every server has just failed, but briefly once the session has ended: then
// there is a second to tell a server of it.
func (s *servers) rest(session, link context.Context) error {
	s.mu.Lock()
	var d time.Duration
	if s.failed > 0 && s.failed%len(s.list) == 0 {
		d = s.pauses.next()
	}
	s.mu.Unlock()
	if Pause(session, d) == nil {
		return link.Err()
	}
	return Pause(link, min(d, s.pauses.cfg.RetryBase))
}

// causes lists each server with the last reason it gave.
func (s *servers) causes() []ServerError {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]ServerError, len(s.list))
	for i, server := range s.list {
		out[i] = ServerError{server, s.failures[server]}
	}
	slices.SortFunc(out, func(a, b ServerError) int { return strings.Compare(a.Server, b.Server) })
	return out
}
