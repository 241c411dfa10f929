package framework

import "time"

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
