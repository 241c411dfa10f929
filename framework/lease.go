package framework

import "time"

// sessionLease computes until when a session is proven to live, by the only rule that survived every
// fault tried on real ensembles (docs/guarantees.md):
//
// A beat is a write without effect, and a sync once it is acknowledged. When the sync of a
// beat is acknowledged, the session lives until the *former* beat's send time + T − margin. On a
// new connection the connect request's send time counts once one write is acknowledged. T is
// the smallest timeout ever negotiated.
//
// Times are readings of one clock. A lease only grows; a lapsed lease is not revived, which
// the session sees to.
type sessionLease struct {
	timeout time.Duration
	until   time.Duration
	greeted time.Duration // the connect request's send time
	pending bool          // no write was acknowledged on this connection yet
	former  time.Duration // send time of the connection's last whole beat
	paired  bool          // former is set
}

// beginConnection begins a new connection: beats of former ones count no more.
func (l *sessionLease) beginConnection(sentAt, timeout time.Duration) {
	if l.timeout == 0 || timeout < l.timeout {
		l.timeout = timeout
	}
	l.greeted, l.pending, l.paired = sentAt, true, false
}

// writeAcknowledged tells that a beat's write was acknowledged on this connection.
func (l *sessionLease) writeAcknowledged() {
	if l.pending {
		l.pending = false
		l.extendUntil(l.greeted)
	}
}

// syncAcknowledged tells that the sync of the beat sent at sentAt was acknowledged, on the same connection.
func (l *sessionLease) syncAcknowledged(sentAt time.Duration) {
	if l.paired {
		l.extendUntil(l.former)
	}
	l.former, l.paired = sentAt, true
}

func (l *sessionLease) extendUntil(from time.Duration) {
	l.until = max(l.until, from+l.timeout-clockMargin(l.timeout))
}

// clockMargin covers the drift between this machine's clock and the servers' and the granularity of timers.
func clockMargin(timeout time.Duration) time.Duration { return 50*time.Millisecond + timeout/50 }

// beatInterval is the least time between a beat's end and the next beat, and the longest that a beat may
// take before its connection is given up: about T/2 of the lease remains when a beat is due, and half
// of that when it is overdue, which leaves time for another server.
func beatInterval(timeout time.Duration) time.Duration { return timeout / 4 }
