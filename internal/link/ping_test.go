package link

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func ping() []byte { return frame(wire.XidPing, int32(wire.OpPing)) }

func pong() []byte { return reply(wire.XidPing, 10) }

// testTimeout is a session timeout in milliseconds.
const testTimeout = 4000

// expectNextPings expects a pair of pings after an interval.
func (p *peer) expectNextPings() {
	time.Sleep(PingInterval(testTimeout * time.Millisecond))
	p.expect(append(ping(), ping()...))
}

// TestPingsAreSentInPairs answers both pings of a pair late. The library reads one answer. Its own
// pings are not sent.
func TestPingsAreSentInPairs(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, testTimeout)
		_, err := c.Write(ping())
		require.NoError(t, err)
		sent := PingInterval(testTimeout * time.Millisecond)
		require.Equal(t, 1800*time.Millisecond, sent)
		time.Sleep(sent - time.Millisecond)
		p.stall(true)
		time.Sleep(time.Second)
		p.stall(false)
		p.expect(append(ping(), ping()...))
		p.answer(pong())
		read(t, c, len(pong()))
		require.Empty(t, f.m.Status().Connection.PingPairs(), "half a pair")
		time.Sleep(time.Second / 4)
		own := reply(3, 0)
		p.answer(append(pong(), own...))
		library{f, c}.reads(own)
		require.Equal(t, []PingPair{{SentAt: sent, AnsweredAt: sent - time.Millisecond + 1250*time.Millisecond}},
			f.m.Status().Connection.PingPairs())
		<-f.m.Changed()
	})
}

// TestPingPairsOfAnotherConnectionDoNotCount asks for those of a connection that is gone, and of
// the one that follows.
func TestPingPairsOfAnotherConnectionDoNotCount(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		own := reply(3, 0)
		pinged := func(asked int64) {
			c, p := f.up(asked, 77, testTimeout)
			p.expectNextPings()
			p.answer(slices.Concat(pong(), pong(), own))
			library{f, c}.reads(append(pong(), own...))
		}
		pinged(0)
		first := f.m.Status().Connection
		require.Len(t, first.PingPairs(), 1)
		first.Cut()
		require.Empty(t, first.PingPairs())
		pinged(77)
		require.Empty(t, first.PingPairs())
		require.Len(t, f.m.Status().Connection.PingPairs(), 1)
	})
}

// TestNoPingsFollowAConnection waits after a connection has ended.
func TestNoPingsFollowAConnection(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, testTimeout)
		p.expectNextPings()
		conn := f.m.Status().Connection
		require.NoError(t, c.Close())
		time.Sleep(time.Hour)
		require.Empty(t, conn.PingPairs())
	})
}

// TestTheLatestPingPairsAreKept pings for a long time. One pair is answered as the next one has
// been sent.
func TestTheLatestPingPairsAreKept(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, testTimeout)
		own := reply(3, 0)
		at, interval := f.m.Status().Handshake.SentAt, PingInterval(testTimeout*time.Millisecond)
		for i := range time.Duration(10) {
			p.expectNextPings()
			pongs, read := bytes.Repeat(pong(), 2), pong()
			if i == 8 {
				p.expectNextPings()
				pongs, read = slices.Concat(pongs, pongs), slices.Concat(read, read)
			}
			p.answer(append(pongs, own...))
			library{f, c}.reads(append(read, own...))
		}
		want := []PingPair{
			{SentAt: at + 9*interval, AnsweredAt: at + 10*interval},
			{SentAt: at + 10*interval, AnsweredAt: at + 10*interval},
			{SentAt: at + 11*interval, AnsweredAt: at + 11*interval},
		}
		require.Equal(t, want, f.m.Status().Connection.PingPairs())
	})
}

// TestAServerIsWaitedForBetweenPings: the library gives a server up after two thirds of the session
// timeout, as if it had sent its own pings.
func TestAServerIsWaitedForBetweenPings(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, _ := f.up(0, 77, testTimeout)
		began := time.Now()
		require.NoError(t, c.SetReadDeadline(began.Add(testTimeout*time.Millisecond*2/3)))
		_, err := c.Read(make([]byte, 4))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began).Round(time.Millisecond))
	})
}

// TestAnAnswerToNoPingGoesToTheLibrary is of a server that answers too often.
func TestAnAnswerToNoPingGoesToTheLibrary(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, 4000)
		p.answer(bytes.Repeat(pong(), 2))
		library{f, c}.reads(bytes.Repeat(pong(), 2))
		require.Empty(t, f.m.Status().Connection.PingPairs())
	})
}
