package zkserver

import (
	"crypto/subtle"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// connect answers the handshake; false ends the connection.
func (s *Server) connect(c *conn, frame []byte) bool {
	if !s.enter(c) {
		return false
	}
	defer s.mu.Unlock()
	s.countReceived(c)
	var ask wire.ConnectRequest
	d := wire.NewDecoder(frame)
	if ask.Decode(&d); d.Err() != nil || s.failure != nil {
		return false
	}
	if ask.LastZxid > s.zxid {
		s.config.Logger.Info("client has seen a later zxid than this server", "client", ask.LastZxid, "server", s.zxid)
		return false // without a word, as the real server
	}
	sess := s.sessionFor(&ask)
	reply := wire.ConnectResponse{Password: make([]byte, wire.PasswordSize), Short: ask.Short}
	if sess != nil {
		sess.conn, c.session = c, sess
		_ = c.nc.SetDeadline(time.Time{}) // from now on the session's end ends the connection
		reply.Timeout = int32(sess.timeout / time.Millisecond)
		reply.Session, reply.Password = sess.id, s.secret.of(sess.id)
	}
	s.sendConnect(c, &reply)
	if sess == nil {
		s.finish(c)
	}
	return sess != nil
}

// sessionFor opens a session or takes up the one asked for; nil when that is
// gone or the password is wrong. Either way an older connection of the session
// is cut, before the password is looked at: so does the real server.
func (s *Server) sessionFor(ask *wire.ConnectRequest) *session {
	timeout := time.Duration(ask.Timeout) * time.Millisecond
	timeout = min(max(timeout, s.config.MinSessionTimeout), s.config.MaxSessionTimeout)
	if ask.Session == 0 {
		return s.openSession(timeout)
	}
	sess := s.sessions[ask.Session]
	if sess == nil {
		return nil
	}
	if sess.conn != nil {
		s.cut(sess.conn)
	}
	if subtle.ConstantTimeCompare(ask.Password, s.secret.of(sess.id)) == 0 {
		s.config.Logger.Warn("wrong password", "session", sessionName(sess.id))
		return nil
	}
	sess.timeout = timeout
	s.touch(sess)
	return sess
}

func (s *Server) sendConnect(c *conn, reply *wire.ConnectResponse) {
	s.answer.Reset()
	mark := s.answer.BeginFrame()
	reply.Encode(&s.answer)
	s.answer.EndFrame(mark)
	s.send(c, s.answer.Bytes(), 0)
}
