package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxFrame is the largest request that a server with default settings accepts
// (jute.maxbuffer), in bytes. Replies may be larger.
const MaxFrame = 0xfffff

// readChunk is how many bytes ReadBody allocates at first, before it knows that
// they arrive.
const readChunk = 64 << 10

// ErrFrameSize is returned for a frame with a length that is negative or above
// the limit.
var ErrFrameSize = errors.New("wire: frame length out of range")

// FrameLength decodes the four bytes that begin a frame.
func FrameLength(head [4]byte) int32 { return int32(binary.BigEndian.Uint32(head[:])) }

// ReadFrame reads the next frame and returns its body, which has at most limit
// bytes. It uses buf's memory for the body if that is large enough.
//
// It returns io.EOF if the stream ends between frames, and io.ErrUnexpectedEOF
// if it ends inside a frame. If the body is too long, it returns ErrFrameSize
// and does not read the body.
func ReadFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	head := growSlice(buf[:0], 4) // in buf's memory: a local array would be allocated on the heap
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	return ReadBody(r, head, FrameLength([4]byte(head)), limit)
}

// ReadBody reads the body of a frame after its length was read; see ReadFrame.
func ReadBody(r io.Reader, buf []byte, length int32, limit int) ([]byte, error) {
	if length < 0 || int64(length) > int64(limit) {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrFrameSize, length, limit)
	}
	body := buf[:0]
	for want := int(length); len(body) < want; {
		have := len(body)
		body = growSlice(body, min(want, max(cap(body), 2*have, readChunk)))
		if _, err := io.ReadFull(r, body[have:]); err != nil {
			return nil, unexpectedEOF(err)
		}
	}
	return body, nil
}

// growSlice returns b with length n, in a new array if b's array is too small.
func growSlice(b []byte, n int) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	bigger := make([]byte, n)
	copy(bigger, b)
	return bigger
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
