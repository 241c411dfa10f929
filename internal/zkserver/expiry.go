package zkserver

import (
	"cmp"
	"container/heap"
	"time"
)

// expiryQueue is the sessions in order of when to look at them, and one timer
// for the first. A packet moves a session's end but not its place: the queue
// finds out when it looks, so that a packet costs next to nothing.
type expiryQueue struct {
	sessions []*session
	timer    *time.Timer
	armed    time.Time // when the timer goes off
}

func (q *expiryQueue) Len() int { return len(q.sessions) }

// Less orders by time, then by age, so that what happens at one instant happens
// in the same order in every run.
func (q *expiryQueue) Less(i, j int) bool {
	a, b := q.sessions[i], q.sessions[j]
	return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.id, b.id)) < 0
}

func (q *expiryQueue) Swap(i, j int) {
	q.sessions[i], q.sessions[j] = q.sessions[j], q.sessions[i]
	q.sessions[i].place, q.sessions[j].place = i, j
}

// Push is for package heap.
func (q *expiryQueue) Push(x any) {
	sess := x.(*session)
	sess.place = len(q.sessions)
	q.sessions = append(q.sessions, sess)
}

// Pop is for package heap.
func (q *expiryQueue) Pop() any {
	last := len(q.sessions) - 1
	sess := q.sessions[last]
	q.sessions[last] = nil
	q.sessions = q.sessions[:last]
	return sess
}

func (q *expiryQueue) add(sess *session) {
	sess.due = sess.expires
	heap.Push(q, sess)
	q.arm()
}

func (q *expiryQueue) remove(sess *session) { heap.Remove(q, sess.place) }

// sooner moves a session forward whose end has come nearer than its place.
func (q *expiryQueue) sooner(sess *session) {
	if sess.expires.Before(sess.due) {
		q.requeue(sess)
		q.arm()
	}
}

func (q *expiryQueue) requeue(sess *session) {
	sess.due = sess.expires
	heap.Fix(q, sess.place)
}

// next returns a session that has ended by now, or nil.
func (q *expiryQueue) next(now time.Time) *session {
	for len(q.sessions) > 0 {
		first := q.sessions[0]
		switch {
		case first.due.After(now):
			return nil
		case first.expires.After(now):
			q.requeue(first)
		default:
			return first
		}
	}
	return nil
}

// arm sets the timer for the first session, if it is not set so already.
func (q *expiryQueue) arm() {
	if len(q.sessions) == 0 || q.armed.Equal(q.sessions[0].due) {
		return
	}
	q.armed = q.sessions[0].due
	q.timer.Reset(time.Until(q.armed))
}

// expireDue ends every session that is due. A frozen server's timers do not
// run; Thaw calls it instead.
func (s *Server) expireDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && !s.frozen {
		s.expireNow()
	}
}

func (s *Server) expireNow() {
	for s.failure == nil {
		sess := s.expiry.next(time.Now())
		if sess == nil {
			break
		}
		s.expire(sess)
	}
	s.expiry.armed = time.Time{}
	if s.failure == nil {
		s.expiry.arm()
	}
}
