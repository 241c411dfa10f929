package zkserver

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzFirstBytes sends any bytes as the beginning of a connection: a four-letter word, a handshake,
// requests, or none of these. The connection ends, the size of the answer is limited, and the state
// stays consistent.
func FuzzFirstBytes(f *testing.F) {
	for word := range fourLetterWords {
		f.Add([]byte(word))
	}
	f.Add(handshake(4000))
	f.Add(append(handshake(4000), frameOf(11, nil)...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0x16, 3, 1, 2, 0, 1}) // TLS
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, stream []byte) {
		s, err := New(Config{})
		require.NoError(t, err)
		defer s.Close()
		client, server := net.Pipe()
		require.NoError(t, s.ServeConn(server))
		go func() {
			_, _ = client.Write(stream)
			_ = client.Close()
		}()
		answer, _ := io.ReadAll(io.LimitReader(client, 1<<20)) // the connection may end with any error
		require.LessOrEqual(t, len(answer), 64*len(stream)+64<<10)
		require.LessOrEqual(t, len(s.Sessions()), 1)
		s.Close()
		checkInvariants(t, s)
	})
}

// FuzzRanges parses addresses and ranges, as a client may put them into an ACL.
func FuzzRanges(f *testing.F) {
	for _, expr := range []string{"10.0.0.1", "10.0.0.0/8", "010.+1.0.0/0", "1.2.3", "1.2.3.4/33", "1.2.3.4/-1", "::1",
		"1.2.3.4/", "a:b:", ":"} {
		f.Add("10.0.0.1", expr)
	}
	f.Fuzz(func(t *testing.T, address, expr string) {
		r, ok := parseIPRange(expr)
		if !ok {
			require.False(t, inIPRange(address, expr))
			return
		}
		require.True(t, r.IsValid())
		again, ok := parseIPRange(r.String())
		require.True(t, ok)
		require.Equal(t, r, again)
		require.True(t, inIPRange(r.Addr().String(), expr))
		if a, err := netip.ParseAddr(address); err == nil {
			require.Equal(t, r.Contains(a), inIPRange(address, expr))
		}
		if validDigest(expr) {
			require.Contains(t, strings.TrimRight(expr, ":"), ":")
		}
	})
}
