package link

import (
	"encoding/binary"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// PingPair is a ping of the library that was sent twice, both of which were answered. A follower may lose the record of one packet of a
// session while it passes its records to the leader, but not of two in a row.
type PingPair struct {
	// SentAt is a reading of the clock before the first was written.
	SentAt time.Duration
	// AnsweredAt is a reading of the clock after the second was answered.
	AnsweredAt time.Duration
}

// pingPairs are the pings on one connection. Servers answer them in order.
type pingPairs struct {
	unanswered []time.Duration // when they were sent, in order
	half       bool            // the first of the oldest one is answered
	latest     []PingPair      // in order
}

// pairsKept is how many pairs are kept: with a ping in each third of the session timeout, all that may be of use.
const pairsKept = 4

func (p *pingPairs) noteSent(at time.Duration) { p.unanswered = append(p.unanswered, at) }

// noteAnswered notes an answer, and reports whether it is that to the second ping of a pair.
func (p *pingPairs) noteAnswered(at time.Duration) (second bool) {
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
