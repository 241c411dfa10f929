package link

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func ping() []byte { return frame(wire.XidPing, int32(wire.OpPing)) }

func pong() []byte { return reply(wire.XidPing, 10) }

// TestAPingIsSentTwice answers both pings late. The library reads one answer.
func TestAPingIsSentTwice(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, 4000)
		time.Sleep(time.Second)
		p.stall(true)
		_, err := c.Write(ping())
		require.NoError(t, err)
		time.Sleep(time.Second)
		p.stall(false)
		p.expect(append(ping(), ping()...))
		p.answer(pong())
		read(t, c, len(pong()))
		require.Empty(t, f.m.PingPairs(1), "half a pair")
		time.Sleep(time.Second)
		event := frame(wire.XidNotify, int64(-1), int32(0), "event")
		p.answer(append(pong(), event...))
		library{f, c}.reads(event)
		require.Equal(t, []PingPair{{SentAt: time.Second, AnsweredAt: 3 * time.Second}}, f.m.PingPairs(1))
		<-f.m.Changed()
	})
}

// TestPingPairsOfAnotherConnectionDoNotCount asks for those of a connection that is gone, and of the one that follows.
func TestPingPairsOfAnotherConnectionDoNotCount(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		event := frame(wire.XidNotify, int64(-1), int32(0), "event")
		pinged := func(asked int64) {
			c, p := f.up(asked, 77, 4000)
			_, err := c.Write(ping())
			require.NoError(t, err)
			p.answer(slices.Concat(pong(), pong(), event))
			library{f, c}.reads(append(pong(), event...))
		}
		pinged(0)
		require.Len(t, f.m.PingPairs(1), 1)
		f.m.Cut(1)
		require.Empty(t, f.m.PingPairs(1))
		pinged(77)
		require.Empty(t, f.m.PingPairs(1))
		require.Len(t, f.m.PingPairs(2), 1)
	})
}

// TestTheLatestPingPairsAreKept pings for a long time, two pings at once among them.
func TestTheLatestPingPairsAreKept(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, 4000)
		event := frame(wire.XidNotify, int64(-1), int32(0), "event")
		for range 10 {
			time.Sleep(time.Second)
			for range 2 {
				_, err := c.Write(ping())
				require.NoError(t, err)
			}
			p.expect(bytes.Repeat(ping(), 4))
			p.answer(append(bytes.Repeat(pong(), 4), event...))
			library{f, c}.reads(slices.Concat(pong(), pong(), event))
		}
		at := f.m.Status().Handshake.SentAt
		want := []PingPair{}
		for _, s := range []time.Duration{9, 9, 10, 10} {
			want = append(want, PingPair{SentAt: at + s*time.Second, AnsweredAt: at + s*time.Second})
		}
		require.Equal(t, want, f.m.PingPairs(1))
	})
}

// TestAnAnswerToNoPingGoesToTheLibrary is of a server that answers too often.
func TestAnAnswerToNoPingGoesToTheLibrary(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, 4000)
		p.answer(bytes.Repeat(pong(), 2))
		library{f, c}.reads(bytes.Repeat(pong(), 2))
		require.Empty(t, f.m.PingPairs(1))
	})
}
