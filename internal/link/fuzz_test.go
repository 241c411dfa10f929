package link

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzAnswers feeds a server's bytes to what looks at them.
func FuzzAnswers(f *testing.F) {
	f.Add(welcome(1, 4000), true)
	f.Add(reply(1, 2), false)
	f.Add([]byte("HTTP/1.1 200 OK"), true)
	f.Fuzz(func(t *testing.T, b []byte, first bool) {
		br := bufio.NewReaderSize(bytes.NewReader(b), readBuffer)
		size, err := peekSize(br, !first)
		if err != nil {
			return
		}
		require.LessOrEqual(t, size, maxFrame)
		if first {
			h, err := peekHandshake(br, size)
			require.True(t, err != nil || len(h.Password) <= size)
			return
		}
		_, _, _ = peekReply(br)
	})
}

func FuzzRequests(f *testing.F) {
	f.Add(hello(3))
	f.Add(create(1, "/x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseGreeting(b)
		_, _, path := parseRequest(b)
		require.LessOrEqual(t, len(path), len(b))
	})
}
