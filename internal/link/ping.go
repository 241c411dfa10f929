package link

import (
	"encoding/binary"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// PingPair is two pings that were sent at once, both of which were answered. A follower may lose
// the record of one packet of a session while it passes its records to the leader, but not of two
// in a row.
type PingPair struct {
	// SentAt is a reading of the clock before the first was written.
	SentAt time.Duration
	// AnsweredAt is a reading of the clock after the second was answered.
	AnsweredAt time.Duration
}

// pingPairs are the pings on one connection. Servers answer them in order.
type pingPairs struct {
	next       *time.Timer     // sends the next pair; nil before the connect request is answered
	unanswered []time.Duration // when they were sent, in order
	half       bool            // the first of the oldest one is answered
	latest     []PingPair      // in order
}

// pairsKept is how many pairs are kept: all that may be of use.
const pairsKept = 3

// PingInterval is the time between two pairs of pings of a session with this timeout. The library
// would send a ping in each third of the timeout: pairs that often cost the servers more than its
// single pings do. With pairs farther apart, a lease that begins from one would not last through an
// ordinary interruption of the servers.
func PingInterval(timeout time.Duration) time.Duration { return timeout * 9 / 20 }

// extraReadTime is how much later than at the library's deadline a connection gives a server up,
// since pings are farther apart than the library's. Only frames that the library reads move its
// deadline: the answers to calls and the watch events do not.
func extraReadTime(timeout time.Duration) time.Duration { return timeout / 12 }

func (p *pingPairs) recordSent(at time.Duration) { p.unanswered = append(p.unanswered, at) }

// recordAnswered records an answer, and reports whether it is that to the second ping of a pair.
func (p *pingPairs) recordAnswered(at time.Duration) (second bool) {
	if len(p.unanswered) == 0 {
		return false
	}
	if !p.half {
		p.half = true
		return false
	}
	if len(p.latest) == pairsKept {
		p.latest = append(p.latest[:0], p.latest[1:]...)
	}
	p.latest = append(p.latest, PingPair{SentAt: p.unanswered[0], AnsweredAt: at})
	p.unanswered, p.half = p.unanswered[1:], false
	return true
}

// pingFrame is how long a ping is: its length, and a head without a body.
const pingFrame = sizeLen + 8

func isPing(frame []byte) bool {
	return len(frame) == pingFrame && int32(binary.BigEndian.Uint32(frame[sizeLen:])) == wire.XidPing
}
