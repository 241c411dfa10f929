package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecoder decodes arbitrary bytes. Each byte of program selects the type of
// the next value.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6}, []byte("\x00\x00\x00\x02hi"))
	f.Add([]byte{5}, []byte("\x7f\xff\xff\xff\x00\x00\x00\x00"))
	f.Add([]byte{6}, []byte("\x00\x00\x00\x01\x00\x00\x00\x1f\x00\x00\x00\x05world\x00\x00\x00\x06anyone"))
	f.Fuzz(func(t *testing.T, program, data []byte) {
		d := NewDecoder(data)
		for _, step := range program {
			left := d.Len()
			decoded := decodeStep(&d, step)
			require.LessOrEqual(t, d.Len(), left)
			require.LessOrEqual(t, decoded, left, "the value is larger than the bytes that were left")
			if d.Err() != nil {
				require.ErrorIs(t, d.Err(), ErrMalformed)
				require.Zero(t, d.Len())
			}
		}
	})
}

// decodeStep reads one value and returns how many elements or bytes it has.
func decodeStep(d *Decoder, step byte) int {
	switch step % 7 {
	case 0:
		d.Int()
	case 1:
		d.Long()
	case 2:
		d.Bool()
	case 3:
		return len(d.Buffer())
	case 4:
		return len(d.String())
	case 5:
		return len(d.Strings())
	case 6:
		return len(d.ACLs())
	}
	return 0
}

// FuzzRequestFrame reads a frame from a stream and decodes it as the server
// does. If that succeeds, encoding and decoding it again gives the same request.
func FuzzRequestFrame(f *testing.F) {
	for _, r := range sampleRequests() {
		f.Add(encodeFrame(RequestHeader{Xid: 1, Op: r.op}, r.body))
	}
	f.Add([]byte("ruok"))
	f.Add([]byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 14})
	f.Fuzz(func(t *testing.T, stream []byte) {
		frame, err := ReadFrame(bytes.NewReader(stream), nil, MaxFrame)
		if err != nil {
			return
		}
		header, body, err := decodeFrame(frame)
		if err != nil || body == nil {
			return
		}
		again := encodeFrame(header, body)
		header2, body2, err := decodeFrame(again[4:])
		require.NoError(t, err)
		require.Equal(t, header, header2)
		require.Equal(t, again, encodeFrame(header2, body2))
	})
}

// FuzzConnect decodes the first frame of a client and that of a server.
func FuzzConnect(f *testing.F) {
	var e Encoder
	(&ConnectRequest{Timeout: 4000, Password: make([]byte, PasswordSize)}).Encode(&e)
	f.Add(e.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		var request ConnectRequest
		d := NewDecoder(data)
		if request.Decode(&d); d.Err() == nil {
			require.LessOrEqual(t, len(request.Password), len(data))
		}
		var response ConnectResponse
		d = NewDecoder(data)
		if response.Decode(&d); d.Err() == nil {
			require.LessOrEqual(t, len(response.Password), len(data))
		}
	})
}

type sample struct {
	op   Op
	body Request
}

func sampleRequests() []sample {
	acl := WorldACL(PermAll)
	create := &CreateRequest{Path: "/a", Data: []byte("x"), ACL: acl, Flags: FlagSequential}
	return []sample{
		{OpCreate, create},
		{OpCreateTTL, &CreateRequest{Path: "/a", ACL: acl, Flags: FlagTTL, HasTTL: true, TTL: 1000}},
		{OpDelete, &NumberRequest{Path: "/a", Number: AnyVersion}},
		{OpGetData, &WatchRequest{Path: "/a", Watch: true}},
		{OpSync, &PathRequest{Path: "/"}},
		{OpSetData, &SetDataRequest{Path: "/a", Data: []byte{}, Version: 3}},
		{OpSetACL, &SetACLRequest{Path: "/a", ACL: acl, Version: 1}},
		{OpAuth, &AuthRequest{Scheme: "digest", Auth: []byte("u:p")}},
		{OpSetWatches, &SetWatchesRequest{RelativeZxid: 4, Data: []string{"/a"}, Child: []string{"/b", "/c"}}},
		{OpSetWatches2, &SetWatchesRequest{Two: true, Persistent: []string{"/a"}, Recurse: []string{"/b"}}},
		{OpMulti, &MultiRequest{Parts: []MultiPart{{OpCreate, create},
			{OpCheck, &NumberRequest{Path: "/a", Number: 1}}}}},
		{OpPing, &EmptyRequest{}},
	}
}

func encodeFrame(h RequestHeader, body Request) []byte {
	var e Encoder
	mark := e.BeginFrame()
	h.Encode(&e)
	body.Encode(&e)
	e.EndFrame(mark)
	return e.Bytes()
}

func decodeFrame(frame []byte) (RequestHeader, Request, error) {
	var h RequestHeader
	d := NewDecoder(frame)
	h.Decode(&d)
	body := NewRequest(h.Op)
	if body != nil {
		body.Decode(&d)
	}
	return h, body, d.Err()
}

func TestRequestsRoundTrip(t *testing.T) {
	for _, s := range sampleRequests() {
		frame := encodeFrame(RequestHeader{Xid: 7, Op: s.op}, s.body)
		h, body, err := decodeFrame(frame[4:])
		require.NoError(t, err, s.op)
		require.Equal(t, RequestHeader{Xid: 7, Op: s.op}, h)
		require.Equal(t, s.body, body, s.op)
	}
}

func TestMultiRefusesUnsupportedOperations(t *testing.T) {
	for _, op := range []Op{OpSetACL, OpMulti, OpPing, OpDeleteContainer, Op(999)} {
		var e Encoder
		MultiHeader{Op: op, Err: -1}.Encode(&e)
		MultiEnd.Encode(&e)
		var r MultiRequest
		d := NewDecoder(e.Bytes())
		r.Decode(&d)
		require.ErrorIs(t, d.Err(), ErrMalformed, op)
	}
}
