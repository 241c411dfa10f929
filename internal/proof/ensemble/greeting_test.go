package ensemble

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// greeting returns what the server with this id sends to a peer's election port.
func greeting(version, id int64, address string) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(version))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = binary.BigEndian.AppendUint32(b, uint32(len(address)))
	return append(b, address...)
}

func TestGreetingHasTheLinkAddress(t *testing.T) {
	for _, version := range []int64{-65536, -65535} {
		own := string(greeting(version, 3, "127.0.0.1:15001|127.0.0.1:15002"))
		want := string(greeting(version, 3, "127.0.0.1:40001")) + "votes"
		for _, from := range []io.Reader{strings.NewReader(own + "votes"),
			iotest.OneByteReader(strings.NewReader(own + "votes"))} {
			got, err := io.ReadAll(rewriteGreeting("127.0.0.1:40001")(from))
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		}
	}
}

// FuzzGreeting checks that bytes that are not a greeting pass unchanged, and that all bytes after a
// greeting do.
func FuzzGreeting(f *testing.F) {
	f.Add(greeting(-65536, 1, "127.0.0.1:15001"))
	f.Add(greeting(-65536, 1, "127.0.0.1:15001")[:30])
	f.Add(greeting(-65536, 1, strings.Repeat("x", longestAddress+1)))
	f.Add(greeting(7, 1, "")) // an old version's: the id alone
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, sent []byte) {
		const address = "127.0.0.1:40001"
		got, err := io.ReadAll(rewriteGreeting(address)(bytes.NewReader(sent)))
		require.NoError(t, err)
		if bytes.Equal(got, sent) {
			return
		}
		length := binary.BigEndian.Uint32(sent[16:])
		version, id := int64(binary.BigEndian.Uint64(sent)), int64(binary.BigEndian.Uint64(sent[8:]))
		require.Negative(t, version)
		require.Equal(t, append(greeting(version, id, address), sent[greetingHead+length:]...), got)
	})
}
