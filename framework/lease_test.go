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
	packet, wait, found := l.nextEvidence(nil, now)
	require.True(t, found && wait == 0)
	require.Equal(t, leaseEvidence{sentAt: l.connectSentAt, writes: 1}, packet)
	l.beginFrom(packet, now)
}

// beat takes in a heartbeat that was due, sent and answered at one time.
func (l *sessionLease) beat(at time.Duration, pairs ...link.PingPair) {
	l.due = at
	l.syncAcknowledged(at, pairs, at)
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
		sent := t0 + time.Duration(i+1)*leaseT/4
		l.writeAcknowledged()
		l.beat(sent)
		require.Equal(t, ends(max(t0, sent-leaseT/4)), l.until, "heartbeat %d", i)
	}
}

// TestOnlyAHeartbeatAQuarterBeforeIsAFormerOne: those that came between the two do not matter.
func TestOnlyAHeartbeatAQuarterBeforeIsAFormerOne(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	const quarter = leaseT / 4
	first := t0 + time.Second
	l.beat(first)
	l.beat(first + quarter - 1)
	require.Equal(t, ends(t0), l.until)
	l.beat(first + quarter)
	require.Equal(t, ends(first), l.until)
	l.beat(first + 2*quarter - 1)
	require.Equal(t, ends(first+quarter-1), l.until)
	l.due = first + 4*quarter
	l.syncAcknowledged(l.due, nil, l.due+time.Second)
	l.beat(first + 5*quarter)
	require.Equal(t, ends(first+2*quarter-1), l.until, "the one before was answered too late")
}

// TestAHeartbeatCountsThoughTheClockGoesBack: a reading of the clock may be up to 1 ms less than
// the one before.
func TestAHeartbeatCountsThoughTheClockGoesBack(t *testing.T) {
	l := sessionLease{}
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	l.shifted = 100
	l.beat(t0 + time.Second)
	now := t0 + time.Second - time.Millisecond
	now += l.nextHeartbeat(nil, now)
	l.syncAcknowledged(now, nil, now)
	require.Equal(t, ends(t0+time.Second), l.until)
}

func TestLeaseBehindObserverMasterCountsFromEarlierHeartbeat(t *testing.T) {
	l := sessionLease{extraHeartbeats: 1}
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	for i := range 5 {
		sent := t0 + time.Duration(i+1)*leaseT/4
		l.writeAcknowledged()
		l.beat(sent)
		require.Equal(t, ends(max(t0, sent-leaseT/2)), l.until, "heartbeat %d", i)
	}
	l.beginConnection(t0+5*leaseT/4, leaseT)
	for i := range time.Duration(2) {
		l.beat(t0 + (6+i)*leaseT/4)
		require.Equal(t, ends(t0+3*leaseT/4), l.until, "the former connection's heartbeats count no more")
	}
}

func TestLeaseForgetsHeartbeatsOfAFormerConnection(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.beginFromConnect(t, t0)
	l.beat(t0 + 3*time.Second)
	l.beginConnection(t0+6*time.Second, leaseT)
	l.beat(t0 + 7*time.Second)
	require.Equal(t, ends(t0), l.until, "no write was acknowledged on the new connection")
	l.writeAcknowledged()
	require.Equal(t, ends(t0+6*time.Second), l.until)
	l.writeAcknowledged()
	l.beat(t0 + 9500*time.Millisecond)
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

// TestASmallerTimeoutShortensALease: the servers move the session's expiry when it connects with
// the smaller timeout.
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
	l.beat(t0 + time.Second)
	l.endLease()
	l.writeAcknowledged()
	l.beat(t0 + 2*time.Second)
	require.Zero(t, l.until)
	l.beat(t0 + 4500*time.Millisecond)
	require.Zero(t, l.until)
	l.beginFromConnect(t, t0+6*time.Second)
	l.beat(t0 + 7*time.Second)
	require.Equal(t, ends(t0), l.until, "the heartbeats of the sleep are no former ones")
	l.beat(t0 + 9500*time.Millisecond)
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
	first := leaseEvidence{sentAt: pairs[0].SentAt, from: pairs[0].AnsweredAt + quarter, writes: 2}
	second := leaseEvidence{sentAt: pairs[1].SentAt, from: pairs[1].AnsweredAt + quarter, writes: 2}
	for name, c := range map[string]struct {
		age    time.Duration   // of the connection
		pairs  []link.PingPair // that are answered
		packet leaseEvidence
		wait   time.Duration
		found  bool
	}{
		"the connect request": {5 * time.Second, pairs[:1], leaseEvidence{sentAt: t0, writes: 1}, 0, true},
		"the connect request, whose lease the first pair extends in time": {6800 * time.Millisecond, pairs[:1],
			leaseEvidence{sentAt: t0, writes: 1}, 0, true},
		"a connect request that is too old, without a pair": {6800 * time.Millisecond, pairs[:0], leaseEvidence{},
			0, false},
		"the first pair, once it is a quarter old": {interval + answer + quarter, pairs[:1],
			first, 0, true},
		"an old pair, whose lease the next pair extends in time": {2*interval + answer + quarter - time.Second/10,
			pairs[:2], first, 0, true},
		"an old pair without a next one, later than it can wait": {2*interval + answer + quarter - time.Second/10,
			pairs[:1], leaseEvidence{}, 0, false},
		"the second pair, once it is a quarter old": {2*interval + answer + quarter, pairs[:2], second, 0, true},
		"the second pair, soon": {2*interval + answer + quarter - time.Second/10, pairs[1:2],
			second, time.Second / 10, true},
		"the second pair, beside a younger one": {3*interval + answer, pairs[:3], second, 0, true},
		"no pair":                               {8 * time.Second, pairs[:0], leaseEvidence{}, 0, false},
		"pairs that are too old":                {leaseT + interval, pairs[:1], leaseEvidence{}, 0, false},
	} {
		packet, wait, found := l.nextEvidence(c.pairs, t0+c.age)
		require.Equal(t, c.found, found, name)
		require.Equal(t, c.packet, packet, name)
		require.Equal(t, c.wait, wait, name)
	}
}

// TestALeaseThatBeginsOnASlowLinkLasts: a lease that begins from old pings lasts until the answers
// to its next heartbeat, however slow the link may be, up to a round trip of T/15.
func TestALeaseThatBeginsOnASlowLinkLasts(t *testing.T) {
	for _, roundTrip := range []time.Duration{leaseT / 1000, leaseT / 60, leaseT / 30, leaseT / 20, leaseT / 15} {
		for age := roundTrip; age < 3*leaseT; age += leaseT / 250 {
			l := sessionLease{phase: float64(age%(leaseT/4)) / float64(leaseT/4)}
			l.beginConnection(t0, leaseT)
			pairs := func(now time.Duration) (pairs []link.PingPair) {
				for sentAt := t0 + roundTrip + link.PingInterval(leaseT); sentAt+
					roundTrip <= now; sentAt += link.PingInterval(leaseT) {
					pairs = append(pairs, link.PingPair{SentAt: sentAt, AnsweredAt: sentAt + roundTrip})
				}
				return pairs[max(0, len(pairs)-3):]
			}
			now := t0 + age
			packet, wait, found := l.nextEvidence(pairs(now), now)
			for !found || wait > 0 {
				now += max(wait, leaseT/1000)
				require.Less(t, now, t0+age+leaseT, "it does not begin")
				packet, wait, found = l.nextEvidence(pairs(now), now)
			}
			now += time.Duration(packet.writes-1) * roundTrip
			for heartbeat := range 20 {
				sentAt := now
				now += roundTrip
				if heartbeat == 0 {
					l.beginFrom(packet, now)
				}
				now += roundTrip
				require.Less(t, now, l.until, "heartbeat %d after a wake-up at %v with round trips of %v", heartbeat,
					age, roundTrip)
				l.syncAcknowledged(sentAt, pairs(now), now)
				now += l.nextHeartbeat(pairs(now), now)
			}
		}
	}
}

// TestAYoungLeaseIsExtendedByTheNextPings is of a session that woke by pings which leave it little
// time.
func TestAYoungLeaseIsExtendedByTheNextPings(t *testing.T) {
	const quarter, ms = leaseT / 4, time.Millisecond
	old := link.PingPair{SentAt: t0, AnsweredAt: t0 + 10*ms}
	next := link.PingPair{SentAt: t0 + link.PingInterval(leaseT), AnsweredAt: t0 + link.PingInterval(leaseT) + 10*ms}
	pairs := []link.PingPair{old, next}
	l := sessionLease{timeout: leaseT, connectSentAt: t0 - 10*leaseT}
	now := next.AnsweredAt + quarter - 100*ms
	packet, wait, found := l.nextEvidence(pairs, now)
	require.True(t, found && wait == 0)
	require.Equal(t, old.SentAt, packet.sentAt)
	l.beginFrom(packet, now)
	require.Equal(t, ends(old.SentAt), l.until)
	l.beat(now, pairs...)
	require.Equal(t, ends(old.SentAt), l.until, "the next pings were answered less than T/4 before the heartbeat")
	require.Equal(t, 100*ms, l.nextHeartbeat(pairs, now))
	l.beat(now+100*ms, pairs...)
	require.Equal(t, ends(next.SentAt), l.until, "not the previous heartbeat: there was no T/4 between the two")
	l.shifted = 3
	require.Equal(t, quarter, l.nextHeartbeat(pairs, now+100*ms))
	l.beat(now+100*ms+quarter, pairs...)
	require.Equal(t, ends(now+100*ms), l.until, "the previous heartbeat")
}

// TestLapsedLeaseDoesNotStart is of answers that come late.
func TestLapsedLeaseDoesNotStart(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	packet, _, _ := l.nextEvidence(nil, t0)
	l.beginFrom(packet, ends(t0))
	require.Zero(t, l.until)
	l.beginFrom(packet, ends(t0)-1)
	require.Equal(t, ends(t0), l.until)
}

func TestMargin(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, clockMargin(10*time.Second))
	require.Equal(t, 130*time.Millisecond, clockMargin(4*time.Second))
}

// TestTheMoveToAPhaseShortensNoLease is of sessions whose connect request is young or old. One that
// moves to its own phase has at least as much of its lease left whenever a heartbeat is due as one
// that does not move. Afterwards its heartbeats come each quarter of T.
func TestTheMoveToAPhaseShortensNoLease(t *testing.T) {
	for extraHeartbeats := range 2 {
		for age := time.Duration(0); age <= leaseT/4; age += leaseT / 16 {
			for _, roundTrip := range []time.Duration{0, leaseT / 1000, leaseT / 100, leaseT / 60, leaseT / 35} {
				still, stillDues := leaseWhileMoving(t,
					sessionLease{extraHeartbeats: extraHeartbeats}, age, roundTrip, 100)
				for part := range 100 {
					moved, dues := leaseWhileMoving(t,
						sessionLease{extraHeartbeats: extraHeartbeats, phase: float64(part) / 100}, age, roundTrip, 0)
					require.GreaterOrEqual(t, moved, still, "part %d, %v", part, roundTrip)
					require.Less(t, dues[0], stillDues[0])
					require.Equal(t, stillDues[0], dues[1], "the other heartbeat comes when it would have come")
					for i := 6; i < len(dues); i++ {
						require.Equal(t, leaseT/4+2*roundTrip, dues[i]-dues[i-1])
					}
				}
			}
		}
	}
}

// TestAHeartbeatThatCountsForNothingIsFollowedByAnother: a process was stopped until its lease had
// lapsed, so the answer to the second heartbeat is not taken in. The loop asks for the next one
// before it sees that the session has ended.
func TestAHeartbeatThatCountsForNothingIsFollowedByAnother(t *testing.T) {
	for extraHeartbeats := range 2 {
		l := sessionLease{extraHeartbeats: extraHeartbeats, phase: 0.5}
		l.beginConnection(t0, leaseT)
		packet, _, _ := l.nextEvidence(nil, t0)
		l.beginFrom(packet, t0)
		l.syncAcknowledged(t0, nil, t0)
		now := t0 + l.nextHeartbeat(nil, t0)
		require.Equal(t, t0+leaseT/8, now)
		require.GreaterOrEqual(t, l.nextHeartbeat(nil, now+2*leaseT), time.Duration(0))
		require.LessOrEqual(t, l.nextHeartbeat(nil, now), leaseT/4)
	}
}

// leaseWhileMoving begins a lease from a connect request of some age, and sends heartbeats. It
// returns the least that was left of the lease when one was due, and when they were due.
func leaseWhileMoving(t *testing.T, l sessionLease, age, roundTrip time.Duration,
	shifted int) (least time.Duration, dues []time.Duration) {
	t.Helper()
	l.beginConnection(t0, leaseT)
	l.shifted = shifted
	now := t0 + age + roundTrip
	packet, wait, found := l.nextEvidence(nil, now)
	require.True(t, found && wait == 0)
	least = leaseT
	for heartbeat := range 20 {
		sentAt := now
		now += roundTrip
		if heartbeat == 0 {
			l.beginFrom(packet, now)
		}
		now += roundTrip
		l.syncAcknowledged(sentAt, nil, now)
		now += l.nextHeartbeat(nil, now)
		least, dues = min(least, l.until-now), append(dues, now)
	}
	return least, dues
}

// TestPhasesAreSpreadEvenly is of the sessions that one server has opened, and of those that it has
// opened between others.
func TestPhasesAreSpreadEvenly(t *testing.T) {
	for _, first := range []int64{1 << 56, 3<<56 | 0x19d4f2a1b3c0000} {
		for step := range int64(5) {
			var slices [20]int
			for i := range int64(2000) {
				slices[int(phaseOf(first+i*(step+1))*20)]++
			}
			for _, n := range slices {
				require.InDelta(t, 100, n, 10)
			}
		}
	}
}
