package zkserver

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// ErrClosed is returned by Serve on a server that has been closed.
var ErrClosed = errors.New("zkserver: server is closed")

// defaultTraceMask is what gtmk tells of a fresh server.
const defaultTraceMask = 306

// acceptPause is the wait after a failed accept, as when file descriptors have
// run out.
const acceptPause = 10 * time.Millisecond

// Server is one ZooKeeper server. Make it with New; end it with Close.
type Server struct {
	config  Config
	started time.Time
	secret  passwords
	done    chan struct{} // closed by Close
	tasks   sync.WaitGroup

	mu           sync.Mutex
	zxid         int64
	tree         *tree
	sessions     map[int64]*session
	nextSession  int64
	expiry       expiryQueue
	dataWatches  watchTable
	childWatches watchTable
	reaper       *time.Timer
	reapMissed   bool // while frozen
	skew         time.Duration

	conns     map[*conn]struct{} // those not wholly closed, dead ones included
	alive     int                // those not dead
	nextConn  int64
	listeners map[net.Listener]struct{}
	closed    bool
	frozen    bool
	thawed    sync.Cond
	failure   error // why nobody is served any more
	traceMask int64

	received, sent int64
	requests       map[wire.Op]int64
	observers      []*observer
	faults         []*Fault

	// What one request after the other is worked out in.
	request request
	txn     txn
	answer  wire.Encoder
	scratch wire.Encoder
	hit     []*conn
}

// New starts a server that holds an empty tree and serves nobody yet.
func New(config Config) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	now := time.Now()
	s := &Server{
		config: config.withDefaults(), started: now, secret: newPasswords(), done: make(chan struct{}),
		tree: newTree(), sessions: map[int64]*session{}, nextSession: firstSessionID(now),
		dataWatches: newWatchTable(), childWatches: newWatchTable(),
		conns: map[*conn]struct{}{}, listeners: map[net.Listener]struct{}{},
		requests: map[wire.Op]int64{}, traceMask: defaultTraceMask,
	}
	s.thawed.L = &s.mu
	s.mu.Lock() // the timers' callbacks wait until they are in place
	defer s.mu.Unlock()
	s.expiry.timer = time.AfterFunc(time.Hour, s.expireDue)
	s.expiry.timer.Stop()
	s.reaper = time.AfterFunc(s.config.ReapInterval, s.reap)
	return s, nil
}

// Serve accepts connections until the listener fails or the server is closed;
// then it returns nil. It closes the listener.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	if !s.register(ln) {
		return ErrClosed
	}
	defer s.unregister(ln)
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			_ = s.ServeConn(nc) // closed by Close: the next accept fails
		case s.isClosed():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("zkserver: accept: %w", err)
		default:
			s.config.Logger.Warn("accept failed", "error", err)
			s.pause(acceptPause)
		}
	}
}

func (s *Server) register(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listeners[ln] = struct{}{}
	return true
}

func (s *Server) unregister(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, ln)
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
	}
}

// ServeConn serves one connection, in goroutines of its own, and owns it from
// now on. It returns ErrClosed, and closes the connection, when the server has
// been closed.
func (s *Server) ServeConn(nc net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close()
		return ErrClosed
	}
	s.nextConn++
	c := newConn(s, nc, s.nextConn)
	if s.crowded(c.ids[0].ID) {
		s.config.Logger.Warn("too many connections", "remote", c.ids[0].ID)
		_ = nc.Close()
		return nil
	}
	s.conns[c] = struct{}{}
	s.alive++
	s.tasks.Go(c.readLoop)
	s.tasks.Go(c.writeLoop)
	return nil
}

// crowded reports whether an address has all the connections it may have.
func (s *Server) crowded(address string) bool {
	if s.config.MaxClientCnxns == 0 {
		return false
	}
	open := 0
	for c := range s.conns {
		if !c.dead && c.ids[0].ID == address {
			open++
		}
	}
	return open >= s.config.MaxClientCnxns
}

// forgetConn is the writer's goodbye.
func (s *Server) forgetConn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close ends all connections and waits until no goroutine of the server is
// left. The tree is gone. A second Close does nothing.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
		s.expiry.timer.Stop()
		s.reaper.Stop()
		for ln := range s.listeners {
			_ = ln.Close()
		}
		for c := range s.conns {
			s.cut(c)
		}
		s.thawed.Broadcast()
	}
	s.mu.Unlock()
	s.tasks.Wait()
}
