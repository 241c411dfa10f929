package framework

import "time"

// dormancy decides whether a session proves its life or may be dormant. The session's mutex guards
// it.
type dormancy struct {
	holdCount      int           // holds, with whose lease the session ends
	awakeRefs      int           // other reasons to prove the session's life
	joins          int           // joins of lines, which may be granted at once
	lastNeeded     time.Duration // when the last hold or reason ended
	leaseBegun     chan struct{} // closed and replaced when a lease begins
	wakeUps        chan struct{} // has room for one: the session loop checks whether the session is needed
	suspendedSince time.Duration // when the connection was lost
}

func newDormancy(always bool) dormancy {
	d := dormancy{leaseBegun: make(chan struct{}), wakeUps: make(chan struct{}, 1)}
	if always {
		d.holdCount = 1 // as if a hold lasted as long as the session
	}
	return d
}

// isNeeded reports whether the session has a hold or another reason to prove its life.
func (d *dormancy) isNeeded() bool { return d.holdCount+d.awakeRefs+d.joins > 0 }

// hasStake reports whether something is held on the session, or likely to be granted soon. A proof
// of life that comes late is dangerous only then.
func (d *dormancy) hasStake() bool { return d.holdCount+d.awakeRefs > 0 }

// wakeLoop makes the session loop check whether it is needed.
func (d *dormancy) wakeLoop() {
	select {
	case d.wakeUps <- struct{}{}:
	default:
	}
}

// signalLeaseBegun wakes the callers that wait for a lease.
func (d *dormancy) signalLeaseBegun(now time.Duration) {
	d.lastNeeded = now
	close(d.leaseBegun)
	d.leaseBegun = make(chan struct{})
}
