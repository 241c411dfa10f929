package zkserver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// session is a client's session. It outlives connections.
type session struct {
	id         int64
	timeout    time.Duration
	conn       *conn // nil while the client is away
	ephemerals members

	expires time.Time // when it ends unless a packet comes
	due     time.Time // when the expiry queue looks at it: expires or earlier
	place   int       // in the expiry queue
}

// passwords derives sessions' passwords from their ids and a secret, so that
// none needs to be kept.
type passwords [16]byte

func newPasswords() (p passwords) {
	_, _ = rand.Read(p[:]) // never fails
	return p
}

func (p passwords) of(id int64) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(p[:], uint64(id)))
	return sum[:wire.PasswordSize]
}

// firstSessionID is made from the time, as the real server makes it, so that a
// later server's sessions have other ids.
func firstSessionID(now time.Time) int64 { return int64(uint64(now.UnixMilli()) << 24 >> 8) }

// openSession is a transaction, as closing one is.
func (s *Server) openSession(timeout time.Duration) *session {
	s.zxid++
	sess := &session{id: s.nextSession, timeout: timeout}
	s.nextSession++
	s.sessions[sess.id] = sess
	sess.expires = s.expiryAt(time.Now(), timeout)
	s.expiry.add(sess)
	return sess
}

// touch puts a session's end off to its full timeout from now.
func (s *Server) touch(sess *session) {
	sess.expires = s.expiryAt(time.Now(), sess.timeout)
	s.expiry.sooner(sess)
}

// expiryAt rounds up to a whole tick, unless told otherwise.
func (s *Server) expiryAt(now time.Time, timeout time.Duration) time.Time {
	if s.config.ExactExpiry {
		return now.Add(timeout)
	}
	ticks := (now.Sub(s.started)+timeout)/s.config.Tick + 1
	return s.started.Add(ticks * s.config.Tick)
}

// endSession removes a session and its ephemeral nodes, all under one zxid. The server fails instead where an ensemble
// would.
func (s *Server) endSession(sess *session) {
	if s.checkClose(sess) != nil {
		return
	}
	t := s.begin(nil)
	delete(s.sessions, sess.id)
	s.expiry.remove(sess)
	for _, n := range slices.Clone(sess.ephemerals.nodes) {
		t.remove(n)
	}
	t.commit()
}

// expire ends a session whose client has not asked for it.
func (s *Server) expire(sess *session) {
	s.config.Logger.Info("session expired", "session", sessionName(sess.id), "ephemerals", len(sess.ephemerals.nodes))
	s.endSession(sess)
	if sess.conn != nil {
		s.cut(sess.conn)
	}
}

func sessionName(id int64) string { return fmt.Sprintf("0x%x", id) }
