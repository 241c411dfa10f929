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
	const third, quarter, answer = leaseT / 3, leaseT / 4, 100 * time.Millisecond
	var pairs []link.PingPair
	for i := time.Duration(1); i <= 3; i++ {
		pairs = append(pairs, link.PingPair{SentAt: t0 + i*third, AnsweredAt: t0 + i*third + answer})
	}
	second := wakingPacket{sentAt: pairs[1].SentAt, from: pairs[1].AnsweredAt + quarter, writes: 2}
	for name, c := range map[string]struct {
		age    time.Duration   // of the connection
		pairs  []link.PingPair // that are answered
		packet wakingPacket
		wait   time.Duration
		found  bool
	}{
		"the connect request":                       {5 * time.Second, pairs[:1], wakingPacket{sentAt: t0, writes: 1}, 0, true},
		"a pair that is too young, to be awaited":   {6500 * time.Millisecond, pairs[:2], wakingPacket{sentAt: pairs[0].SentAt, from: pairs[0].AnsweredAt + quarter, writes: 2}, 0, true},
		"the second pair, once it is a quarter old": {2*third + answer + quarter, pairs[:2], second, 0, true},
		"the second pair, soon":                     {2*third + answer + quarter - time.Second/10, pairs[1:2], second, time.Second / 10, true},
		"the second pair, beside a younger one":     {3*third + answer, pairs[:3], second, 0, true},
		"no pair":                                   {8 * time.Second, pairs[:0], wakingPacket{}, 0, false},
		"pairs that are too old":                    {leaseT + third, pairs[:1], wakingPacket{}, 0, false},
	} {
		packet, wait, found := l.nextPacket(c.pairs, t0+c.age)
		require.Equal(t, c.found, found, name)
		require.Equal(t, c.packet, packet, name)
		require.Equal(t, c.wait, wait, name)
	}
}

// TestAYoungLeaseIsExtendedByTheNextPings is of a session that woke by pings which leave it little time.
func TestAYoungLeaseIsExtendedByTheNextPings(t *testing.T) {
	const quarter, ms = leaseT / 4, time.Millisecond
	old := link.PingPair{SentAt: t0, AnsweredAt: t0 + 10*ms}
	next := link.PingPair{SentAt: t0 + leaseT/3, AnsweredAt: t0 + leaseT/3 + 10*ms}
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
