package framework

import (
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/link"
)

// sessionLease computes until when a session is proven to live. Its rules have survived all faults
// on real ensembles (docs/guarantees.md) and all searches of their model (internal/proof/model):
//
// A heartbeat is a write without effect and, once that is acknowledged or refused by the ensemble,
// ZooKeeper's own sync. When the sync of a heartbeat is acknowledged, the session lives until the
// *previous* heartbeat's send time + T − margin. The previous heartbeat is the newest that was
// answered T/4 before this one was due. A pair of pings that was answered T/4 before the heartbeat
// counts like a previous heartbeat. On a new connection the connect request's send time counts once
// one write is acknowledged. T is the smallest timeout that the servers have granted to the
// session.
//
// Behind an observer master (extraHeartbeats 1) the heartbeat before the previous one counts: the
// observer's news takes two hops to the leader, and may be a ping interval late on each. Pings do
// not count there, so such a session is always awake.
//
// A session without a lease is dormant. Heartbeats do not begin a lease: a connect request does, or
// a pair of pings, with the writes that leaseEvidence asks for.
//
// Times are readings of one clock. A lease grows, unless a server grants a smaller timeout. The
// session ensures that a lapsed lease is not revived.
type sessionLease struct {
	timeout       time.Duration
	until         time.Duration // 0 while the session is dormant
	connectSentAt time.Duration // when the connect request was sent
	awaitsWrite   bool          // the first write on this connection is not acknowledged yet
	latest        []heartbeat   // this connection's latest heartbeats since the lease has begun, the newest first
	due           time.Duration // when the next heartbeat is due
	shifted       int           // heartbeats of this lease on this connection since it moves to its own phase

	// how many heartbeats lie between the previous one and the one that counts: 0, or 1 behind an
	// observer master
	extraHeartbeats int
	phase           float64 // the session's own part of the interval between heartbeats, from 0 to less than 1
}

// heartbeat is one whose sync was acknowledged.
type heartbeat struct {
	sentAt     [2]time.Duration // its send time, and that of its previous heartbeat, or 0 if it has none
	answeredAt time.Duration
}

// heartbeatsKept is how many heartbeats are kept: all since the newest that was answered T/4 before
// the next one is due.
const heartbeatsKept = 4

// phaseOf returns a session's own part of the interval between heartbeats. Servers number sessions
// one after the other, and the multiples of the golden ratio are spread evenly.
func phaseOf(sessionID int64) float64 {
	const goldenRatio = 0x9E3779B97F4A7C15 // of 1<<64
	return float64(uint64(sessionID)*goldenRatio>>11) / (1 << 53)
}

// nextHeartbeat returns how long to wait before the next heartbeat. It comes early when the lease
// has begun from old pings, and newer pings can extend the lease soon.
//
// Sessions that connect or wake together move to phases of their own: the second heartbeat comes
// early, after the session's own part of the interval. Then each comes a quarter of T after the one
// before the last, for so long that the moved ones extend the lease as well. So none is missing
// that would have come without the move (docs/adr/0099-heartbeats-have-phases-of-their-own.md).
func (l *sessionLease) nextHeartbeat(pairs []link.PingPair, now time.Duration) time.Duration {
	if len(l.latest) > 0 { // readings of the clock may go back a little
		now = max(now, l.latest[0].answeredAt)
	}
	wait, interval := l.waitOfLease(l.until, pairs, now), heartbeatInterval(l.timeout)
	switch {
	case len(l.latest) == 0:
	case l.shifted == 0 && wait == interval:
		took := l.latest[0].answeredAt - l.latest[0].sentAt[0]
		// so that its answer comes before the next one is due
		wait = time.Duration(l.phase * float64(max(0, interval-2*took)))
		l.shifted++
	case len(l.latest) > 1 && l.shifted > 0 && l.shifted <= 2+2*l.extraHeartbeats:
		wait = max(0, l.latest[1].answeredAt+interval-now)
		l.shifted++
	}
	l.due = now + wait
	return wait
}

// waitOfLease is how long a lease that stands until then waits before its next heartbeat.
func (l *sessionLease) waitOfLease(until time.Duration, pairs []link.PingPair, now time.Duration) time.Duration {
	wait := heartbeatInterval(l.timeout)
	if l.extraHeartbeats > 0 || until-now >= l.timeout/2 {
		return wait
	}
	for _, p := range pairs {
		if l.endFrom(p.SentAt) > until+l.timeout/8 {
			wait = min(wait, max(0, p.AnsweredAt+heartbeatInterval(l.timeout)-now))
		}
	}
	return wait
}

// beginConnection begins a new connection. Heartbeats of earlier connections do not count on it.
// The servers move a session's expiry to an earlier time when it connects with a smaller timeout,
// and a lease that stands ends no later than that.
func (l *sessionLease) beginConnection(sentAt, timeout time.Duration) {
	if l.timeout == 0 || timeout < l.timeout {
		l.timeout = timeout
		if l.until != 0 {
			l.until = min(l.until, l.endFrom(sentAt))
		}
	}
	l.connectSentAt, l.awaitsWrite = sentAt, true
	l.forgetHeartbeats()
}

// writeAcknowledged extends the lease after a heartbeat's write was acknowledged on this
// connection.
func (l *sessionLease) writeAcknowledged() {
	if l.awaitsWrite {
		l.awaitsWrite = false
		l.extendUntil(l.connectSentAt)
	}
}

// syncAcknowledged extends the lease after the sync of a heartbeat was acknowledged. The heartbeat
// was sent at sentAt, on the connection of the pairs of pings.
func (l *sessionLease) syncAcknowledged(sentAt time.Duration, pairs []link.PingPair, now time.Duration) {
	if l.until == 0 {
		return
	}
	h := heartbeat{sentAt: [2]time.Duration{sentAt}, answeredAt: now}
	for _, previous := range l.latest {
		if previous.answeredAt+heartbeatInterval(l.timeout) > l.due {
			continue
		}
		h.sentAt[1] = previous.sentAt[0]
		if from := previous.sentAt[l.extraHeartbeats]; from != 0 {
			l.extendUntil(from)
		}
		break
	}
	for _, p := range pairs {
		if l.extraHeartbeats == 0 && p.AnsweredAt+heartbeatInterval(l.timeout) <= sentAt {
			l.extendUntil(p.SentAt)
		}
	}
	l.latest = slices.Insert(l.latest, 0, h)
	l.latest = l.latest[:min(len(l.latest), heartbeatsKept)]
}

// extendUntil extends a lease that stands.
func (l *sessionLease) extendUntil(from time.Duration) {
	if l.until != 0 {
		l.until = max(l.until, l.endFrom(from))
	}
}

// endFrom is the end of a lease that counts from a send time.
func (l *sessionLease) endFrom(from time.Duration) time.Duration {
	return from + l.timeout - clockMargin(l.timeout)
}

// beginFrom begins a lease that counts from the evidence's send time, unless it would have lapsed
// by now.
func (l *sessionLease) beginFrom(evidence leaseEvidence, now time.Duration) {
	l.awaitsWrite = false
	if until := l.endFrom(evidence.sentAt); l.until == 0 && now < until {
		l.until = until
	}
}

// endLease makes the session dormant. Its heartbeats do not count for a later lease.
func (l *sessionLease) endLease() {
	l.until = 0
	l.forgetHeartbeats()
}

func (l *sessionLease) forgetHeartbeats() { l.latest, l.shifted = l.latest[:0], 0 }

// leaseEvidence is what a lease may begin from: a packet of the present connection that a server
// has answered.
type leaseEvidence struct {
	sentAt time.Duration
	from   time.Duration // the first write is not sent before
	writes int           // that must be acknowledged on that connection, one after the other
}

// evidence returns the packets that a lease may begin from, the youngest first. The pings of a
// pair were answered by the server: a quarter of T later, the first write's acknowledgement comes
// behind a ping of the leader, whose answer names the session; the second write reaches the leader
// behind that answer. The answer to the connect request came from the leader, if one write shows
// that it leads.
func (l *sessionLease) evidence(pairs []link.PingPair) (all []leaseEvidence) {
	if l.extraHeartbeats == 0 {
		for _, p := range slices.Backward(pairs) {
			all = append(all,
				leaseEvidence{sentAt: p.SentAt, from: p.AnsweredAt + heartbeatInterval(l.timeout), writes: 2})
		}
	}
	return append(all, leaseEvidence{sentAt: l.connectSentAt, writes: 1})
}

// nextEvidence returns what to begin a lease from, and how long to wait before the first write.
// found is false if no evidence would do. A lease that has just begun must last until its next
// heartbeat and the answers to that.
func (l *sessionLease) nextEvidence(pairs []link.PingPair,
	now time.Duration) (evidence leaseEvidence, wait time.Duration, found bool) {
	roundTrip := time.Duration(0)
	for _, p := range pairs {
		roundTrip = max(roundTrip, p.AnsweredAt-p.SentAt)
	}
	for _, p := range l.evidence(pairs) {
		delay := max(0, p.from-now)
		begins, until := now+delay, l.endFrom(p.sentAt)
		// to the writes, a sync, and the next heartbeat's write and sync
		answers := time.Duration(p.writes+3) * roundTrip
		left := until - begins - l.waitOfLease(until, pairs, begins)
		if left < min(max(l.timeout/12, answers), l.timeout/4) || found && delay >= wait {
			continue
		}
		evidence, wait, found = p, delay, true
	}
	return evidence, wait, found
}

// clockMargin covers the drift between this machine's clock and the servers' and the granularity of
// timers.
func clockMargin(timeout time.Duration) time.Duration { return 50*time.Millisecond + timeout/50 }

// heartbeatInterval is the least time between a heartbeat's end and the next heartbeat: about T/2
// of the lease remains then, T/4 behind an observer master.
func heartbeatInterval(timeout time.Duration) time.Duration { return timeout / 4 }

// heartbeatTimeout is how long a heartbeat may take before the session gives its connection up:
// half of the rest of the lease, so that there is time for another server.
func heartbeatTimeout(timeout time.Duration, extraHeartbeats int) time.Duration {
	return heartbeatInterval(timeout) / time.Duration(1+extraHeartbeats)
}

// reconnection is the time in which a server that is back should accept a connection, resume a
// session on it and acknowledge a write.
const reconnection = time.Second

// LongestInterruption is how long all servers may be silent, from any moment on, before holds of a
// client with this configuration end: nearly half of the session timeout, or a quarter with
// ObserverMasters. It is 0 for timeouts that are too short to survive any interruption. It assumes
// that the servers grant SessionTimeout, and answer within a second when they are back.
func (c Config) LongestInterruption() time.Duration {
	c = c.WithDefaults()
	return longestInterruption(c.SessionTimeout, c.extraHeartbeats())
}

func longestInterruption(timeout time.Duration, extraHeartbeats int) time.Duration {
	return max(0, leaseBeforeHeartbeat(timeout, extraHeartbeats)-reconnection-reconnection/(pauseFraction-1))
}

// leaseBeforeHeartbeat is the rest of a lease when a heartbeat is due. The lease counts from the
// heartbeat before the last one, or from one further back.
func leaseBeforeHeartbeat(timeout time.Duration, extraHeartbeats int) time.Duration {
	return timeout - time.Duration(2+extraHeartbeats)*heartbeatInterval(timeout) - clockMargin(timeout)
}

// pauseFraction bounds the pauses between attempts to connect: one pause takes at most this
// fraction of the rest of the lease.
const pauseFraction = 4

// limitPause bounds a pause by the rest of a session's lease; 0 means that the session has no
// lease.
func limitPause(pause, least, lease time.Duration) time.Duration {
	if lease == 0 {
		return pause
	}
	return min(pause, max(least, lease/pauseFraction))
}
