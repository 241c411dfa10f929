package zktest

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// wired makes a connection whose server end the test holds.
func wired() (*Link, *connectionPair) {
	k := &Link{name: "k", dialsChanged: make(chan struct{}), pairs: map[*connectionPair]struct{}{}}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k, k.newLinkPair(false)
}

func (p *connectionPair) closeBoth() {
	_ = p.client.Close()
	_ = p.server.Close()
}

func TestBytesArriveInOrderAndEndWithEOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, p := wired()
		want := bytes.Repeat([]byte("0123456789"), 100_000) // more than the pipe holds
		go func() {
			_, err := p.client.Write(want)
			require.NoError(t, err)
			require.NoError(t, p.client.Close())
		}()
		got, err := io.ReadAll(p.server)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		require.NoError(t, p.server.Close())
		require.Zero(t, k.Connections())
	})
}

func TestAWriterWaitsForAFullPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := wired()
		defer p.closeBoth()
		require.NoError(t, p.client.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := p.client.Write(make([]byte, pipeLimit+1))
		require.Equal(t, pipeLimit, n)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var ne net.Error
		require.ErrorAs(t, err, &ne)
		require.True(t, ne.Timeout())
	})
}

func TestDeadlinesMayMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := wired()
		defer p.closeBoth()
		start := time.Now()
		require.NoError(t, p.client.SetReadDeadline(start.Add(time.Hour)))
		time.AfterFunc(time.Second, func() { _ = p.client.SetDeadline(start.Add(2 * time.Second)) })
		_, err := p.client.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.NoError(t, p.client.SetDeadline(time.Time{}))
		_, err = p.client.Write([]byte("x"))
		require.NoError(t, err)
	})
}

func TestHeldBytesArriveAfterHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, p := wired()
		k.BlackHole(true, false)
		_, err := p.client.Write([]byte("held"))
		require.NoError(t, err)
		require.NoError(t, p.client.Close())
		require.NoError(t, p.server.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = p.server.Read(make([]byte, 9))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "neither bytes nor the close get through")
		_, err = p.server.Write([]byte("into the void"))
		require.NoError(t, err, "that the client is gone is not known yet")
		k.Heal()
		require.NoError(t, p.server.SetReadDeadline(time.Time{}))
		got, err := io.ReadAll(p.server)
		require.NoError(t, err)
		require.Equal(t, "held", string(got))
		_, err = p.server.Write([]byte("x"))
		require.ErrorIs(t, err, errReset)
		require.NoError(t, p.server.Close())
	})
}

func TestDelayKeepsOrderWhenItShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, p := wired()
		defer p.closeBoth()
		start := time.Now()
		k.Delay(3 * time.Second)
		_, _ = p.client.Write([]byte("a"))
		k.Delay(0)
		_, _ = p.client.Write([]byte("b"))
		b := make([]byte, 9)
		n, err := p.server.Read(b)
		require.NoError(t, err)
		require.Equal(t, "ab", string(b[:n]))
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestResetReachesBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, p := wired()
		_, _ = p.client.Write([]byte("lost"))
		k.BlackHole(true, true)
		k.Reset()
		for _, e := range []*connectionEnd{p.client, p.server} {
			_, err := e.Read(make([]byte, 1))
			require.ErrorIs(t, err, errReset)
			_, err = e.Write([]byte("x"))
			require.ErrorIs(t, err, errReset)
		}
		require.Zero(t, k.Connections())
		p.closeBoth()
	})
}

func TestOwnCloseEndsOwnCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := wired()
		time.AfterFunc(time.Second, p.closeBoth)
		_, err := p.client.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		synctest.Wait() // until closeBoth has returned
		_, err = p.client.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorContains(t, err, "k#1")
	})
}
