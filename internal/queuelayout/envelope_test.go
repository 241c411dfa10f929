package queuelayout

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestItemsOfThisReleaseStayReadable: these bytes were written by the first release.
func TestItemsOfThisReleaseStayReadable(t *testing.T) {
	full := Header{ID: "a", Priority: 3, Attempts: 2, Error: "no", Trace: map[string]string{"traceparent": "x"}}
	for golden, e := range map[string]Envelope{
		"\x01\x00hello":               {Payload: []byte("hello")},
		"\x01\x0a{\"id\":\"a\"}hello": {Header{ID: "a"}, []byte("hello")},
		"\x01\x44{\"id\":\"a\",\"prio\":3,\"tries\":2,\"err\":\"no\",\"trace\":{\"traceparent\":\"x\"}}": {full, []byte{}},
		"\x01\x0d{\"ttl\":60000}x":           {Header{TTL: 60000}, []byte("x")},
		"\x01\x16{\"tries\":1,\"unseen\":2}": {Header{Attempts: 1, Unseen: 2}, []byte{}},
		"\x01\x28{\"put\":946684800000,\"headers\":{\"k\":\"v\"}}x": {
			Header{Put: 946684800000, Headers: map[string]string{"k": "v"}}, []byte("x"),
		},
	} {
		data, err := e.Encode()
		require.NoError(t, err)
		require.Equal(t, golden, string(data))
		got, err := DecodeEnvelope([]byte(golden))
		require.NoError(t, err)
		got.Header.unknown = nil
		require.Equal(t, e.Header, got.Header)
		require.Equal(t, string(e.Payload), string(got.Payload))
	}
}

func TestFieldsOfNewerReleasesAreKept(t *testing.T) {
	head := `{"colour":"red","tries":1}`
	e, err := DecodeEnvelope(append([]byte{1, byte(len(head))}, head...))
	require.NoError(t, err)
	data, err := e.AfterFailure(2, errors.New("why")).Encode()
	require.NoError(t, err)
	require.JSONEq(t, `{"colour":"red","tries":2,"err":"why"}`, string(data[2:]))
}

func TestInvalidEnvelopesAreRefused(t *testing.T) {
	for _, data := range []string{"", "\x00", "\x01", "\x01\x05{}", "\x01\x02[]",
		"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x01\x0b{\"prio\":-1}", "\x01\x0c{\"tries\":-1}", "\x01\x0a{\"put\":-1}", "\x01\x0a{\"ttl\":-1}",
		"\x01\x1b{\"ttl\":9223372036854775807}", "\x01\x10{\"headers\":[\"x\"]}"} {
		_, err := DecodeEnvelope([]byte(data))
		require.ErrorIs(t, err, errEnvelope, "%q", data)
	}
	_, err := DecodeEnvelope([]byte{2, 0})
	require.ErrorIs(t, err, framework.ErrNewer)
	_, err = Envelope{Payload: bytes.Repeat([]byte{1}, MaxItem)}.EncodeNew()
	require.ErrorIs(t, err, framework.ErrTooLarge)
	require.Len(t, Envelope{}.AfterFailure(1, errors.New(strings.Repeat("x", 5000))).Header.Error, maxReason)
}

func FuzzDecodeEnvelope(f *testing.F) {
	f.Add([]byte("\x01\x00hello"))
	f.Add([]byte("\x01\x0a{\"id\":\"a\"}hello"))
	f.Add([]byte("\x01\x0d{\"ttl\":60000}x"))
	f.Add([]byte("\x01\x28{\"put\":946684800000,\"headers\":{\"k\":\"v\"}}x"))
	f.Add([]byte("\x01\x1d{\"colour\":\"red\",\"tries\":1}  x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeEnvelope(data)
		if err != nil {
			require.True(t, errors.Is(err, errEnvelope) || errors.Is(err, framework.ErrNewer))
			return
		}
		again, err := e.Encode()
		require.NoError(t, err)
		back, err := DecodeEnvelope(again)
		require.NoError(t, err)
		require.Equal(t, e.Payload, back.Payload)
		require.Equal(t, e.Header.ID, back.Header.ID)
		require.Equal(t, e.Header.Attempts, back.Header.Attempts)
		require.Equal(t, e.Header.Put, back.Header.Put)
		require.Equal(t, e.Header.TTL, back.Header.TTL)
		require.Equal(t, len(e.Header.Headers), len(back.Header.Headers))
	})
}
