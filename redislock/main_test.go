package redislock

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/clock"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs each failed connection
	if addr := os.Getenv(holderEnv); addr != "" {
		holdInThisProcess(addr)
		return
	}
	goleak.VerifyTestMain(m)
}

// inBubble calls f in virtual time, beside an in-memory server whose keys expire by that time.
func inBubble(t *testing.T, f func(t *testing.T, s *memoryServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &memoryServer{Miniredis: miniredis.NewMiniRedis()}
		s.ClockTTL(true)
		t.Cleanup(s.Close)
		f(t, s)
	})
}

type memoryServer struct{ *miniredis.Miniredis }

// newClient returns a client with a link of its own, and closes the client at the end of the test.
func (s *memoryServer) newClient(t *testing.T, change ...func(*redis.Options)) (*redis.Client, *link) {
	client, to := s.connect(change...)
	t.Cleanup(func() {
		// what is given back in the background ends with the expiry
		time.Sleep(2 * DefaultExpiry)
		require.NoError(t, client.Close())
		time.Sleep(2 * time.Second) // the pool looks once more for a server that was away
	})
	return client, to
}

func (s *memoryServer) connect(change ...func(*redis.Options)) (*redis.Client, *link) {
	to := &link{server: s}
	o := &redis.Options{
		Dialer:                   to.dial,
		DialerRetries:            1,
		ReadTimeout:              time.Second,
		DisableIdentity:          true,
		ConnMaxIdleTime:          -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, c := range change {
		c(o)
	}
	return redis.NewClient(o), to
}

// link is the network between a client and the server.
type link struct {
	server *memoryServer

	mu       sync.Mutex
	cut      bool          // nothing arrives in any direction, and no connection is made
	loseNext bool          // the next answer is lost, and its connection
	delay    time.Duration // of each answer
	late     time.Duration // of each request, which arrives also if its connection was closed meanwhile
}

func (l *link) set(change func(l *link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *link) dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("unreachable")}
	}
	server, err := l.server.Dial()
	if err != nil {
		return nil, err
	}
	client, far := net.Pipe()
	go l.carry(far, server, func(l *link) (cut, lose bool, delay time.Duration) { return l.cut, false, l.late })
	go l.carry(server, far, func(l *link) (cut, lose bool, delay time.Duration) {
		lose, l.loseNext = l.loseNext, false
		return l.cut, lose, l.delay
	})
	return linkConn{client}, nil
}

// linkConn is the client's end. It fails as a socket does whose other end has closed.
type linkConn struct{ net.Conn }

func (c linkConn) SetReadDeadline(t time.Time) error {
	_ = c.Conn.SetReadDeadline(t) // a pipe refuses it once its other end has closed
	return nil
}

func (c linkConn) SetWriteDeadline(t time.Time) error {
	_ = c.Conn.SetWriteDeadline(t)
	return nil
}

func (c linkConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: "pipe", Err: syscall.EPIPE}
	}
	return n, err
}

// carry carries what one end sends to the other. It reads all at once, as a socket's buffer does.
func (l *link) carry(from, to net.Conn, state func(*link) (cut, lose bool, delay time.Duration)) {
	var mu sync.Mutex
	var waiting [][]byte
	more := make(chan struct{}, 1)
	defer close(more)
	go func() {
		defer func() { _ = to.Close() }()
		for range more {
			mu.Lock()
			all := waiting
			waiting = nil
			mu.Unlock()
			for _, p := range all {
				l.mu.Lock()
				cut, lose, delay := state(l)
				l.mu.Unlock()
				if cut {
					continue
				}
				if lose {
					_ = from.Close()
					return
				}
				time.Sleep(delay)
				if _, err := to.Write(p); err != nil {
					_ = from.Close()
					return
				}
			}
		}
	}()
	for {
		p := make([]byte, 4096)
		n, err := from.Read(p)
		if err != nil {
			return
		}
		mu.Lock()
		waiting = append(waiting, p[:n])
		mu.Unlock()
		select {
		case more <- struct{}{}:
		default:
		}
	}
}

// virtual makes a lock measure by the time of the bubble.
func (m *Mutex) virtual() *Mutex {
	m.lock.clock = clock.Time()
	return m
}

func (l *RWLock) virtual() *RWLock {
	l.lock.clock = clock.Time()
	return l
}
