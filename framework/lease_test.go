package framework

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const t0, leaseT = 100 * time.Second, 10 * time.Second

func ends(from time.Duration) time.Duration { return from + leaseT - clockMargin(leaseT) }

func TestLeaseCountsTheConnectOnceAWriteIsAcknowledged(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	require.Zero(t, l.until, "a handshake alone proves nothing")
	l.writeAcknowledged()
	require.Equal(t, ends(t0), l.until)
	l.writeAcknowledged()
	require.Equal(t, ends(t0), l.until)
}

func TestLeaseCountsFromTheBeatBefore(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	for i := range 4 {
		sent := t0 + time.Duration(i+1)*time.Second
		l.writeAcknowledged()
		l.syncAcknowledged(sent)
		require.Equal(t, ends(max(t0, sent-time.Second)), l.until, "beat %d", i)
	}
}

func TestLeaseForgetsBeatsOfAFormerConnection(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.writeAcknowledged()
	l.syncAcknowledged(t0 + 5*time.Second)
	l.beginConnection(t0+6*time.Second, leaseT)
	l.syncAcknowledged(t0 + 7*time.Second)
	require.Equal(t, ends(t0), l.until, "no write was acknowledged on the new connection")
	l.writeAcknowledged()
	require.Equal(t, ends(t0+6*time.Second), l.until)
	l.writeAcknowledged()
	l.syncAcknowledged(t0 + 8*time.Second)
	require.Equal(t, ends(t0+7*time.Second), l.until)
}

func TestLeaseKeepsTheSmallestTimeout(t *testing.T) {
	var l sessionLease
	l.beginConnection(t0, leaseT)
	l.beginConnection(t0, 4*time.Second)
	l.beginConnection(t0, leaseT)
	l.writeAcknowledged()
	require.Equal(t, t0+4*time.Second-clockMargin(4*time.Second), l.until)
}

func TestMargin(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, clockMargin(10*time.Second))
	require.Equal(t, 130*time.Millisecond, clockMargin(4*time.Second))
}
