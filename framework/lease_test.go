package framework

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/link"
)

const t0, leaseT = 100 * time.Second, 10 * time.Second

func ends(from time.Duration) time.Duration { return from + leaseT - clockMargin(leaseT) }

// beginFromConnect begins the lease of a session that has just connected.
func (l *sessionLease) beginFromConnect(t *testing.T, now time.Duration) {
	t.Helper()
	packet, wait, found := l.nextPacket(nil, now)
	require.True(t, found && wait == 0)
	require.Equal(t, wakingPacket{sentAt: l.connectSentAt, writes: 1}, packet)
	l.beginFrom(packet, now)
}

func TestLeaseCountsTheConnectOnceAWriteIsAcknowledged(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	require.Zero(t, l.until, "a handshake alone proves nothing")
	l.beginFromConnect(t, t0+time.Second)
	require.Equal(t, ends(t0), l.until)
	l.writeAcknowledged()
	require.Equal(t, ends(t0), l.until)
	l.beginConnection(t0+time.Second, leaseT)
	require.Equal(t, ends(t0), l.until)
	l.writeAcknowledged()
	require.Equal(t, ends(t0+time.Second), l.until)
}

func TestLeaseCountsFromTheHeartbeatBefore(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	for i := range 4 {
		sent := t0 + time.Duration(i+1)*time.Second
		l.writeAcknowledged()
		l.syncAcknowledged(sent, nil)
		require.Equal(t, ends(max(t0, sent-time.Second)), l.until, "heartbeat %d", i)
	}
}

func TestLeaseBehindObserverMasterCountsFromEarlierHeartbeat(t *testing.T) {
	l := sessionLease{furtherBack: 1}
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	for i := range 5 {
		sent := t0 + time.Duration(i+1)*time.Second
		l.writeAcknowledged()
		l.syncAcknowledged(sent, nil)
		require.Equal(t, ends(max(t0, sent-2*time.Second)), l.until, "heartbeat %d", i)
	}
	l.beginConnection(t0+6*time.Second, leaseT)
	for range 2 {
		l.syncAcknowledged(t0+9*time.Second, nil)
		require.Equal(t, ends(t0+3*time.Second), l.until, "the former connection's heartbeats count no more")
	}
}

func TestLeaseForgetsHeartbeatsOfAFormerConnection(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	l.syncAcknowledged(t0+5*time.Second, nil)
	l.beginConnection(t0+6*time.Second, leaseT)
	l.syncAcknowledged(t0+7*time.Second, nil)
	require.Equal(t, ends(t0), l.until, "no write was acknowledged on the new connection")
	l.writeAcknowledged()
	require.Equal(t, ends(t0+6*time.Second), l.until)
	l.writeAcknowledged()
	l.syncAcknowledged(t0+8*time.Second, nil)
	require.Equal(t, ends(t0+7*time.Second), l.until)
}

func TestLeaseKeepsTheSmallestTimeout(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.beginConnection(t0, 4*time.Second)
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	require.Equal(t, t0+4*time.Second-clockMargin(4*time.Second), l.until)
}

// TestASmallerTimeoutShortensALease: the servers move the session's expiry when it connects with the smaller timeout.
func TestASmallerTimeoutShortensALease(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	const smaller = leaseT / 4
	l.beginConnection(t0+time.Second, smaller)
	require.Equal(t, t0+time.Second+smaller-clockMargin(smaller), l.until)
	l.beginConnection(t0+2*time.Second, leaseT)
	require.Equal(t, t0+time.Second+smaller-clockMargin(smaller), l.until)
}

// TestHeartbeatsDoNotBeginALease: neither those from before the session fell asleep nor later ones.
func TestHeartbeatsDoNotBeginALease(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.writeAcknowledged()
	require.Zero(t, l.until)
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	l.syncAcknowledged(t0+time.Second, nil)
	l.endLease()
	l.writeAcknowledged()
	l.syncAcknowledged(t0+2*time.Second, nil)
	require.Zero(t, l.until)
	l.syncAcknowledged(t0+5*time.Second, nil)
	require.Zero(t, l.until)
	l.beginFromConnect(t, t0+6*time.Second)
	l.syncAcknowledged(t0+7*time.Second, nil)
	require.Equal(t, ends(t0), l.until, "the heartbeats of the sleep are no former ones")
	l.syncAcknowledged(t0+9*time.Second, nil)
	require.Equal(t, ends(t0+7*time.Second), l.until)
}

// TestLeaseStartsFromPacketOfRightAge goes through the ages of the pings of one connection.
func TestLeaseStartsFromPacketOfRightAge(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	const quarter, answer = leaseT / 4, 100 * time.Millisecond
	interval := link.PingInterval(leaseT)
	var pairs []link.PingPair
	for i := time.Duration(1); i <= 3; i++ {
		pairs = append(pairs, link.PingPair{SentAt: t0 + i*interval, AnsweredAt: t0 + i*interval + answer})
	}
	first := wakingPacket{sentAt: pairs[0].SentAt, from: pairs[0].AnsweredAt + quarter, writes: 2}
	second := wakingPacket{sentAt: pairs[1].SentAt, from: pairs[1].AnsweredAt + quarter, writes: 2}
	for name, c := range map[string]struct {
		age    time.Duration   // of the connection
		pairs  []link.PingPair // that are answered
		packet wakingPacket
		wait   time.Duration
		found  bool
	}{
		"the connect request": {5 * time.Second, pairs[:1], wakingPacket{sentAt: t0, writes: 1}, 0, true},
		"the connect request, whose lease the first pair extends in time": {6800 * time.Millisecond, pairs[:1], wakingPacket{sentAt: t0, writes: 1}, 0, true},
		"a connect request that is too old, without a pair":               {6800 * time.Millisecond, pairs[:0], wakingPacket{}, 0, false},
		"the first pair, once it is a quarter old":                        {interval + answer + quarter, pairs[:1], first, 0, true},
		"an old pair, whose lease the next pair extends in time":          {2*interval + answer + quarter - time.Second/10, pairs[:2], first, 0, true},
		"an old pair without a next one, later than it can wait":          {2*interval + answer + quarter - time.Second/10, pairs[:1], wakingPacket{}, 0, false},
		"the second pair, once it is a quarter old":                       {2*interval + answer + quarter, pairs[:2], second, 0, true},
		"the second pair, soon":                                           {2*interval + answer + quarter - time.Second/10, pairs[1:2], second, time.Second / 10, true},
		"the second pair, beside a younger one":                           {3*interval + answer, pairs[:3], second, 0, true},
		"no pair":                                                         {8 * time.Second, pairs[:0], wakingPacket{}, 0, false},
		"pairs that are too old":                                          {leaseT + interval, pairs[:1], wakingPacket{}, 0, false},
	} {
		packet, wait, found := l.nextPacket(c.pairs, t0+c.age)
		require.Equal(t, c.found, found, name)
		require.Equal(t, c.packet, packet, name)
		require.Equal(t, c.wait, wait, name)
	}
}

// TestALeaseThatBeginsOnASlowLinkLasts: a lease that begins from old pings lasts until the answers to its next heartbeat, however slow the link may be, up to a round trip of T/15.
func TestALeaseThatBeginsOnASlowLinkLasts(t *testing.T) {
	for _, roundTrip := range []time.Duration{leaseT / 1000, leaseT / 60, leaseT / 30, leaseT / 20, leaseT / 15} {
		for age := roundTrip; age < 3*leaseT; age += leaseT / 250 {
			var l sessionLease
			l.beginConnection(t0, leaseT)
			pairs := func(now time.Duration) (pairs []link.PingPair) {
				for sentAt := t0 + roundTrip + link.PingInterval(leaseT); sentAt+roundTrip <= now; sentAt += link.PingInterval(leaseT) {
					pairs = append(pairs, link.PingPair{SentAt: sentAt, AnsweredAt: sentAt + roundTrip})
				}
				return pairs[max(0, len(pairs)-3):]
			}
			now := t0 + age
			packet, wait, found := l.nextPacket(pairs(now), now)
			for !found || wait > 0 {
				now += max(wait, leaseT/1000)
				require.Less(t, now, t0+age+leaseT, "it does not begin")
				packet, wait, found = l.nextPacket(pairs(now), now)
			}
			now += time.Duration(packet.writes-1) * roundTrip
			for heartbeat := range 20 {
				sentAt := now
				now += roundTrip
				if heartbeat == 0 {
					l.beginFrom(packet, now)
				}
				now += roundTrip
				require.Less(t, now, l.until, "heartbeat %d after a wake-up at %v with round trips of %v", heartbeat, age, roundTrip)
				l.syncAcknowledged(sentAt, pairs(now))
				now += l.nextHeartbeat(pairs(now), now)
			}
		}
	}
}

// TestAYoungLeaseIsExtendedByTheNextPings is of a session that woke by pings which leave it little time.
func TestAYoungLeaseIsExtendedByTheNextPings(t *testing.T) {
	const quarter, ms = leaseT / 4, time.Millisecond
	old := link.PingPair{SentAt: t0, AnsweredAt: t0 + 10*ms}
	next := link.PingPair{SentAt: t0 + link.PingInterval(leaseT), AnsweredAt: t0 + link.PingInterval(leaseT) + 10*ms}
	pairs := []link.PingPair{old, next}
	l := sessionLease{timeout: leaseT, connectSentAt: t0 - 10*leaseT}
	now := next.AnsweredAt + quarter - 100*ms
	packet, wait, found := l.nextPacket(pairs, now)
	require.True(t, found && wait == 0)
	require.Equal(t, old.SentAt, packet.sentAt)
	l.beginFrom(packet, now)
	require.Equal(t, ends(old.SentAt), l.until)
	l.syncAcknowledged(now, pairs)
	require.Equal(t, ends(old.SentAt), l.until, "the next pings were answered less than T/4 before the heartbeat")
	require.Equal(t, 100*ms, l.nextHeartbeat(pairs, now))
	l.syncAcknowledged(now+100*ms, pairs)
	require.Equal(t, ends(next.SentAt), l.until, "not the former heartbeat: there was no T/4 between the two")
	require.Equal(t, quarter, l.nextHeartbeat(pairs, now+100*ms))
	l.syncAcknowledged(now+100*ms+quarter, pairs)
	require.Equal(t, ends(now+100*ms), l.until, "the former heartbeat")
}

// TestLapsedLeaseDoesNotStart is of answers that come late.
func TestLapsedLeaseDoesNotStart(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	packet, _, _ := l.nextPacket(nil, t0)
	l.beginFrom(packet, ends(t0))
	require.Zero(t, l.until)
	l.beginFrom(packet, ends(t0)-1)
	require.Equal(t, ends(t0), l.until)
}

func TestMargin(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, clockMargin(10*time.Second))
	require.Equal(t, 130*time.Millisecond, clockMargin(4*time.Second))
}
