package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStatRoundTrip(t *testing.T) {
	want := Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	var e Encoder
	want.Encode(&e)
	require.Equal(t, 68, e.Len())
	var got Stat
	d := NewDecoder(e.Bytes())
	got.Decode(&d)
	require.NoError(t, d.Err())
	require.Equal(t, want, got)
	require.Zero(t, d.Len())
}

func TestNullAndEmptyBuffersDiffer(t *testing.T) {
	var e Encoder
	e.Buffer(nil)
	e.Buffer([]byte{})
	d := NewDecoder(e.Bytes())
	require.Nil(t, d.Buffer())
	require.NotNil(t, d.Buffer())
	require.NoError(t, d.Err())
}

func TestDecoderRefusesFalseLengths(t *testing.T) {
	for name, read := range map[string]func(*Decoder){
		"buffer":  func(d *Decoder) { d.Buffer() },
		"string":  func(d *Decoder) { _ = d.String() },
		"strings": func(d *Decoder) { d.Strings() },
		"acls":    func(d *Decoder) { d.ACLs() },
	} {
		t.Run(name, func(t *testing.T) {
			b := binary.BigEndian.AppendUint32(nil, 0x7fffffff)
			d := NewDecoder(append(b, 1, 2, 3))
			require.Zero(t, testing.AllocsPerRun(10, func() { read(&d) }))
			require.ErrorIs(t, d.Err(), ErrMalformed)
			require.Zero(t, d.Int(), "a failed decoder yields zeros")
		})
	}
}

func TestDecoderReadsNegativeVectorAsNull(t *testing.T) {
	var e Encoder
	e.Int(-1)
	e.Int(-7)
	d := NewDecoder(e.Bytes())
	require.Nil(t, d.Strings())
	require.Nil(t, d.ACLs())
	require.NoError(t, d.Err())
}

func TestConnectKeepsTheReadOnlyByte(t *testing.T) {
	for _, short := range []bool{false, true} {
		want := ConnectRequest{LastZxid: 7, Timeout: 9000, Session: 5, Password: []byte("0123456789abcdef"),
			ReadOnly: !short, Short: short}
		var e Encoder
		want.Encode(&e)
		var got ConnectRequest
		d := NewDecoder(e.Bytes())
		got.Decode(&d)
		require.NoError(t, d.Err())
		require.Equal(t, want, got)

		answer := ConnectResponse{Timeout: 9000, Session: 5, Password: want.Password, Short: short}
		e.Reset()
		answer.Encode(&e)
		var back ConnectResponse
		d = NewDecoder(e.Bytes())
		back.Decode(&d)
		require.NoError(t, d.Err())
		require.Equal(t, answer, back)
	}
}

func TestFramesFollowOneAnother(t *testing.T) {
	var e Encoder
	for _, body := range []string{"first", "", "second"} {
		mark := e.BeginFrame()
		e.Raw([]byte(body))
		e.EndFrame(mark)
	}
	r := bytes.NewReader(e.Bytes())
	var buf []byte
	for _, want := range []string{"first", "", "second"} {
		body, err := ReadFrame(r, buf, MaxFrame)
		require.NoError(t, err)
		require.Equal(t, want, string(body))
		buf = body
	}
	_, err := ReadFrame(r, buf, MaxFrame)
	require.Equal(t, io.EOF, err)
}

func TestReadFrameRefusesAndEnds(t *testing.T) {
	head := func(n uint32, rest ...byte) io.Reader {
		return bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, n), rest...))
	}
	_, err := ReadFrame(head(MaxFrame+1), nil, MaxFrame)
	require.ErrorIs(t, err, ErrFrameSize)
	_, err = ReadFrame(head(0xffffffff), nil, MaxFrame)
	require.ErrorIs(t, err, ErrFrameSize)
	_, err = ReadFrame(head(10, 1, 2), nil, MaxFrame)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	_, err = ReadFrame(head(10), nil, MaxFrame)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	_, err = ReadFrame(bytes.NewReader([]byte{0, 0}), nil, MaxFrame)
	require.Equal(t, io.ErrUnexpectedEOF, err)
}

func TestReadFrameDoesNotTrustTheLength(t *testing.T) {
	const announced, rounds = 1 << 30, 50
	stream := append(binary.BigEndian.AppendUint32(nil, announced), make([]byte, 1000)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		_, err := ReadFrame(bytes.NewReader(stream), nil, announced)
		require.Equal(t, io.ErrUnexpectedEOF, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(rounds*2*readChunk))
}

func TestReadFrameReadsLargeBodies(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	var e Encoder
	mark := e.BeginFrame()
	e.Raw(want)
	e.EndFrame(mark)
	body, err := ReadFrame(bufio.NewReader(bytes.NewReader(e.Bytes())), make([]byte, 3), MaxFrame)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, body))
}

func TestValidatePath(t *testing.T) {
	for _, good := range []string{"/", "/a", "/a/b", "/a.b", "/...", "/.a", "/a..", "/é/日本"} {
		require.NoError(t, ValidatePath(good), good)
	}
	for _, bad := range []string{"", "a", "/a/", "//", "//a", "/a//b", "/.", "/a/./b", "/..", "/a/..",
		"/a\x00", "/\x1f",
		"/\u0080", "/\uf8ff", "/\ufffd", "/\U0001F600", "/\xff"} {
		require.ErrorIs(t, ValidatePath(bad), ErrPath, "%q", bad)
	}
}

func TestSplitAndJoinPath(t *testing.T) {
	for path, want := range map[string][2]string{
		"/a": {"/", "a"}, "/a/b": {"/a", "b"}, "/a/b/c": {"/a/b", "c"}, "a": {"", "a"}, "": {"", ""}, "/": {"/", ""},
		"/a/": {"/a", ""},
	} {
		parent, name := SplitPath(path)
		require.Equal(t, want, [2]string{parent, name}, path)
	}
	require.Equal(t, "/a", JoinPath("/", "a"))
	require.Equal(t, "/a/b", JoinPath("/a", "b"))
}

func TestNames(t *testing.T) {
	require.Equal(t, "createContainer", OpCreateContainer.String())
	require.Equal(t, "op 77", Op(77).String())
	require.Equal(t, "no node", NoNode.String())
	require.Equal(t, "code -99", Code(-99).String())
	require.Equal(t, "NodeDeleted", EventNodeDeleted.String())
	require.Equal(t, "event 9", EventType(9).String())
}
