package zkserver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/backgroundlog"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// ErrClosed is returned by Serve and ServeConn on a server that has been closed.
var ErrClosed = errors.New("zkserver: server is closed")

// defaultTraceMask is the trace mask before stmk sets another one.
const defaultTraceMask = 306

// acceptRetryDelay is the pause after an accept has failed, for example because no file descriptor
// is free.
const acceptRetryDelay = 10 * time.Millisecond

// maxHandshake is the largest first frame in bytes. A Java client's first frame has 45.
const maxHandshake = 1 << 10

// Server is one ZooKeeper server. New makes it, and Close ends it.
type Server struct {
	config Config
	done   chan struct{} // closed by Close
	tasks  sync.WaitGroup
	// the server logs while it holds its mutex, and a handler may call the server
	logging backgroundlog.Log

	mu             sync.Mutex // guards all fields below
	db             *database
	connections    *connections
	processor      *requestProcessor
	commands       *fourLetterCommands
	faults         *faultInjector
	listeners      map[net.Listener]struct{}
	containerTimer *time.Timer
	followerTimer  *time.Timer // nil without Config.Followers

	closed                bool
	frozen                bool
	thawed                sync.Cond
	containerCheckPending bool // a check was due while the server was frozen
}

// New makes a server with an empty tree. Serve and ServeConn give it connections.
func New(config Config) (*Server, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if err := checkWhitelist(config.FourLetterWords); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	s := &Server{done: make(chan struct{}), listeners: map[net.Listener]struct{}{}}
	config.Logger = s.logging.NewLogger(config.Logger)
	s.config = config
	s.thawed.L = &s.mu
	s.mu.Lock() // the timers' callbacks wait until the server is complete
	defer s.mu.Unlock()
	s.db = newDatabase(config, newSessionTracker(config, time.Now(), s.expireDueSessions), s.stopServing)
	s.connections = newConnections(config, func(c *connection) { s.db.removeWatcher(c) }, s.releaseDueFrames)
	s.faults = &faultInjector{lock: &s.mu}
	s.processor = newRequestProcessor(config, s.db, s.connections, s.faults)
	s.commands = &fourLetterCommands{config: config, db: s.db, connections: s.connections, port: s.lowestPort,
		traceMask: defaultTraceMask}
	s.containerTimer = time.AfterFunc(config.ContainerInterval, s.Reap)
	if config.Followers {
		s.followerTimer = time.AfterFunc(config.Tick/2, s.pingFollowers)
	}
	return s, nil
}

// Serve accepts connections until the listener is closed, or until the server is closed. In the
// second case it returns nil. It closes the listener.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	if !s.addListener(ln) {
		return ErrClosed
	}
	defer s.removeListener(ln)
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			_ = s.ServeConn(nc) // it fails if the server is closed; then the next accept fails, too
		case s.isClosed():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("zkserver: accept: %w", err)
		default:
			s.config.Logger.Warn("accept failed", "error", err)
			s.waitUnlessClosed(acceptRetryDelay)
		}
	}
}

func (s *Server) addListener(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listeners[ln] = struct{}{}
	return true
}

func (s *Server) removeListener(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, ln)
}

// lowestPort returns the lowest TCP port on which the server listens, or -1.
func (s *Server) lowestPort() int {
	port := -1
	for ln := range s.listeners {
		if a, is := ln.Addr().(*net.TCPAddr); is && (port < 0 || a.Port < port) {
			port = a.Port
		}
	}
	return port
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) waitUnlessClosed(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
	}
}

// ServeConn serves one connection in goroutines of its own, and will close it. If the server has
// been closed, it closes the connection and returns ErrClosed.
func (s *Server) ServeConn(nc net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close()
		return ErrClosed
	}
	ip, limit := remoteIPOf(nc), s.config.MaxClientCnxns
	if limit > 0 && s.connections.countFrom(ip) >= limit {
		s.config.Logger.Warn("too many connections", "remote", ip)
		_ = nc.Close()
		return nil
	}
	c := s.connections.addConnection(nc)
	s.tasks.Go(func() { s.readRequests(c) })
	s.tasks.Go(func() { s.writeReplies(c) })
	return nil
}

// readRequests reads and processes the requests of a connection until it ends.
func (s *Server) readRequests(c *connection) {
	defer s.endReading(c)
	c.readFrames(s.config.JuteMaxBuffer,
		func(in *bufio.Reader) bool { return s.beginConnection(c, in) },
		func(frame []byte) bool { return s.processFrame(c, frame) })
}

// processFrame processes the request in the frame. It returns false if the connection ends.
func (s *Server) processFrame(c *connection, frame []byte) bool {
	if !s.lockFor(c) {
		return false
	}
	defer s.mu.Unlock()
	return s.processor.takeRequest(c, frame)
}

// beginConnection reads a four-letter word or a handshake. It returns false if the connection ends.
func (s *Server) beginConnection(c *connection, in *bufio.Reader) bool {
	first, err := in.Peek(4)
	if err != nil {
		return false
	}
	if _, known := fourLetterWords[string(first)]; known {
		s.answerFourLetterWord(c, string(first), in)
		return false
	}
	frame, err := wire.ReadFrame(in, nil, min(maxHandshake, s.config.JuteMaxBuffer))
	if err != nil || !s.lockFor(c) {
		return false
	}
	defer s.mu.Unlock()
	return s.processor.connect(c, frame)
}

// answerFourLetterWord answers a four-letter word and closes the connection.
func (s *Server) answerFourLetterWord(c *connection, word string, in *bufio.Reader) {
	allowed := s.commands.allowsWord(word)
	var command [len(setTraceMask) + 8]byte
	if word == setTraceMask && allowed {
		if in.Buffered() < len(command) {
			return // as the real server, which reads only what has come with the word
		}
		_, _ = io.ReadFull(in, command[:])
	}
	if !s.lockFor(c) {
		return
	}
	defer s.mu.Unlock()
	s.connections.countReceived(c)
	answer := word + " is not executed because it is not in the whitelist.\n"
	if allowed {
		answer = s.commands.runCommand(word, int64(binary.BigEndian.Uint64(command[len(setTraceMask):])))
	}
	s.connections.sendFrame(c, []byte(answer), 0)
	s.connections.closeWhenWritten(c)
}

// lockFor locks the server's mutex for a connection. While the server is frozen, it waits. If the
// connection has ended, it returns false and does not lock.
func (s *Server) lockFor(c *connection) bool {
	s.mu.Lock()
	for s.frozen && !s.closed && !c.detached {
		s.thawed.Wait()
	}
	if s.closed || c.detached {
		s.mu.Unlock()
		return false
	}
	return true
}

// endReading ends a connection after its reading goroutine has ended, unless the last frames are
// still to be written.
func (s *Server) endReading(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.detached {
		s.connections.cutConnection(c)
	}
}

func (s *Server) writeReplies(c *connection) {
	c.outgoing.writeLoop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections.removeConnection(c)
}

// releaseDueFrames sends the delayed frames of a connection that are due, unless the server is
// frozen.
func (s *Server) releaseDueFrames(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.frozen {
		c.outgoing.releaseDue()
	}
}

// expireDueSessions ends the sessions that have expired. On a frozen server it does nothing, since
// Thaw does it.
func (s *Server) expireDueSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && !s.frozen {
		s.expireSessions()
	}
}

// expireSessions ends the sessions that have expired, and sets the timer for the next one.
func (s *Server) expireSessions() {
	for s.db.failure == nil {
		sess := s.db.sessions.nextExpired()
		if sess == nil {
			s.db.sessions.resetTimer()
			return
		}
		s.expireSession(sess)
	}
}

// expireSession ends a session and cuts its connection.
func (s *Server) expireSession(sess *session) {
	s.config.Logger.Info("session expired", "session", sessionName(sess.id), "ephemerals",
		len(s.db.tree.ephemeralsOf(sess.id)))
	s.db.closeSession(sess)
	if c := s.connections.bySession[sess.id]; c != nil {
		s.connections.cutExpired(c)
	}
}

// pingFollowers sends the leader's PING to all followers, and sets the timer for the next PING.
func (s *Server) pingFollowers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if !s.frozen {
		s.pingAll()
	}
	s.followerTimer.Reset(s.config.Tick / 2)
}

func (s *Server) pingAll() {
	for _, c := range s.connections.byAge() {
		if c.follower != nil && c.session != nil {
			c.follower.ping(func() { s.db.sessions.touchIfOpen(c.session) })
		}
	}
}

// checkContainers removes the containers and TTL nodes that have expired, and sets the timer for
// the next check.
func (s *Server) checkContainers() {
	if s.db.failure != nil {
		return
	}
	s.db.removeExpiredNodes()
	s.containerCheckPending = false
	s.containerTimer.Reset(s.config.ContainerInterval)
}

// stopServing cuts all connections and stops the timers, because the server has failed or is
// closed.
func (s *Server) stopServing() {
	s.connections.cutAll()
	s.db.sessions.stopTimer()
	s.containerTimer.Stop()
	if s.followerTimer != nil {
		s.followerTimer.Stop()
	}
}

// Close ends all connections and waits until all goroutines of the server have ended. The nodes are
// lost. Later calls only wait.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
		for ln := range s.listeners {
			_ = ln.Close()
		}
		s.stopServing()
		s.thawed.Broadcast()
	}
	s.mu.Unlock()
	s.tasks.Wait()
	<-s.logging.Done()
}
