package framework

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const t0, leaseT = 100 * time.Second, 10 * time.Second

func ends(from time.Duration) time.Duration { return from + leaseT - margin(leaseT) }

func TestLeaseCountsTheConnectOnceAWriteIsAcknowledged(t *testing.T) {
	var l lease
	l.connected(t0, leaseT)
	require.Zero(t, l.until, "a handshake alone proves nothing")
	l.written()
	require.Equal(t, ends(t0), l.until)
	l.written()
	require.Equal(t, ends(t0), l.until)
}

func TestLeaseCountsFromTheBeatBefore(t *testing.T) {
	var l lease
	l.connected(t0, leaseT)
	for i := range 4 {
		sent := t0 + time.Duration(i+1)*time.Second
		l.written()
		l.synced(sent)
		require.Equal(t, ends(max(t0, sent-time.Second)), l.until, "beat %d", i)
	}
}

func TestLeaseForgetsBeatsOfAFormerConnection(t *testing.T) {
	var l lease
	l.connected(t0, leaseT)
	l.written()
	l.synced(t0 + 5*time.Second)
	l.connected(t0+6*time.Second, leaseT)
	l.synced(t0 + 7*time.Second)
	require.Equal(t, ends(t0), l.until, "no write was acknowledged on the new connection")
	l.written()
	require.Equal(t, ends(t0+6*time.Second), l.until)
	l.written()
	l.synced(t0 + 8*time.Second)
	require.Equal(t, ends(t0+7*time.Second), l.until)
}

func TestLeaseKeepsTheSmallestTimeout(t *testing.T) {
	var l lease
	l.connected(t0, leaseT)
	l.connected(t0, 4*time.Second)
	l.connected(t0, leaseT)
	l.written()
	require.Equal(t, t0+4*time.Second-margin(4*time.Second), l.until)
}

func TestMargin(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, margin(10*time.Second))
	require.Equal(t, 130*time.Millisecond, margin(4*time.Second))
}
