package queue

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestItemsOfThisReleaseStayReadable: these bytes were written by the first release.
func TestItemsOfThisReleaseStayReadable(t *testing.T) {
	full := itemHeader{ID: "a", Priority: 3, Attempts: 2, Error: "no", Trace: map[string]string{"traceparent": "x"}}
	for golden, e := range map[string]envelope{
		"\x01\x00hello":               {payload: []byte("hello")},
		"\x01\x0a{\"id\":\"a\"}hello": {itemHeader{ID: "a"}, []byte("hello")},
		"\x01\x44{\"id\":\"a\",\"prio\":3,\"tries\":2,\"err\":\"no\",\"trace\":{\"traceparent\":\"x\"}}": {full, []byte{}},
		"\x01\x0d{\"ttl\":60000}x":           {itemHeader{TTL: 60000}, []byte("x")},
		"\x01\x16{\"tries\":1,\"unseen\":2}": {itemHeader{Attempts: 1, Unseen: 2}, []byte{}},
		"\x01\x28{\"put\":946684800000,\"headers\":{\"k\":\"v\"}}x": {
			itemHeader{Put: 946684800000, Headers: map[string]string{"k": "v"}}, []byte("x"),
		},
	} {
		data, err := e.encode()
		require.NoError(t, err)
		require.Equal(t, golden, string(data))
		got, err := decodeEnvelope([]byte(golden))
		require.NoError(t, err)
		got.header.unknown = nil
		require.Equal(t, e.header, got.header)
		require.Equal(t, string(e.payload), string(got.payload))
	}
}

func TestFieldsOfNewerReleasesAreKept(t *testing.T) {
	head := `{"colour":"red","tries":1}`
	e, err := decodeEnvelope(append([]byte{1, byte(len(head))}, head...))
	require.NoError(t, err)
	data, err := e.afterFailure(2, errors.New("why")).encode()
	require.NoError(t, err)
	require.JSONEq(t, `{"colour":"red","tries":2,"err":"why"}`, string(data[2:]))
}

// TestRecordsKeepFieldsOfNewerReleases: calls that write a record again keep what they do not know.
func TestRecordsKeepFieldsOfNewerReleases(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithOrder(Strict))
		a.put("x")
		record := `{"v":2,"recipe":"queue","order":"strict","dedup":1000,"retry":{"min":1,"max":2,"factor":2,"shade":3},"colour":{"b":[1, 2]}}`
		_, err := a.client.Set(t.Context(), testPath, []byte(record), framework.AnyVersion)
		require.NoError(t, err)
		require.NoError(t, a.client.Create(t.Context(), testPath+"/claimed",
			[]byte(`{"v":1,"lines":{"9":[3,4]},"colour":"red"}`), framework.Persistent))
		require.NoError(t, a.SetDedup(t.Context(), time.Minute))
		n, _ := w.Node(testPath)
		require.Equal(t, strings.Replace(record, "1000", "60000", 1), string(n.Data))
		a.drain(1)
		n, _ = w.Node(testPath + "/claimed")
		require.Equal(t, `{"v":1,"lines":{"9":[3,4],"items":[0,0]},"colour":"red"}`, string(n.Data))
	})
}

func TestInvalidEnvelopesAreRefused(t *testing.T) {
	for _, data := range []string{"", "\x00", "\x01", "\x01\x05{}", "\x01\x02[]",
		"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x01\x0b{\"prio\":-1}", "\x01\x0c{\"tries\":-1}", "\x01\x0a{\"put\":-1}", "\x01\x0a{\"ttl\":-1}",
		"\x01\x1b{\"ttl\":9223372036854775807}", "\x01\x10{\"headers\":[\"x\"]}"} {
		_, err := decodeEnvelope([]byte(data))
		require.ErrorIs(t, err, errEnvelope, "%q", data)
	}
	_, err := decodeEnvelope([]byte{2, 0})
	require.ErrorIs(t, err, ErrNewer)
	_, err = envelope{payload: bytes.Repeat([]byte{1}, maxItem)}.encodeNew()
	require.ErrorIs(t, err, framework.ErrTooLarge)
	require.Len(t, envelope{}.afterFailure(1, errors.New(strings.Repeat("x", 5000))).header.Error, maxReason)
}

func FuzzDecodeEnvelope(f *testing.F) {
	f.Add([]byte("\x01\x00hello"))
	f.Add([]byte("\x01\x0a{\"id\":\"a\"}hello"))
	f.Add([]byte("\x01\x0d{\"ttl\":60000}x"))
	f.Add([]byte("\x01\x28{\"put\":946684800000,\"headers\":{\"k\":\"v\"}}x"))
	f.Add([]byte("\x01\x1d{\"colour\":\"red\",\"tries\":1}  x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decodeEnvelope(data)
		if err != nil {
			require.True(t, errors.Is(err, errEnvelope) || errors.Is(err, ErrNewer))
			return
		}
		again, err := e.encode()
		require.NoError(t, err)
		back, err := decodeEnvelope(again)
		require.NoError(t, err)
		require.Equal(t, e.payload, back.payload)
		require.Equal(t, e.header.ID, back.header.ID)
		require.Equal(t, e.header.Attempts, back.header.Attempts)
		require.Equal(t, e.header.Put, back.header.Put)
		require.Equal(t, e.header.TTL, back.header.TTL)
		require.Equal(t, len(e.header.Headers), len(back.header.Headers))
	})
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"v":1,"recipe":"queue","order":"strict"}`))
	f.Add([]byte(`{"v":2,"recipe":"queue"}`))
	f.Add([]byte(`{"v":2,"recipe":"queue","order":"strict","retry":{"min":1,"max":2,"factor":1.5,"jitter":1}}`))
	f.Add([]byte(`{"v":1,"permits":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(data)
		if err != nil {
			require.True(t, errors.Is(err, ErrNotQueue) || errors.Is(err, ErrNewer))
			return
		}
		again, err := r.encode()
		require.NoError(t, err)
		back, err := decodeRecord(again)
		require.NoError(t, err)
		require.Equal(t, r.Order, back.Order)
		second, err := back.encode()
		require.NoError(t, err)
		require.Equal(t, string(again), string(second))
	})
}

func FuzzNumbers(f *testing.F) {
	f.Add("i-0000000012")
	f.Add("t-1a2b.3-0000000012")
	f.Fuzz(func(t *testing.T, name string) {
		if n, ok := parseNumber(name, itemPrefix); ok {
			require.Equal(t, name, itemPrefix+formatNumber(n))
		}
		if n, ok := ticketNumber(name); ok {
			require.True(t, strings.HasSuffix(name, formatNumber(n)))
		}
	})
}

func FuzzDecodeIn(f *testing.F) {
	f.Add([]byte("12"))
	f.Add([]byte("12 line"))
	f.Add([]byte("-1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, line, err := decodeIn(data)
		if err == nil {
			again, stillLine, err := decodeIn(encodeIn(in, line))
			require.NoError(t, err)
			require.Equal(t, in, again)
			require.Equal(t, line, stillLine)
		}
		if n, err := decodePlaces(data); err == nil {
			require.GreaterOrEqual(t, n, 0)
		}
	})
}
