package ensemble

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASlowLinkDelaysBothWays(t *testing.T) {
	const delay = 50 * time.Millisecond
	p := proxyTo(t, echo(t))
	conn := dial(t, p.Addr())
	send(t, conn, "one")
	wantText(t, conn, "one")
	p.Slow(delay)
	began := time.Now()
	send(t, conn, "two")
	wantText(t, conn, "two")
	require.GreaterOrEqual(t, time.Since(began), 2*delay)
	p.Slow(time.Hour)
	send(t, conn, "three")
	wantSilence(t, conn)
	p.Reset() // what crawls is lost at once
	wantEnd(t, conn)
	p.Slow(0)
	again := dial(t, p.Addr())
	send(t, again, "four")
	wantText(t, again, "four")
}

func TestSlowNeedsLinks(t *testing.T) {
	require.ErrorIs(t, (&Ensemble{}).Slow(time.Second), errNoLinks)
}
