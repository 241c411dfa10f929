package framework

import (
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/link"
)

// sessionLease computes until when a session is proven to live. Its rules have survived all faults on real ensembles (docs/guarantees.md) and all
// searches of their model (internal/model):
//
// A heartbeat is a write without effect and, once that is acknowledged or refused by the ensemble, ZooKeeper's own sync. When the sync of a
// heartbeat is acknowledged, the session lives until the *former* heartbeat's send time + T − margin. A pair of pings that was answered T/4 before
// the heartbeat counts like a former heartbeat. On a new connection the connect request's send time counts once one write is acknowledged. T is
// the smallest timeout that the servers have granted to the session.
//
// Behind an observer master (furtherBack 1) the heartbeat before the former one counts: the observer's news takes two hops to the
// leader, and may be a ping interval late on each. Pings do not count there, so such a session is always awake.
//
// A session without a lease is dormant. Heartbeats do not begin a lease: a connect request does, or a pair of pings, with the writes that
// wakingPacket asks for.
//
// Times are readings of one clock. A lease grows, unless a server grants a smaller timeout. The session ensures that a lapsed lease is not revived.
type sessionLease struct {
	timeout          time.Duration
	until            time.Duration    // 0 while the session is dormant
	connectSentAt    time.Duration    // when the connect request was sent
	awaitsWrite      bool             // the first write on this connection is not acknowledged yet
	formerHeartbeats [2]time.Duration // send times of this connection's latest heartbeats with an acknowledged sync, the newest first
	heartbeatsDone   int              // the number of those since the lease has begun, each a quarter of T after the one before
	nextIsEarly      bool             // the next heartbeat comes sooner than a quarter of T after the one before

	furtherBack int // how many heartbeats before the former one is counted: 0, or 1 behind an observer master
}

// nextHeartbeat returns how long to wait before the next heartbeat. It comes early when the lease has begun from old pings, and newer pings can extend the lease
// soon. An early heartbeat counts the pings only: the former heartbeat counts only with a quarter of T between its end and the next one.
func (l *sessionLease) nextHeartbeat(pairs []link.PingPair, now time.Duration) time.Duration {
	wait := l.waitOfLease(l.until, pairs, now)
	l.nextIsEarly = wait < heartbeatInterval(l.timeout)
	return wait
}

// waitOfLease is how long a lease that stands until then waits before its next heartbeat.
func (l *sessionLease) waitOfLease(until time.Duration, pairs []link.PingPair, now time.Duration) time.Duration {
	wait := heartbeatInterval(l.timeout)
	if l.furtherBack > 0 || until-now >= l.timeout/2 {
		return wait
	}
	for _, p := range pairs {
		if l.endFrom(p.SentAt) > until+l.timeout/8 {
			wait = min(wait, max(0, p.AnsweredAt+heartbeatInterval(l.timeout)-now))
		}
	}
	return wait
}

// beginConnection begins a new connection. Heartbeats of former connections do not count on it. The servers move a session's expiry to an earlier time when it connects with a
// smaller timeout, and a lease that stands ends no later than that.
func (l *sessionLease) beginConnection(sentAt, timeout time.Duration) {
	if l.timeout == 0 || timeout < l.timeout {
		l.timeout = timeout
		if l.until != 0 {
			l.until = min(l.until, l.endFrom(sentAt))
		}
	}
	l.connectSentAt, l.awaitsWrite, l.heartbeatsDone = sentAt, true, 0
}

// writeAcknowledged takes in that a heartbeat's write was acknowledged on this connection.
func (l *sessionLease) writeAcknowledged() {
	if l.awaitsWrite {
		l.awaitsWrite = false
		l.extendUntil(l.connectSentAt)
	}
}

// syncAcknowledged takes in that the sync of the heartbeat sent at sentAt was acknowledged, on the same connection as the pairs of pings.
func (l *sessionLease) syncAcknowledged(sentAt time.Duration, pairs []link.PingPair) {
	if l.until == 0 {
		return
	}
	if l.nextIsEarly {
		l.heartbeatsDone = 0
	}
	if l.heartbeatsDone > l.furtherBack {
		l.extendUntil(l.formerHeartbeats[l.furtherBack])
	}
	for _, p := range pairs {
		if l.furtherBack == 0 && p.AnsweredAt+heartbeatInterval(l.timeout) <= sentAt {
			l.extendUntil(p.SentAt)
		}
	}
	l.formerHeartbeats[0], l.formerHeartbeats[1] = sentAt, l.formerHeartbeats[0]
	l.heartbeatsDone++
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

// beginFrom begins a lease that counts from a packet's send time, unless it would have lapsed by now.
func (l *sessionLease) beginFrom(packet wakingPacket, now time.Duration) {
	l.awaitsWrite = false
	if until := l.endFrom(packet.sentAt); l.until == 0 && now < until {
		l.until = until
	}
}

// endLease makes the session dormant. Its former heartbeats do not count for a later lease.
func (l *sessionLease) endLease() { l.until, l.heartbeatsDone = 0, 0 }

// wakingPacket is what a lease may begin from: a packet of the present connection that a server has answered.
type wakingPacket struct {
	sentAt time.Duration
	from   time.Duration // the first write is not sent before
	writes int           // that must be acknowledged on that connection, one after the other
}

// wakingPackets returns the packets that a lease may begin from, the youngest first. The pings of a pair were answered by the server: a quarter of T later, the first
// write's acknowledgement comes behind a ping of the leader, whose answer names the session; the second write reaches the leader behind that answer. The answer
// to the connect request came from the leader, if one write shows that it leads.
func (l *sessionLease) wakingPackets(pairs []link.PingPair) (packets []wakingPacket) {
	if l.furtherBack == 0 {
		for _, p := range slices.Backward(pairs) {
			packets = append(packets, wakingPacket{sentAt: p.SentAt, from: p.AnsweredAt + heartbeatInterval(l.timeout), writes: 2})
		}
	}
	return append(packets, wakingPacket{sentAt: l.connectSentAt, writes: 1})
}

// nextPacket returns the packet to begin a lease from, and how long to wait before the first write. Without a packet of use, found is false. A
// lease that has just begun must last until its next heartbeat and the answers to that.
func (l *sessionLease) nextPacket(pairs []link.PingPair, now time.Duration) (packet wakingPacket, wait time.Duration, found bool) {
	roundTrip := time.Duration(0)
	for _, p := range pairs {
		roundTrip = max(roundTrip, p.AnsweredAt-p.SentAt)
	}
	for _, p := range l.wakingPackets(pairs) {
		delay := max(0, p.from-now)
		begins, until := now+delay, l.endFrom(p.sentAt)
		answers := time.Duration(p.writes+3) * roundTrip // to the writes, a sync, and the next heartbeat's write and sync
		left := until - begins - l.waitOfLease(until, pairs, begins)
		if left < min(max(l.timeout/12, answers), l.timeout/4) || found && delay >= wait {
			continue
		}
		packet, wait, found = p, delay, true
	}
	return packet, wait, found
}

// clockMargin covers the drift between this machine's clock and the servers' and the granularity of timers.
func clockMargin(timeout time.Duration) time.Duration { return 50*time.Millisecond + timeout/50 }

// heartbeatInterval is the least time between a heartbeat's end and the next heartbeat: about T/2 of the lease remains then, T/4 behind an observer master.
func heartbeatInterval(timeout time.Duration) time.Duration { return timeout / 4 }

// heartbeatTimeout is how long a heartbeat may take before the session gives its connection up: half of the rest of the lease, so that there is
// time for another server.
func heartbeatTimeout(timeout time.Duration, furtherBack int) time.Duration {
	return heartbeatInterval(timeout) / time.Duration(1+furtherBack)
}
