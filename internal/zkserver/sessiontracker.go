package zkserver

import (
	"cmp"
	"container/heap"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// session is a client's session. It may have several connections, one after the other.
type session struct {
	id      int64
	timeout time.Duration

	expires  time.Time // when it ends if no packet arrives
	queuedAt time.Time // its time in the expiry queue, which is not later than expires
	position int       // its index in the expiry queue
}

func sessionName(id int64) string { return fmt.Sprintf("0x%x", id) }

// sessionTracker has the sessions and the times at which they expire. It does not end sessions
// itself: its timer calls the function of newSessionTracker, which calls nextExpired.
type sessionTracker struct {
	started     time.Time
	tick        time.Duration
	exactExpiry bool // do not round an expiry up to a whole tick

	passwords sessionPasswords
	nextID    int64
	byID      map[int64]*session
	expiry    expiryQueue
	timer     *time.Timer
	timerSet  time.Time // when the timer will fire
}

// newSessionTracker makes a tracker. The tracker calls expireDue in a goroutine of its own when a
// session may have expired.
func newSessionTracker(config Config, now time.Time, expireDue func()) *sessionTracker {
	t := &sessionTracker{
		started: now, tick: config.Tick, exactExpiry: config.ExactExpiry,
		passwords: newSessionPasswords(), nextID: firstSessionID(now), byID: map[int64]*session{},
	}
	t.timer = time.AfterFunc(time.Hour, expireDue)
	t.timer.Stop()
	return t
}

// firstSessionID returns an id that is made from the time, as on the real server. So the sessions
// of servers that start later have other ids.
func firstSessionID(now time.Time) int64 { return int64(uint64(now.UnixMilli()) << 24 >> 8) }

// addSession makes a session.
func (t *sessionTracker) addSession(timeout time.Duration) *session {
	sess := &session{id: t.nextID, timeout: timeout}
	t.nextID++
	t.byID[sess.id] = sess
	sess.expires = t.expiryTime(time.Now(), timeout)
	sess.queuedAt = sess.expires
	heap.Push(&t.expiry, sess)
	t.setTimer()
	return sess
}

func (t *sessionTracker) removeSession(sess *session) {
	delete(t.byID, sess.id)
	heap.Remove(&t.expiry, sess.position)
}

// touchSession gives a session its full timeout from now.
func (t *sessionTracker) touchSession(sess *session) {
	sess.expires = t.expiryTime(time.Now(), sess.timeout)
	if sess.expires.Before(sess.queuedAt) { // its timeout has become shorter
		t.requeueSession(sess)
		t.setTimer()
	}
}

// touchIfOpen is touchSession, unless the session has ended.
func (t *sessionTracker) touchIfOpen(sess *session) {
	if t.byID[sess.id] == sess {
		t.touchSession(sess)
	}
}

// touchAll gives every session its full timeout from now. It does not set the timer.
func (t *sessionTracker) touchAll() {
	now := time.Now()
	for _, sess := range t.byID {
		sess.expires = t.expiryTime(now, sess.timeout)
	}
}

// expiryTime returns when a session expires. It rounds the time up to a whole tick since the start,
// unless exactExpiry is set.
func (t *sessionTracker) expiryTime(now time.Time, timeout time.Duration) time.Time {
	if t.exactExpiry {
		return now.Add(timeout)
	}
	ticks := (now.Sub(t.started)+timeout)/t.tick + 1
	return t.started.Add(ticks * t.tick)
}

// nextExpired returns a session that has expired, or nil. The caller removes it.
func (t *sessionTracker) nextExpired() *session {
	now := time.Now()
	for len(t.expiry) > 0 {
		first := t.expiry[0]
		switch {
		case first.queuedAt.After(now):
			return nil
		case first.expires.After(now):
			t.requeueSession(first)
		default:
			return first
		}
	}
	return nil
}

func (t *sessionTracker) requeueSession(sess *session) {
	sess.queuedAt = sess.expires
	heap.Fix(&t.expiry, sess.position)
}

// setTimer sets the timer for the first session of the queue, unless it is set for that time
// already.
func (t *sessionTracker) setTimer() {
	if len(t.expiry) == 0 || t.timerSet.Equal(t.expiry[0].queuedAt) {
		return
	}
	t.timerSet = t.expiry[0].queuedAt
	t.timer.Reset(time.Until(t.timerSet))
}

// resetTimer sets the timer again after it has fired.
func (t *sessionTracker) resetTimer() {
	t.timerSet = time.Time{}
	t.setTimer()
}

func (t *sessionTracker) stopTimer() { t.timer.Stop() }

// expiryQueue is a heap of the sessions by queuedAt. A packet changes only the session's expires,
// which is cheap, and not its position. nextExpired moves the session when it is the first.
type expiryQueue []*session

// Len implements heap.Interface.
func (q expiryQueue) Len() int { return len(q) }

// Less orders sessions by time and then by age, so that sessions with the same time expire in the
// same order in each run.
func (q expiryQueue) Less(i, j int) bool {
	return cmp.Or(q[i].queuedAt.Compare(q[j].queuedAt), cmp.Compare(q[i].id, q[j].id)) < 0
}

// Swap implements heap.Interface.
func (q expiryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position, q[j].position = i, j
}

// Push implements heap.Interface.
func (q *expiryQueue) Push(x any) {
	sess := x.(*session)
	sess.position = len(*q)
	*q = append(*q, sess)
}

// Pop implements heap.Interface.
func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	sess := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return sess
}

// sessionPasswords derives the passwords of sessions from their ids and a secret, so that the
// server need not store them.
type sessionPasswords [16]byte

func newSessionPasswords() (p sessionPasswords) {
	_, _ = rand.Read(p[:]) // crypto/rand.Read returns no error
	return p
}

func (p sessionPasswords) passwordOf(id int64) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(p[:], uint64(id)))
	return sum[:wire.PasswordSize]
}
