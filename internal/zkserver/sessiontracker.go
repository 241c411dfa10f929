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

// session is a client's session. It outlives connections.
type session struct {
	id      int64
	timeout time.Duration

	expires  time.Time // when it ends unless a packet comes
	queuedAt time.Time // its time in the expiry queue: expires or earlier
	position int       // in the expiry queue
}

func sessionName(id int64) string { return fmt.Sprintf("0x%x", id) }

// sessionTracker holds the sessions and knows when each expires. It ends none by itself: its timer calls the function that it
// was made with, which asks for nextExpired.
type sessionTracker struct {
	started     time.Time
	tick        time.Duration
	exactExpiry bool // do not round an expiry up to a whole tick

	passwords sessionPasswords
	nextID    int64
	byID      map[int64]*session
	expiry    expiryQueue
	timer     *time.Timer
	timerSet  time.Time // when the timer fires
}

// newSessionTracker makes a tracker. It calls expireDue, in a goroutine of its own, when a session may have expired.
func newSessionTracker(config Config, now time.Time, expireDue func()) *sessionTracker {
	t := &sessionTracker{
		started: now, tick: config.Tick, exactExpiry: config.ExactExpiry,
		passwords: newSessionPasswords(), nextID: firstSessionID(now), byID: map[int64]*session{},
	}
	t.timer = time.AfterFunc(time.Hour, expireDue)
	t.timer.Stop()
	return t
}

// firstSessionID is made from the time, as the real server makes it, so that a later server's sessions have other ids.
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

// touchIfOpen is touchSession for a session that may have ended.
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

// expiryTime rounds up to a whole tick since the start, unless the configuration asks for exact times.
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

// setTimer sets the timer for the first session of the queue, if it is not set for that time.
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

// expiryQueue is a heap of the sessions by queuedAt. A packet changes only a session's expires and not its position, which is cheap;
// nextExpired moves the session when it comes to the front.
type expiryQueue []*session

// Len implements heap.Interface.
func (q expiryQueue) Len() int { return len(q) }

// Less orders by time, then by age: sessions that expire at one instant expire in the same order in every run.
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

// sessionPasswords derives the passwords of sessions from their ids and a secret, so that the server need not store them.
type sessionPasswords [16]byte

func newSessionPasswords() (p sessionPasswords) {
	_, _ = rand.Read(p[:]) // crypto/rand.Read returns no error
	return p
}

func (p sessionPasswords) passwordOf(id int64) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(p[:], uint64(id)))
	return sum[:wire.PasswordSize]
}
