package zktest

import (
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// memoryAddress stands for the server on links, which ignore addresses. It is a documentation
// address (RFC 5737): a client without the link's Dial cannot reach a real ZooKeeper by mistake. An
// IP address needs no resolver, which a synctest bubble does not have.
const memoryAddress = "192.0.2.1:2181"

// Server is an in-memory ZooKeeper server with its network. Make it with Start
// in tests and with New elsewhere.
type Server struct {
	core  *zkserver.Server
	tasks sync.WaitGroup

	mu     sync.Mutex
	tcp    []string
	closed bool
}

// New starts a server. Close ends it. The error wraps framework.ErrInvalid for an invalid option.
func New(opts ...Option) (*Server, error) {
	var config zkserver.Config
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(&config); err != nil {
			return nil, err
		}
	}
	core, err := zkserver.New(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOption, err)
	}
	return &Server{core: core}, nil
}

// Start starts a server for a test and closes it at the end of the test. It fails the
// test for an invalid option, and at the end if Err is not nil.
func Start(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	if err != nil {
		tb.Fatalf("zktest: start: %v", err)
		return nil
	}
	tb.Cleanup(func() {
		tb.Helper()
		s.Close()
		if err := s.Err(); err != nil {
			tb.Fatalf("zktest: %v", err)
		}
	})
	return s
}

// Err is nil while the server serves. It wraps ErrSessionTooLarge after the end of a session with
// too many ephemeral nodes: their paths did not fit into one transaction of about 2 MB, which is
// 20,000 to 30,000 locks. An ensemble cannot serve again after that (ZOOKEEPER-4306), so this
// server cuts all connections and refuses new sessions.
func (s *Server) Err() error { return s.core.Failure() }

// Close cuts all connections and waits until no goroutine of the server is
// left. A second Close has no effect.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.core.Close()
	s.tasks.Wait()
}

// Servers returns the addresses for the configuration of clients: those of ListenTCP, or
// without one an address for clients that dial through a Link.
func (s *Server) Servers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tcp) > 0 {
		return slices.Clone(s.tcp)
	}
	return []string{memoryAddress}
}

// ListenTCP serves real connections on a TCP address too, such as
// "127.0.0.1:0", and returns the address it got. It returns an
// error on a closed server.
func (s *Server) ListenTCP(addr string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errClosed
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("zktest: listen on %s: %w", addr, err)
	}
	s.tcp = append(s.tcp, ln.Addr().String())
	s.tasks.Go(func() { _ = s.core.Serve(ln) }) // it ends when the server is closed
	return ln.Addr().String(), nil
}
